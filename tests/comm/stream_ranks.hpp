// Helpers for the tests of stream transports: ranks as threads over real sockets or rings, and blocking calls.
#pragma once

#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/store/in_process_store.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace stream_test {

using pdp::comm::Clock;
using pdp::comm::Envelope;
using pdp::comm::ReceiveRequest;
using pdp::comm::SendRequest;
using pdp::comm::ShmTransport;
using pdp::comm::TcpTransport;

/// A deadline that even the slowest machine meets. A passing test never waits that long.
inline pdp::comm::TimePoint patience() { return Clock::now() + std::chrono::seconds{60}; }

template <class Transport>
using Function = std::function<void(Transport&)>;

/// Runs the function on every rank of a new world. Returns each rank's exception, or null.
template <class Transport>
std::vector<std::exception_ptr> outcomes(int size, const Function<Transport>& function) {
  pdp::launch::InProcessStore store;
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Transport transport = Transport::connect(store, rank, size, patience());
        function(transport);
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  threads.clear();
  return thrown;
}

/// As outcomes(), but rethrows the first exception.
template <class Transport>
void ranks(int size, const Function<Transport>& function) {
  for (const std::exception_ptr& thrown : outcomes<Transport>(size, function))
    if (thrown) std::rethrow_exception(thrown);
}

/// Replaces Catch2's assertions, which must not be used in rank threads.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error{what};
}

inline std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  constexpr std::size_t period = 251 * 256;
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < std::min(bytes, period); ++i)
    values[i] = static_cast<std::byte>((i * 31 + i / 251 + static_cast<std::size_t>(seed)) & 0xff);
  for (std::size_t i = period; i < bytes; i += period) std::copy_n(values.data(), std::min(period, bytes - i), values.data() + i);
  return values;
}

inline Envelope envelope(std::size_t bytes, int tag = 0) { return {.channel = 1, .count = bytes, .bytes = bytes, .tag = tag}; }

inline void fill(SendRequest& send, int peer, const std::vector<std::byte>& values, int tag = 0) {
  send.envelope = envelope(values.size(), tag);
  send.data = values.data();
  send.peer = peer;
}
inline void fill(ReceiveRequest& receive, int peer, std::vector<std::byte>& values, int tag = 0) {
  receive.envelope = envelope(values.size(), tag);
  receive.data = values.data();
  receive.peer = peer;
}

template <class Transport, class Request>
void finish(Transport& transport, const Request& request) {
  const auto until = patience();
  while (!request.done) {
    require(Clock::now() < until, "a message took more than a minute");
    transport.wait(until);
  }
}

template <class Transport>
void send(Transport& transport, int peer, const std::vector<std::byte>& values, int tag = 0) {
  SendRequest request;
  fill(request, peer, values, tag);
  transport.post(request);
  finish(transport, request);
}
template <class Transport>
std::vector<std::byte> receive(Transport& transport, int peer, std::size_t bytes, int tag = 0) {
  std::vector<std::byte> values(bytes);
  ReceiveRequest request;
  fill(request, peer, values, tag);
  transport.post(request);
  finish(transport, request);
  return values;
}

/// Moves messages until the transport throws, and returns the exception. Returns null after a minute.
template <class Transport>
std::exception_ptr failure_of(Transport& transport) {
  try {
    for (const auto until = patience(); Clock::now() < until;) transport.wait(until);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

inline std::string words(const std::exception_ptr& thrown) {
  if (!thrown) return "nothing was thrown";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  }
}
template <class E>
bool is(const std::exception_ptr& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}
/// The rank that a PeerLost names; -2 for anything else.
inline int lost_rank(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const pdp::PeerLost& lost) {
    return lost.rank();
  } catch (...) {
  }
  return -2;
}

/// The two ends of a connection without a handshake: one for a transport, one for the test.
inline std::pair<pdp::comm::Descriptor, pdp::comm::Descriptor> pair_of_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error{"socketpair"};
  return {pdp::comm::Descriptor{ends[0]}, pdp::comm::Descriptor{ends[1]}};
}
/// Rank 0 of a world of two. The test plays rank 1.
struct Bare {
  TcpTransport transport;
  pdp::comm::Descriptor peer;

  static Bare make() {
    auto [mine, theirs] = pair_of_sockets();
    std::vector<pdp::comm::Descriptor> sockets(2);
    sockets[1] = std::move(mine);
    return {TcpTransport{0, std::move(sockets)}, std::move(theirs)};
  }
  void say(const void* bytes, std::size_t size) const {
    if (::send(peer.get(), bytes, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) throw std::runtime_error{"send"};
  }
};

}  // namespace stream_test
