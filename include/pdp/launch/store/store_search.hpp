#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/explain.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/access/voucher.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/launch/store/pace.hpp>

namespace pdp::launch {

/// Finds the port of the job's store among several: rank 0 has taken the first that was free, and other programs may have the others.
/// Connects to all ports at once, and again to those that refuse or hang up, until one greets as a store of this job. Sends nothing. The
/// greeting is not authenticated yet: the store's client does that (see TcpStore).
class StoreSearch {
 public:
  static constexpr Pace usual_pace{.first_patience = std::chrono::milliseconds{500}};

  /// Borrows `access`.
  StoreSearch(std::string host, std::span<const std::uint16_t> ports, int rank, int size, const Access& access,
              const Pace& pace = usual_pace)
      : host_{std::move(host)},
        ports_(ports.begin(), ports.end()),
        access_{access},
        pace_{pace},
        self_{comm::handshake::Self::of(comm::handshake::Purpose::store, rank, size, access.job)} {}

  /// Returns the port of the store. Throws Timeout if no store of this job is found before the deadline, UsageError if nothing could
  /// authenticate a store at that host (see choose_grounds), and ConfigError if there is no descriptor for a connection.
  std::uint16_t port(comm::TimePoint deadline) {
    for (comm::Duration pause = pace_.first_pause;; pause = pace_.longer_pause(pause)) {
      connect();
      if (const std::uint16_t found = listen(std::min(deadline, comm::Clock::now() + pause)); found != 0) return found;
      if (comm::Clock::now() >= deadline) break;
    }
    std::string list;
    for (const std::uint16_t port : ports_) list += text(list.empty() ? "" : ", ", port);
    throw Timeout{text("the job's store was not found at ", host_, " before the deadline for the start (PDP_TIMEOUT), on any of the ports ",
                       list, " (rank 0 uses the first that is free): ", heard_.empty() ? why_ : heard_, "; is rank 0 running there?")};
  }

 private:
  /// A possible address and port of the store, and the connection to it, if there is one.
  struct Door {
    Address address;
    comm::Duration patience;  // grows, since a busy store may need longer to greet
    comm::Descriptor socket{};
    std::optional<comm::handshake::Client> shake{};
    comm::TimePoint until{};

    [[nodiscard]] bool is_at(const Address& other) const { return address.port() == other.port() && address.number() == other.number(); }
  };

  /// Connects to each address of the host to which there is no connection. Keeps connections on which nothing has arrived yet. So a silent
  /// program at one port does not delay the search at the others.
  void connect() {
    for (const std::uint16_t port : ports_) {
      for (const Address& address : resolve(host_, port, why_)) {
        static_cast<void>(choose_grounds(access_, address));
        auto door = std::ranges::find_if(doors_, [&](const Door& each) { return each.is_at(address); });
        if (door == doors_.end()) door = doors_.insert(doors_.end(), {.address = address, .patience = pace_.first_patience});
        if (!door->socket) connect(*door);
      }
    }
  }
  void connect(Door& door) {
    comm::Descriptor socket{::socket(door.address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const bool connects = socket && (::connect(socket.get(), door.address.get(), door.address.size) == 0 || errno == EINPROGRESS);
    if (const int error = errno; !connects) {
      if (!socket && comm::is_shortage(error) && std::ranges::all_of(doors_, [](const Door& each) { return !each.socket; }))
        throw ConfigError{
            text("cannot connect to the job's store at ", host_, ", port ", door.address.port(), ": ", comm::describe_system_error(error))};
      why_ = text(door.address.number(), ", port ", door.address.port(), ": ", std::strerror(error));
      return;
    }
    door.socket = std::move(socket);
    door.shake.emplace(self_, comm::handshake::no_rank);
    door.until = comm::Clock::now() + door.patience;
  }

  /// Returns the port of the store, or 0 if none has greeted by the given time.
  std::uint16_t listen(comm::TimePoint until) {
    while (true) {
      const bool last = comm::Clock::now() >= until;  // then poll once more: this process itself may have got no processor time
      polled_.clear();
      for (const Door& door : doors_) polled_.push_back({.fd = door.socket.get(), .events = POLLIN, .revents = 0});
      const timespec left = comm::time_left(until);
      ::ppoll(polled_.data(), polled_.size(), &left, nullptr);
      std::size_t i = 0;
      for (Door& door : doors_)
        if (polled_[i++].revents != 0 && hear(door)) return door.address.port();
      const comm::TimePoint now = comm::Clock::now();
      for (Door& door : doors_) {
        if (!door.socket || now < door.until) continue;
        why_ = text(door.address.number(), ", port ", door.address.port(), ": nothing answers");
        door.patience = pace_.longer_patience(door.patience);
        door.socket.close();
      }
      if (last) return 0;
    }
  }

  /// Reads from a connection. Returns whether the other end has greeted as the store of this job.
  bool hear(Door& door) {
    using Stage = comm::handshake::Client::Stage;
    comm::handshake::Client& shake = *door.shake;
    while (shake.stage() == Stage::greeted) {
      const std::span<char> space = shake.space();
      const ssize_t read = ::recv(door.socket.get(), space.data(), space.size(), 0);
      const int error = read < 0 ? errno : 0;
      if (error == EAGAIN || error == EINTR) return false;
      if (read <= 0) {
        why_ = text(door.address.number(), ", port ", door.address.port(), ": ",
                    read == 0 ? "the connection was closed" : std::strerror(error));
        door.socket.close();
        return false;
      }
      shake.took(as_size(read));
    }
    if (shake.stage() == Stage::invited) return true;
    heard_ = comm::handshake::explain(shake, text(door.address.number(), ", port ", door.address.port(), ","));
    door.socket.close();
    return false;
  }

  std::string host_;
  std::vector<std::uint16_t> ports_;
  const Access& access_;
  Pace pace_;
  comm::handshake::Self self_;
  std::string why_ = "nothing answers";
  std::string heard_;  // explains the last greeting, which says more than why_
  std::list<Door> doors_;
  std::vector<pollfd> polled_;
};

}  // namespace pdp::launch
