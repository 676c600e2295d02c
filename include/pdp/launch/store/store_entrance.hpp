#pragma once

/// How a TcpStoreServer accepts connections and identifies their ranks: the definitions for tcp_store_server.hpp, which includes this
/// header.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/join/handshake/server.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

namespace pdp::launch {

inline void TcpStoreServer::accept() {
  for (int accepted = 0; accepted < 64 && guests_.size() < most_guests(); ++accepted) {
    comm::Descriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    const auto strange = [](const Guest& guest) { return !guest.known(); };
    if (!socket) {
      if (!comm::is_shortage(errno)) return;
      // Connections that are not authenticated end soon and free their descriptors. Ranks stay until all ranks have connected. So no
      // descriptor becomes free if all connections are those of ranks.
      if (std::ranges::none_of(guests_, strange)) refuse_more(errno);
      ::poll(nullptr, 0, 10);  // the listener stays ready: do not spin
      return;
    }
    if (std::ranges::count_if(guests_, strange) >= static_cast<std::ptrdiff_t>(most_strangers) + self_.size)
      guests_.erase(std::ranges::find_if(guests_, strange));
    welcome(std::move(socket));
  }
}

inline void TcpStoreServer::refuse_more(int error) {
  {
    const std::lock_guard lock{mutex_};
    if (std::ranges::count(has_come_, true) == self_.size) return;
  }
  fail({comm::Failure::Kind::lost, 0,
        text("the job's store, which rank 0 (or the launcher) hosts, holds the connections of ", guests_.size(), " of ", self_.size,
             " ranks and cannot take another one: ", comm::describe_system_error(error))});
  tell_failure();
  spare_.close();  // frees a descriptor for one client at a time, which gets the failure and is disconnected
}

inline void TcpStoreServer::welcome(comm::Descriptor socket) {
  Guest guest{.socket = std::move(socket), .since = comm::Clock::now()};
  try {
    guest.shake = std::make_unique<handshake::Server>(self_, key_, voucher_.grounds(), voucher_.credential());
  } catch (const Error&) {  // no random bytes now; the guest will connect again
    return;
  }
  guest.out = guest.shake->greeting();
  guests_.emplace_back(std::move(guest)).flush();
}

inline void TcpStoreServer::get_acquainted(Guest& guest) {
  using Stage = handshake::Server::Stage;
  handshake::Server& shake = *guest.shake;
  const std::span<char> space = shake.space();
  const ssize_t read = ::recv(guest.socket.get(), space.data(), space.size(), 0);
  if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) guest.closed = true;
  if (read <= 0) return;
  shake.took(as_size(read));
  if (shake.stage() == Stage::hearing) return;
  const int rank = shake.theirs().from;
  handshake::Verdict verdict = shake.verdict();
  if (shake.stage() == Stage::asked &&
      std::ranges::any_of(guests_, [rank](const Guest& other) { return other.rank == rank && !other.has_left(); }))
    verdict = handshake::Verdict::duplicate;
  if (verdict != handshake::Verdict::stranger) guest.out += handshake::bytes_of(shake.answer(verdict));
  guest.flush();
  if (verdict != handshake::Verdict::welcome) {
    guest.closed = true;
    return;
  }
  guest.rank = rank;
  guest.shake.reset();
}

}  // namespace pdp::launch
