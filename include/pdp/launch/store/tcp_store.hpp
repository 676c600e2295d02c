#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/explain.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/access/voucher.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/launch/store/pace.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

namespace handshake = comm::handshake;

/// The job's store, as seen by one rank. Threads must not share it.
class TcpStore {
 public:
  /// Connects to the server as `rank` of a world of `size`. Tries again until the deadline, since the server may start later than this
  /// rank. Later calls also wait for the server until the deadline, since it may be stopped or get no processor time for a while. Throws
  /// Timeout at the deadline, ConfigError if this rank may not join or cannot prove that it may, and UsageError if the settings give ranks
  /// no way to prove it (see choose_grounds).
  TcpStore(std::string host, std::uint16_t port, comm::TimePoint deadline, int rank = 0, int size = 1, const Access& access = {},
           const Pace& pace = {})
      : host_{std::move(host)},
        port_{port},
        deadline_{deadline},
        pace_{pace},
        self_{handshake::Self::of(handshake::Purpose::store, rank, size, access.job)} {
    membership_.job = access.job;
    std::string why = "nothing answered";
    for (comm::Duration pause = pace_.first_pause; !connect(access, why); pause = pace_.longer_pause(pause)) {
      if (comm::Clock::now() + pause >= deadline)
        throw Timeout{text("the job's store at ", place(), " was not reached before the deadline for the start (PDP_TIMEOUT): ", why,
                           "; is rank 0 (or the launcher), which hosts it, running there, and are address and port right?")};
      std::this_thread::sleep_for(pause);
    }
  }

  // The calls of comm::Store.
  void set(std::string_view key, std::string_view value) {
    check_size(key, value);
    const auto [answer, ignored] = exchange({.kind = StoreMessage::Kind::set}, key, value, answer_until());
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
                                    std::max({deadline, deadline_, comm::Clock::now()}) + answer_time);
    if (answer.kind != StoreMessage::Kind::ok)
      throw Timeout{text("'", key, "' was not set in the job's store at ", place(), " before the deadline for the start (PDP_TIMEOUT)")};
    return std::move(value);
  }

  std::optional<std::string> get(std::string_view key) {
    auto [answer, value] = exchange({.kind = StoreMessage::Kind::wait, .milliseconds = 0}, key, {}, answer_until());
    if (answer.kind != StoreMessage::Kind::ok) return std::nullopt;
    return std::move(value);
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    check_size(key, {});
    const auto [answer, value] = exchange({.kind = StoreMessage::Kind::add}, key, std::to_string(amount), answer_until());
    if (answer.kind == StoreMessage::Kind::full) throw full();
    if (answer.kind != StoreMessage::Kind::ok) static_cast<void>(added(key, value, amount));  // throws ConfigError
    return added(key, value, 0);
  }

  /// Tells all ranks why the job cannot start. Gives up after time_to_tell.
  void fail(const comm::Failure& failure) {
    std::string value = comm::encode(failure);
    value.resize(std::min<std::size_t>(value.size(), StoreMessage::longest_value));
    try {
      static_cast<void>(exchange({.kind = StoreMessage::Kind::fail}, {}, value, comm::Clock::now() + time_to_tell));
    } catch (const CommunicationError&) {  // the others know another failure already, or cannot be told any more
    }
  }

  /// Returns the local address of the connection to the store. Other ranks can reach this process there.
  [[nodiscard]] std::string local_address() const { return Address::of(socket_.get()).number(); }
  /// Returns the credentials with which the ranks prove to each other that they belong to the job.
  [[nodiscard]] const comm::Membership& membership() const { return membership_; }

 private:
  static constexpr std::chrono::seconds answer_time{5};  // for the server's answer if the deadline has passed
  static constexpr std::chrono::milliseconds hanging_up{100};

  static void check_size(std::string_view key, std::string_view value) {
    if (key.size() > StoreMessage::longest_key || value.size() > StoreMessage::longest_value)
      throw ConfigError{text("the job's store accepts keys of at most ", StoreMessage::longest_key, " and values of at most ",
                             StoreMessage::longest_value, " bytes; '", key, "' has ", key.size(), ", and its value has ", value.size())};
  }
  [[nodiscard]] ConfigError full() const { return ConfigError{text("the job's store at ", place(), " is full")}; }

  [[nodiscard]] std::string place() const { return text(host_, ", port ", port_); }

  /// Returns the deadline for the answer to a request that the server answers at once.
  [[nodiscard]] comm::TimePoint answer_until() const { return std::max<comm::TimePoint>(deadline_, comm::Clock::now() + answer_time); }

  bool connect(const Access& access, std::string& why) {
    for (const Address& address : resolve(host_, port_, why)) {
      static_cast<void>(choose_grounds(access, address));  // throws before a stranger gets a byte
      socket_ = comm::Descriptor{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      if (!socket_) {
        const int error = errno;
        if (comm::is_shortage(error))
          throw ConfigError{text("cannot connect to the job's store at ", place(), ": ", comm::describe_system_error(error))};
        why = text(address.number(), ": ", std::strerror(error));
        continue;
      }
      int error = ::connect(socket_.get(), address.get(), address.size) == 0 ? 0 : errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        if (!ready(POLLOUT, deadline_))
          error = ETIMEDOUT;
        else if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
          error = errno;
      }
      // The system may choose the store's port for this end of the connection. The socket is then connected to itself, and no store listens
      // there.
      const Address own = Address::of(socket_.get());
      if (error == 0 && own.port() == port_ && own.number() == address.number()) error = ECONNREFUSED;
      why = text(address.number(), ": ", std::strerror(error));
      if (error != 0) continue;
      if (join(access, why)) return true;
    }
    return false;
  }

  /// Performs the handshake. Returns false, with the reason in `why`, if another attempt may succeed. Throws ConfigError if the rank cannot
  /// join.
  bool join(const Access& access, std::string& why) {
    using Stage = handshake::Client::Stage;
    // The server may not have seen this connection, or may have dropped it, so another attempt must follow soon. A busy server may need
    // longer, so the wait grows.
    const comm::TimePoint soon = std::min(deadline_, comm::Clock::now() + patience_);
    const std::string whom = text("the job's store at ", place());
    handshake::Client shake{self_, handshake::no_rank};
    try {
      while (shake.stage() == Stage::greeted) hear(shake, soon);
      if (shake.stage() == Stage::invited) {
        const handshake::Grounds grounds = shake.greeting().grounds;
        // Munge may take longer than the server's patience. The next attempt then has the secret at once.
        if (grounds != handshake::Grounds::munge || shake.credential() != credential_) {
          membership_.secret = obtain_secret(access, grounds, shake.credential(), whom, deadline_);
          credential_ = shake.credential();
        }
        send(handshake::bytes_of(shake.introduce(handshake::Key{membership_, handshake::Purpose::store})), deadline_);
      }
      // The server knows this connection. Another one would look like a second process of this rank.
      while (shake.stage() == Stage::introduced) hear(shake, deadline_);
    } catch (const Timeout&) {
      patience_ = pace_.longer_patience(patience_);
      why = text("the server at ", place(), " sends nothing: it is not a pdp store, or is stopped or too busy");
      return false;
    } catch (const CommunicationError&) {
      why = text("the server at ", place(), " closed the connection: it is not a pdp store, or is too busy");
      return false;
    } catch (const ConfigError&) {
      // If the process that hosts the store has ended, its secret cannot be read any more.
      if (!has_hung_up()) throw;
      why = text("the process that answered at ", place(), " has ended");
      return false;
    }
    if (shake.stage() == Stage::welcome) return true;
    why = handshake::explain(shake, whom);
    switch (shake.verdict()) {
      case handshake::Verdict::stranger:
      case handshake::Verdict::other_job:      // that job may be about to end,
      case handshake::Verdict::other_attempt:  // and so may that attempt
        return false;
      default:
        throw ConfigError{why};
    }
  }

  void hear(handshake::Client& shake, comm::TimePoint until) {
    const std::span<char> space = shake.space();
    ssize_t read = 0;
    while ((read = ::recv(socket_.get(), space.data(), space.size(), 0)) < 0) wait_or_throw(POLLIN, until);
    if (read == 0) throw gone();
    shake.took(as_size(read));
  }

  std::pair<StoreMessage, std::string> exchange(const StoreMessage& request, std::string_view key, std::string_view value,
                                                comm::TimePoint until) {
    std::string bytes = encode(request, key, value);
    send(bytes, until);
    StoreMessage answer;
    receive(reinterpret_cast<char*>(&answer), sizeof answer, until);
    if (!answer.sound() || answer.key_bytes != 0) throw CommunicationError{text("the server at ", place(), " is not a pdp store")};
    bytes.resize(answer.value_bytes);
    receive(bytes.data(), bytes.size(), until);
    if (answer.kind == StoreMessage::Kind::failed) comm::decode_failure(bytes).raise();
    return {answer, std::move(bytes)};
  }

  void send(std::string_view bytes, comm::TimePoint until) {
    while (!bytes.empty()) {
      const ssize_t done = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (done > 0)
        bytes.remove_prefix(as_size(done));
      else
        wait_or_throw(POLLOUT, until);
    }
  }

  void receive(char* into, std::size_t bytes, comm::TimePoint until) {
    for (std::size_t received = 0; received < bytes;) {
      const ssize_t done = ::recv(socket_.get(), into + received, bytes - received, 0);
      if (done == 0) throw gone();
      if (done > 0)
        received += as_size(done);
      else
        wait_or_throw(POLLIN, until);
    }
  }

  /// Waits after a system call that could not complete at once. Throws PeerLost if the call has failed, and Timeout at the given time.
  void wait_or_throw(short events, comm::TimePoint until) {
    if (errno != EAGAIN && errno != EINTR) throw gone();
    if (!ready(events, until))
      throw Timeout{text("the job's store at ", place(),
                         " has not answered before the deadline for the start (PDP_TIMEOUT); rank 0 (or the launcher), which hosts it, may "
                         "be stopped, or its machine too busy")};
  }
  [[nodiscard]] PeerLost gone() const {
    return {0, text("the job's store at ", place(), " is gone; rank 0 (or the launcher), which hosts it, has ended")};
  }

  /// Returns whether the server has closed the connection, or closes it within `hanging_up`.
  bool has_hung_up() {
    char next = 0;
    return ready(POLLIN, comm::Clock::now() + hanging_up) && ::recv(socket_.get(), &next, 1, MSG_PEEK) <= 0;
  }

  bool ready(short events, comm::TimePoint until) {
    pollfd polled{.fd = socket_.get(), .events = events, .revents = 0};
    while (true) {
      const bool last = comm::Clock::now() >= until;  // then poll once more: this process itself may have got no processor time
      const timespec left = comm::time_left(until);
      if (::ppoll(&polled, 1, &left, nullptr) > 0) return true;
      if (last) return false;
    }
  }

  std::string host_;
  std::uint16_t port_;
  comm::TimePoint deadline_;
  Pace pace_;
  comm::Duration patience_ = pace_.first_patience;  // for the handshake of one connection
  handshake::Self self_;
  comm::Membership membership_;
  std::string credential_;  // the credential that membership_.secret comes from
  comm::Descriptor socket_;
};

static_assert(comm::Store<TcpStore>);

}  // namespace pdp::launch
