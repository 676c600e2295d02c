#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/join/roll_call.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/comm/tcp/mesh.hpp>
#include <pdp/comm/tcp/network.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// A random value that keeps the connections of one world apart from those of other worlds of its job. If the ranks trust the store itself,
/// it is also their secret.
using Token = std::array<unsigned char, 32>;

/// Connects this rank to a world and returns its mesh; null in a world of one rank. Throws like RollCall, check_loopback() and
/// Mesh::take_place().
inline std::unique_ptr<Mesh> connect(const StoreView& store, int rank, int size, TimePoint deadline) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  if (size == 1) return nullptr;
  constexpr const char* token_key = "tcp/token";

  const Membership membership = store.membership() != nullptr ? *store.membership() : Membership{};
  auto mesh = std::make_unique<Mesh>(store.local_address(), handshake::Self::of(handshake::Purpose::data, rank, size, membership.job));
  if (rank == 0) store.set(token_key, handshake::view(handshake::draw<sizeof(Token)>()));
  const RollCall roll_call{store, "tcp/address/", "tcp/addresses", rank, size, deadline};
  roll_call.say(text(mesh->address(), ' ', this_network()));
  std::string token;
  try {
    token = store.wait(token_key, deadline);
  } catch (const Timeout&) {
    roll_call.give_up();
  }
  if (token.size() != sizeof(Token))
    throw ConfigError{text("rank ", rank, " found a token of ", token.size(), " bytes in the job's store; it should have ", sizeof(Token))};
  mesh->open(handshake::Key{membership, handshake::Purpose::data, token});
  // The store is not used after this call.
  const std::string all = roll_call.hear([](const std::vector<std::string>& words) {
    std::string lines;
    for (const std::string& each : words) lines += each + '\n';
    return lines;
  });
  std::vector<std::string> addresses;
  for (std::size_t begin = 0, end = 0; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1)
    addresses.push_back(all.substr(begin, end - begin));
  if (addresses.size() != as_size(size))
    throw ConfigError{text("rank ", rank, " found ", addresses.size(), " addresses of ranks in the job's store; there should be ", size)};
  check_loopback(addresses);
  mesh->take_place(addresses, deadline);
  return mesh;
}

}  // namespace pdp::comm::tcp
