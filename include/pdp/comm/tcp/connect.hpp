#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <pdp/comm/tcp/mesh.hpp>
#include <pdp/comm/tcp/transport.hpp>

namespace pdp::comm {

namespace tcp {

/// The address at which this process is reached by those who share its store: that of its own connection to the store, where it has one.
template <Store S>
std::string local_address(const S& store) {
  if constexpr (requires { std::string{store.local_address()}; })
    return store.local_address();
  else
    return "127.0.0.1";
}

inline std::string draw_token() {
  std::random_device device;
  std::string token;
  while (token.size() < sizeof(Token)) token += static_cast<char>(device());
  return token;
}

inline std::string address_key(int rank) { return text("tcp/address/", rank); }

/// The ranks that have not given an address until now.
template <Store S>
std::string absent(S& store, int size) {
  std::string names;
  for (int rank = 0; rank < size; ++rank) try {
      store.wait(address_key(rank), Clock::now());
    } catch (const Timeout&) {
      names += text(names.empty() ? "rank " : ", rank ", rank);
    }
  return names.empty() ? "the last one in time" : names;
}

}  // namespace tcp

template <Store S>
TcpTransport TcpTransport::connect(S& store, int rank, int size, TimePoint deadline) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  if (size == 1) return TcpTransport{0, std::vector<tcp::Descriptor>(1)};
  constexpr const char* token_key = "tcp/token";

  tcp::Mesh mesh{tcp::local_address(store), tcp::Hello{.rank = rank, .size = size}};
  if (rank == 0) store.set(token_key, tcp::draw_token());
  store.set(tcp::address_key(rank), mesh.address());

  // All addresses are read before the first connection is made: so once rank 0 is connected, nobody needs the store any more.
  tcp::Token token{};
  std::vector<std::string> addresses;
  try {
    const std::string drawn = store.wait(token_key, deadline);
    if (drawn.size() != sizeof token)
      throw ConfigError{
          text("rank ", rank, " found a token of ", drawn.size(), " bytes in the job's store; it should have ", sizeof token)};
    std::memcpy(token.data(), drawn.data(), sizeof token);
    while (static_cast<int>(addresses.size()) < rank)
      addresses.push_back(store.wait(tcp::address_key(static_cast<int>(addresses.size())), deadline));
  } catch (const Timeout&) {
    throw Timeout{
        text("rank ", rank, " has heard nothing of ", tcp::absent(store, size), " (of ", size,
             " ranks) before the deadline for the start; a missing rank was not started, has failed, or cannot reach the job's store")};
  }
  return TcpTransport{rank, mesh.connect(addresses, token, deadline)};
}

}  // namespace pdp::comm
