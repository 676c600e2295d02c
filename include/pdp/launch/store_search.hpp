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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/descriptor.hpp>
#include <pdp/comm/handshake/client.hpp>
#include <pdp/comm/handshake/explain.hpp>
#include <pdp/launch/address.hpp>
#include <pdp/launch/voucher.hpp>

namespace pdp::launch {

/// Finds out on which of several ports the job's store is: rank 0 has taken the first that was free, and other programs may have the
/// others. Connects to all at once, and hears who greets as a store of this job. Nothing is said, so nobody who answers is believed yet:
/// the store's client proves that (see TcpStore).
class StoreSearch {
 public:
  StoreSearch(std::string host, std::span<const std::uint16_t> ports, int rank, int size, const Access& access)
      : host_{std::move(host)},
        ports_(ports.begin(), ports.end()),
        access_{access},
        self_{comm::handshake::Self::of(comm::handshake::Purpose::store, rank, size, access.job)} {}

  /// Throws Timeout if no store of this job is found before the deadline, UsageError if nothing could prove that it is one.
  std::uint16_t port(comm::TimePoint deadline) {
    std::chrono::milliseconds pause{10}, patience{500};
    while (true) {
      if (const std::uint16_t found = look(std::min(deadline, comm::Clock::now() + patience)); found != 0) return found;
      if (comm::Clock::now() + pause >= deadline) break;
      ::poll(nullptr, 0, static_cast<int>(pause.count()));
      pause = std::min(2 * pause, std::chrono::milliseconds{200});
      patience *= 2;  // with those that are too busy to answer
    }
    std::string list;
    for (const std::uint16_t port : ports_) list += text(list.empty() ? "" : ", ", port);
    throw Timeout{text("the job's store was not found at ", host_, " before the deadline for the start (PDP_TIMEOUT), at any of the ports ",
                       list, ", of which rank 0 takes the first that is free: ", why_, "; is rank 0 running there?")};
  }

 private:
  struct Door {
    std::uint16_t port;
    Address address;
    comm::Descriptor socket;
    comm::handshake::Client shake;
    bool closed = false;
  };

  /// Returns the port, or 0 if no door turns out to be the store's until then.
  std::uint16_t look(comm::TimePoint until) {
    std::list<Door> doors;
    for (const std::uint16_t port : ports_) {
      for (const Address& address : resolve(host_, port, why_)) {
        static_cast<void>(choose_grounds(access_, address));
        Door door{port, address, comm::Descriptor{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)},
                  comm::handshake::Client{self_, comm::handshake::nobody}};
        if (::connect(door.socket.get(), address.get(), address.size) == 0 || errno == EINPROGRESS)
          doors.push_back(std::move(door));
        else
          why_ = text(address.number(), ": ", std::strerror(errno));
      }
    }
    while (!doors.empty() && comm::Clock::now() < until) {
      polled_.clear();
      for (const Door& door : doors) polled_.push_back({.fd = door.socket.get(), .events = POLLIN, .revents = 0});
      const timespec left = comm::time_left(until);
      ::ppoll(polled_.data(), polled_.size(), &left, nullptr);
      std::size_t i = 0;
      for (Door& door : doors)
        if (polled_[i++].revents != 0 && hear(door)) return door.port;
      doors.remove_if([](const Door& door) { return door.closed; });
    }
    return 0;
  }

  /// Whether it has greeted as the store of this job.
  bool hear(Door& door) {
    using Stage = comm::handshake::Client::Stage;
    while (door.shake.stage() == Stage::greeted) {
      const std::span<char> space = door.shake.space();
      const ssize_t read = ::recv(door.socket.get(), space.data(), space.size(), 0);
      if (read < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (read <= 0) {
        why_ = text(door.address.number(), ", port ", door.port, ": ", read == 0 ? "hangs up" : std::strerror(errno));
        door.closed = true;
        return false;
      }
      door.shake.took(static_cast<std::size_t>(read));
    }
    if (door.shake.stage() == Stage::invited) return true;
    why_ = comm::handshake::explain(door.shake, text(door.address.number(), ", port ", door.port, ","));
    door.closed = true;
    return false;
  }

  std::string host_;
  std::vector<std::uint16_t> ports_;
  const Access& access_;
  comm::handshake::Self self_;
  std::string why_ = "nothing answers";
  std::vector<pollfd> polled_;
};

}  // namespace pdp::launch
