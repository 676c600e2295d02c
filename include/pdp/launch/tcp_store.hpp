#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/comm/descriptor.hpp>
#include <pdp/comm/store.hpp>
#include <pdp/comm/waiting.hpp>
#include <pdp/launch/address.hpp>
#include <pdp/launch/store_protocol.hpp>

namespace pdp::launch {

/// The job's store, seen from one rank. Not shared between threads.
class TcpStore {
 public:
  /// Connects to the server, trying again until the deadline: it may start later than this rank. Throws Timeout.
  TcpStore(std::string host, std::uint16_t port, comm::TimePoint deadline) : host_{std::move(host)}, port_{port} {
    std::string why = "nothing answered";
    for (auto pause = first_pause; !connect(deadline, why); pause = std::min(2 * pause, longest_pause)) {
      if (comm::Clock::now() + pause >= deadline)
        throw Timeout{text("the job's store at ", place(), " was not reached before the deadline for the start (PDP_TIMEOUT): ", why,
                           "; is the rank or launcher that hosts it running there, and are address and port right?")};
      ::poll(nullptr, 0, static_cast<int>(pause.count()));
    }
  }

  void set(std::string_view key, std::string_view value) {
    check_size(key, value);
    const auto [answer, ignored] = exchange({.kind = StoreMessage::Kind::set}, key, value, comm::Clock::now() + answer_time);
    if (answer.kind == StoreMessage::Kind::taken)
      throw ConfigError{
          text("'", key, "' is in the job's store at ", place(),
               " already, with another value; either two processes have the same rank, or two jobs use the same address and port")};
    if (answer.kind != StoreMessage::Kind::ok) throw full();
  }

  std::string wait(std::string_view key, comm::TimePoint deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - comm::Clock::now()).count();
    const auto milliseconds = static_cast<std::uint32_t>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<std::int32_t>::max()));
    auto [answer, value] = exchange({.kind = StoreMessage::Kind::wait, .milliseconds = milliseconds}, key, {},
                                    std::max(deadline, comm::Clock::now()) + answer_time);
    if (answer.kind != StoreMessage::Kind::ok)
      throw Timeout{text("nobody has set '", key, "' in the job's store at ", place(), " before the deadline")};
    return std::move(value);
  }

  std::optional<std::string> get(std::string_view key) {
    auto [answer, value] = exchange({.kind = StoreMessage::Kind::wait, .milliseconds = 0}, key, {}, comm::Clock::now() + answer_time);
    if (answer.kind != StoreMessage::Kind::ok) return std::nullopt;
    return std::move(value);
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    check_size(key, {});
    const auto [answer, value] = exchange({.kind = StoreMessage::Kind::add}, key, std::to_string(amount), comm::Clock::now() + answer_time);
    if (answer.kind == StoreMessage::Kind::full) throw full();
    if (answer.kind != StoreMessage::Kind::ok) static_cast<void>(added(key, value, amount));  // which throws
    return added(key, value, 0);
  }

  /// The address by which this process reaches the store, and so the one by which others can reach this process.
  [[nodiscard]] std::string local_address() const { return Address::of(socket_.get()).number(); }

 private:
  static constexpr std::chrono::milliseconds first_pause{10};
  static constexpr std::chrono::milliseconds longest_pause{200};
  static constexpr std::chrono::seconds answer_time{5};  // for what a server does at once

  static void check_size(std::string_view key, std::string_view value) {
    if (key.size() > StoreMessage::longest_key || value.size() > StoreMessage::longest_value)
      throw ConfigError{text("the job's store takes keys of up to ", StoreMessage::longest_key, " and values of up to ",
                             StoreMessage::longest_value, " bytes; '", key, "' has ", key.size(), " and ", value.size())};
  }
  [[nodiscard]] ConfigError full() const { return ConfigError{text("the job's store at ", place(), " is full")}; }

  [[nodiscard]] std::string place() const { return text(host_, ", port ", port_); }

  bool connect(comm::TimePoint deadline, std::string& why) {
    for (const Address& address : resolve(host_, port_, why)) {
      socket_ = comm::Descriptor{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      int error = ::connect(socket_.get(), address.get(), address.size) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        if (!ready(POLLOUT, deadline))
          error = ETIMEDOUT;
        else if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
          error = errno;
      }
      // A port that the system chose for the connection's own end may be the one it looks for, while nobody listens there.
      const Address own = Address::of(socket_.get());
      if (error == 0 && own.port() == port_ && own.number() == address.number()) error = ECONNREFUSED;
      why = text(address.number(), ": ", std::strerror(error));
      if (error != 0) continue;
      try {
        if (exchange({.kind = StoreMessage::Kind::hello}, {}, {}, std::min(deadline, comm::Clock::now() + answer_time)).first.kind ==
            StoreMessage::Kind::ok)
          return true;
      } catch (const CommunicationError&) {
        why = text("what answered at ", address.number(), " is no store of pdp");
      }
    }
    return false;
  }

  std::pair<StoreMessage, std::string> exchange(const StoreMessage& request, std::string_view key, std::string_view value,
                                                comm::TimePoint until) {
    std::string bytes = encode(request, key, value);
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t done = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (done > 0)
        sent += static_cast<std::size_t>(done);
      else
        wait_or_throw(POLLOUT, until);
    }
    StoreMessage answer;
    receive(reinterpret_cast<char*>(&answer), sizeof answer, until);
    if (!answer.sound() || answer.key_bytes != 0) throw CommunicationError{text("what answers at ", place(), " is no store of pdp")};
    bytes.resize(answer.value_bytes);
    receive(bytes.data(), bytes.size(), until);
    return {answer, std::move(bytes)};
  }

  void receive(char* into, std::size_t bytes, comm::TimePoint until) {
    for (std::size_t received = 0; received < bytes;) {
      const ssize_t done = ::recv(socket_.get(), into + received, bytes - received, 0);
      if (done == 0) throw gone();
      if (done > 0)
        received += static_cast<std::size_t>(done);
      else
        wait_or_throw(POLLIN, until);
    }
  }

  /// After a call that did not go through at once.
  void wait_or_throw(short events, comm::TimePoint until) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) throw gone();
    if (!ready(events, until))
      throw Timeout{text("the job's store at ", place(), " does not answer; the rank or launcher that hosts it may be stopped")};
  }
  [[nodiscard]] PeerLost gone() const {
    return {0, text("the job's store at ", place(), " is gone; the rank or launcher that hosts it has ended")};
  }

  bool ready(short events, comm::TimePoint until) {
    pollfd polled{.fd = socket_.get(), .events = events, .revents = 0};
    while (comm::Clock::now() < until) {
      const timespec left = comm::time_left(until);
      if (::ppoll(&polled, 1, &left, nullptr) > 0) return true;
    }
    return false;
  }

  std::string host_;
  std::uint16_t port_;
  comm::Descriptor socket_;
};

static_assert(comm::Store<TcpStore>);

}  // namespace pdp::launch
