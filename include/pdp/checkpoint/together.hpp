#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/engine/groups.hpp>

/// Steps of saving and loading that the ranks take together, so that they either all succeed or all throw the same error.
namespace pdp::checkpoint {

/// Returns the text of rank `root` on every rank. Every rank makes this call; the text of other ranks is ignored.
template <comm::Communicator C, class D>
[[nodiscard]] std::string broadcast_text(C& world, const D& device, std::string words, int root = 0) {
  engine::HostCalls calls{world, device};
  std::int64_t size = as_index(words.size());
  calls.broadcast(std::span{&size, 1}, root);
  words.resize(as_size(size));
  if (size > 0) calls.broadcast(std::as_writable_bytes(std::span{words}), root);
  return words;
}

/// Returns the texts of all ranks on rank 0, in their order. Returns an empty list on the other ranks. Every rank makes this call.
template <comm::Communicator C, class D>
[[nodiscard]] std::vector<std::string> gather_texts(C& world, const D& device, const std::string& words) {
  engine::HostCalls calls{world, device};
  std::vector<std::int64_t> sizes(as_size(world.size()));
  const std::int64_t own = as_index(words.size());
  calls.all_gather(std::span<const std::int64_t>{&own, 1}, std::span{sizes});
  std::vector<std::size_t> counts;
  std::size_t all = 0;
  for (const std::int64_t size : sizes) all += counts.emplace_back(as_size(size));
  std::string joined(world.rank() == 0 ? all : 0, '\0');
  calls.gather(std::as_bytes(std::span{words}), std::as_writable_bytes(std::span{joined}), std::span<const std::size_t>{counts}, 0);
  std::vector<std::string> texts;
  for (std::size_t at = 0; world.rank() == 0 && texts.size() < counts.size(); at += counts[texts.size() - 1])
    texts.push_back(joined.substr(at, counts[texts.size()]));
  return texts;
}

/// Runs f, which does not communicate, on every rank. If it throws an exception on a rank, every rank throws FileError with the message of
/// the lowest such rank. Every rank makes this call.
template <comm::Communicator C, class D, class F>
void on_every_rank(C& world, const D& device, const F& f) {
  std::string error;
  bool failed = false;
  try {
    f();
  } catch (const std::exception& thrown) {
    failed = true;
    error = thrown.what();
  }
  std::int64_t first = failed ? world.rank() : world.size();
  engine::HostCalls{world, device}.all_reduce(std::span{&first, 1}, comm::Min{});
  if (first == world.size()) return;
  error = broadcast_text(world, device, error, as_int(first));
  engine::meet_before_throwing(world);
  throw FileError{world.size() == 1 ? error : text("rank ", first, ": ", error)};
}

}  // namespace pdp::checkpoint
