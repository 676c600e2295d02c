#pragma once

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/store.hpp>
#include <pdp/comm/tcp/mesh.hpp>

namespace pdp::comm::tcp {

inline std::string draw_token() {
  std::random_device device;
  std::string token;
  while (token.size() < sizeof(Token)) token += static_cast<char>(device());
  return token;
}

inline std::string address_key(int rank) { return text("tcp/address/", rank); }

/// The ranks that have not given an address until now.
inline std::string absent(const StoreView& store, int size) {
  std::string names;
  for (int rank = 0; rank < size; ++rank) try {
      static_cast<void>(store.wait(address_key(rank), Clock::now()));
    } catch (const Timeout&) {
      names += text(names.empty() ? "rank " : ", rank ", rank);
    }
  return names.empty() ? "the last one in time" : names;
}

inline std::vector<Descriptor> connect(const StoreView& store, int rank, int size, TimePoint deadline) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  if (size == 1) return std::vector<Descriptor>(1);
  constexpr const char* token_key = "tcp/token";

  Mesh mesh{store.local_address(), Hello{.rank = rank, .size = size}};
  if (rank == 0) store.set(token_key, draw_token());
  store.set(address_key(rank), mesh.address());

  // All addresses are read before the first connection is made: so once rank 0 is connected, nobody needs the store any more.
  Token token{};
  std::vector<std::string> addresses;
  try {
    const std::string drawn = store.wait(token_key, deadline);
    if (drawn.size() != sizeof token)
      throw ConfigError{
          text("rank ", rank, " found a token of ", drawn.size(), " bytes in the job's store; it should have ", sizeof token)};
    std::memcpy(token.data(), drawn.data(), sizeof token);
    for (int lower = 0; lower < rank; ++lower) addresses.push_back(store.wait(address_key(lower), deadline));
  } catch (const Timeout&) {
    throw Timeout{
        text("rank ", rank, " has heard nothing of ", absent(store, size), " (of ", size,
             " ranks) before the deadline for the start; a missing rank was not started, has failed, or cannot reach the job's store")};
  }
  return mesh.connect(addresses, token, deadline);
}

}  // namespace pdp::comm::tcp
