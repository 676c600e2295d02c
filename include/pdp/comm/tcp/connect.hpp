#pragma once

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/tcp/mesh.hpp>
#include <pdp/comm/tcp/transport.hpp>

namespace pdp::comm {

namespace tcp {

/// A store of any type, so that the rest is compiled once.
class StoreView {
 public:
  template <Store S>
  explicit StoreView(S& store)
      : store_{&store},
        set_{[](void* self, std::string_view key, std::string_view value) { static_cast<S*>(self)->set(key, value); }},
        wait_{[](void* self, std::string_view key, TimePoint deadline) { return static_cast<S*>(self)->wait(key, deadline); }} {
    if constexpr (requires { std::string{store.local_address()}; }) local_address_ = store.local_address();
  }

  void set(std::string_view key, std::string_view value) const { set_(store_, key, value); }
  [[nodiscard]] std::string wait(std::string_view key, TimePoint deadline) const { return wait_(store_, key, deadline); }
  /// The address at which this process is reached by those who share the store: that of its own connection to the store, where it has one.
  [[nodiscard]] const std::string& local_address() const { return local_address_; }

 private:
  void* store_;
  void (*set_)(void*, std::string_view, std::string_view);
  std::string (*wait_)(void*, std::string_view, TimePoint);
  std::string local_address_ = "127.0.0.1";
};

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

}  // namespace tcp

template <Store S>
TcpTransport TcpTransport::connect(S& store, int rank, int size, TimePoint deadline) {
  return TcpTransport{rank, tcp::connect(tcp::StoreView{store}, rank, size, deadline)};
}

}  // namespace pdp::comm
