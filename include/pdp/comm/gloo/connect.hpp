#pragma once

#include <netdb.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pdp/comm/gloo/links.hpp>
#include <pdp/comm/gloo/quiet.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

#if __has_include(<gloo/context.h>)
#include <gloo/alltoall.h>
#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#endif

namespace pdp::comm::gloo {

/// Connects one rank to all others in two steps. It first listens at a separate address for each other rank. It connects when all addresses
/// are known.
class Connecting {
 public:
  /// `time`: how long connecting to a rank may take.
  Connecting(::gloo::transport::Device& device, int rank, int size, std::chrono::milliseconds time)
      : rank_{rank}, size_{size}, connections_{device.createContext(rank, size)} {
    // Gloo may wait up to five times this timeout for a connection, hence the fifth. All ranks have started by the time of connect().
    connections_->setTimeout(std::max(time / 5, std::chrono::milliseconds{1}));
    for (int other = 0; other < size_; ++other)
      if (other != rank_) connections_->createPair(other);
  }

  /// Returns the address at which this rank listens for another rank. All addresses have the same size.
  [[nodiscard]] std::vector<char> address_for(int other) const { return connections_->getPair(other)->address().bytes(); }
  [[nodiscard]] std::size_t bytes_of_address() const { return address_for(rank_ == 0 ? 1 : 0).size(); }

  /// Connects to a rank. Throws PeerLost if that rank cannot be reached or does not connect.
  void connect(int other, const std::vector<char>& address) {
    try {
      connections_->getPair(other)->connect(address);
    } catch (const std::exception& error) {
      Failure{Failure::Kind::lost, other,
              text("rank ", rank_, " could not connect to rank ", other, ": ", error.what(),
                   "; either that rank has failed (see its output), or the network blocks the connection")}
          .raise();
    }
  }
  /// Returns the connections. Waits on them no longer time out.
  [[nodiscard]] std::shared_ptr<::gloo::transport::Context> connections() {
    connections_->setTimeout(no_timeout);
    return connections_;
  }

 private:
  int rank_, size_;
  std::shared_ptr<::gloo::transport::Context> connections_;
};

inline std::chrono::milliseconds milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return std::clamp<std::chrono::milliseconds>(left, std::chrono::milliseconds{1}, no_timeout);
}

/// The addresses of a world's ranks in the store. A store may serve several worlds in sequence. So each rank counts its worlds, and the
/// keys contain this count.
class Directory {
 public:
  Directory(const StoreView& store, int rank, int size)
      : store_{store}, prefix_{text("gloo/", store.add(text("gloo/worlds/", rank), 1), '/')}, size_{size} {}

  /// Publishes the addresses of a rank. A value of a store is small, so a rank with many peers publishes several values.
  void publish(int rank, const Connecting& connecting) const {
    const std::vector<char> none(connecting.bytes_of_address());
    std::string value;
    for (int other = 0; other < size_; ++other) {
      const std::vector<char> address = other == rank ? none : connecting.address_for(other);
      value.append(address.begin(), address.end());
      if ((other + 1) % addresses_in_value == 0 || other + 1 == size_) {
        store_.set(key(rank, other), value);
        value.clear();
      }
    }
  }
  /// Waits for the address at which `rank` listens for `reader`. `bytes`: the size of an address. Throws Timeout at the deadline.
  [[nodiscard]] std::vector<char> look_up(int rank, int reader, std::size_t bytes, TimePoint deadline) const {
    const std::string value = store_.wait(key(rank, reader), deadline);
    const std::size_t begin = as_size(reader % addresses_in_value) * bytes;
    if (value.size() < begin + bytes)
      throw ConfigError{text("rank ", reader, " found an address of rank ", rank,
                             " in the job's store that is too short; do all ranks run the same build, with the same Gloo?")};
    return {value.begin() + static_cast<std::ptrdiff_t>(begin), value.begin() + static_cast<std::ptrdiff_t>(begin + bytes)};
  }
  /// Returns the names of the ranks that have not published anything yet.
  [[nodiscard]] std::string absent() const {
    std::string names;
    for (int rank = 0; rank < size_; ++rank)
      if (!store_.get(key(rank, 0))) names += text(names.empty() ? "rank " : ", rank ", rank);
    return names.empty() ? "the last rank to arrive" : names;
  }

 private:
  static constexpr int addresses_in_value = 128;
  [[nodiscard]] std::string key(int rank, int reader) const { return text(prefix_, rank, '/', reader / addresses_in_value); }

  const StoreView& store_;
  std::string prefix_;
  int size_;
};

/// Creates a Gloo device, which starts Gloo's thread. Call this with SIGPIPE blocked, because the thread inherits that (see Quiet). Throws
/// ConfigError if it cannot listen at the address.
inline std::shared_ptr<::gloo::transport::Device> listen_at(const std::string& address, int rank) try {
  ::gloo::transport::tcp::attr own;
  own.hostname = address;
  return ::gloo::transport::tcp::CreateDevice(own);
} catch (const std::exception& error) {
  throw ConfigError{text("rank ", rank, " cannot listen at ", address, ": ", error.what())};
}

/// Finds the other ranks through the store and connects to them. Returns null in a world of one rank. Throws Timeout, which names the
/// missing ranks, if they do not come before the deadline. Throws PeerLost if a rank cannot be reached.
inline std::shared_ptr<::gloo::transport::Context> connect(const StoreView& store, int rank, int size, TimePoint deadline) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  if (size == 1) return nullptr;
  const Quiet quiet;
  const std::shared_ptr<::gloo::transport::Device> device = listen_at(store.local_address(), rank);
  Connecting connecting{*device, rank, size, milliseconds_until(deadline)};
  const Directory directory{store, rank, size};
  directory.publish(rank, connecting);
  std::vector<std::vector<char>> addresses(as_size(size));
  try {
    for (int other = 0; other < size; ++other)
      if (other != rank) addresses[as_size(other)] = directory.look_up(other, rank, connecting.bytes_of_address(), deadline);
  } catch (const Timeout&) {
    throw Timeout{text("rank ", rank, " has not heard from ", directory.absent(), " (of ", size,
                       " ranks) before the deadline for the start (PDP_TIMEOUT); a missing rank was not started, has failed, or cannot "
                       "reach the job's store")};
  }
  for (int other = 0; other < size; ++other)
    if (other != rank) connecting.connect(other, addresses[as_size(other)]);
  return connecting.connections();
}

/// Returns the address of this rank's end of a context's connections. Throws ConfigError if they are not TCP connections.
inline std::string address_of(::gloo::Context& context) {
  if (dynamic_cast<::gloo::transport::tcp::Device*>(context.getDevice().get()) == nullptr)
    throw ConfigError{text("rank ", context.rank, " was given a Gloo context that is not connected over TCP; pdp needs one that is")};
  const ::gloo::transport::tcp::Address own{context.getPair(context.rank == 0 ? 1 : 0)->address().bytes()};
  const sockaddr_storage& socket = own.getSockaddr();
  std::array<char, NI_MAXHOST> words{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&socket), sizeof socket, words.data(), words.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    throw ConfigError{text("rank ", context.rank, " was given a Gloo context without an address")};
  return words.data();
}

/// Connects the ranks of a connected context a second time, by a Gloo thread and connections of pdp's own. Returns null for a context of
/// one rank. Throws ConfigError if the context cannot be used, and PeerLost if connecting fails.
inline std::shared_ptr<::gloo::transport::Context> connect_beside(const std::shared_ptr<::gloo::Context>& context) {
  if (!context) throw ConfigError{"expected a Gloo context, found null"};
  const int rank = context->rank, size = context->size;
  if (size == 1) return nullptr;
  const Quiet quiet;
  try {
    const std::shared_ptr<::gloo::transport::Device> device = listen_at(address_of(*context), rank);
    Connecting connecting{*device, rank, size, context->getTimeout()};
    const std::size_t bytes = connecting.bytes_of_address(), all = bytes * as_size(size);
    std::vector<char> mine(all), theirs(all);
    for (int other = 0; other < size; ++other)
      if (other != rank) std::ranges::copy(connecting.address_for(other), mine.begin() + static_cast<std::ptrdiff_t>(bytes) * other);
    ::gloo::AlltoallOptions options{context};
    options.setInput(mine.data(), all);
    options.setOutput(theirs.data(), all);
    ::gloo::alltoall(options);
    for (int other = 0; other < size; ++other) {
      const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(bytes) * other;
      if (other != rank) connecting.connect(other, {begin, begin + static_cast<std::ptrdiff_t>(bytes)});
    }
    return connecting.connections();
  } catch (const Error&) {
    throw;
  } catch (const ::gloo::IoException& error) {
    Failure{Failure::Kind::lost, -1,
            text("rank ", rank, " could not open its own connections beside the given Gloo context; ",
                 "Gloo does not say which rank is gone, only '", error.what(), "'")}
        .raise();
  } catch (const std::exception& error) {
    throw ConfigError{
        text("rank ", rank, " was given a Gloo context that cannot be used: ", error.what(), "; its ranks must be connected")};
  }
}

}  // namespace pdp::comm::gloo
