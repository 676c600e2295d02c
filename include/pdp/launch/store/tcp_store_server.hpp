#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/server.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/launch/access/voucher.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

namespace handshake = comm::handshake;

/// The port at which a store was to listen belongs to another program.
class PortTaken : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Hosts the job's store, on a thread of its own, for as long as it lives. It listens at one address only. Who cannot prove that it is a
/// rank of the job (see comm/join/handshake/server.hpp) is dropped, and so is who says nothing; the memory and the connections that all of
/// them together can take are bounded.
class TcpStoreServer {
 public:
  /// For a world of `size` ranks. Port 0: the system chooses a free one. `deadline`: until when munge may take to vouch for the job. Throws
  /// ConfigError where it cannot listen, and as Voucher does.
  explicit TcpStoreServer(const std::string& host = "127.0.0.1", std::uint16_t port = 0, int size = 1, const Access& access = {},
                          comm::TimePoint deadline = comm::Clock::now() + default_patience)
      : listener_{listen(host, port)},
        voucher_{access, Address::of(listener_.get()), deadline},
        self_{handshake::Self::of(handshake::Purpose::store, handshake::nobody, size, access.job)},
        key_{voucher_.membership(), handshake::Purpose::store},
        wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
        spare_{::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0)},
        has_come_(as_size(size)) {
    if (!wake_ || !spare_)
      throw ConfigError{text("the job's store cannot have descriptors for itself: ", comm::describe_system_error(errno))};
    // Signals are for the threads of the program.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
    } catch (const std::system_error& error) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw ConfigError{text("the job's store cannot have a thread: ", comm::describe_system_error(error.code().value()))};
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  TcpStoreServer(TcpStoreServer&&) = delete;
  ~TcpStoreServer() {
    thread_.request_stop();
    ::eventfd_write(wake_.get(), 1);
  }

  [[nodiscard]] std::uint16_t port() const { return Address::of(listener_.get()).port(); }

  /// Waits until all ranks that have come have left again, not for longer than until the deadline.
  void wait_until_alone(comm::TimePoint deadline) {
    std::unique_lock lock{mutex_};
    comm::wait_until(changed_, lock, deadline, [this] { return ranks_here_ == 0; });
  }
  /// If the job cannot start: waits until all ranks from `first` on have come and all have left again, not for longer than until the
  /// deadline.
  void wait_until_told(int first, comm::TimePoint deadline) {
    std::unique_lock lock{mutex_};
    if (failure_.empty()) return;
    comm::wait_until(changed_, lock, deadline, [this, first] {
      return ranks_here_ == 0 && std::all_of(has_come_.begin() + first, has_come_.end(), [](bool come) { return come; });
    });
  }
  /// Whether that rank has proved who it is, now or earlier.
  [[nodiscard]] bool has_come(int rank) {
    const std::lock_guard lock{mutex_};
    return has_come_[as_size(rank)];
  }
  /// Tells all ranks why the job cannot start, those too that come later. The first failure counts.
  void fail(const comm::Failure& failure) {
    {
      const std::lock_guard lock{mutex_};
      if (!failure_.empty()) return;
      failure_ = comm::encode(failure).substr(0, StoreMessage::longest_value);
    }
    ::eventfd_write(wake_.get(), 1);
  }

 private:
  static constexpr std::chrono::seconds default_patience{60};
  static constexpr std::size_t most_guests = 4096;
  static constexpr std::size_t most_strangers = 128;  // beyond one for each rank
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;
  static constexpr std::size_t entry_bytes = 128;     // that an entry takes beyond its key and value
  static constexpr std::size_t counter_bytes = 20;    // of the longest number that a counter may grow to
  static constexpr std::chrono::seconds patience{5};  // with a guest that has not proved yet who it is

  struct Guest {
    comm::Descriptor socket;
    comm::TimePoint since;
    std::unique_ptr<handshake::Server> shake{};  // until it is over
    int rank = handshake::nobody;                // then
    bool closed = false;
    std::string in{}, out{};
    std::optional<std::pair<std::string, comm::TimePoint>> waits_for{};

    [[nodiscard]] bool known() const { return rank != handshake::nobody; }
  };

  static comm::Descriptor listen(const std::string& host, std::uint16_t port) {
    std::string why;
    int error = 0;
    for (const Address& address : resolve(host, port, why)) {
      comm::Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      if (!socket) {
        error = errno;
        why = comm::describe_system_error(error);
        continue;
      }
      const int on = 1;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (::bind(socket.get(), address.get(), address.size) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) return socket;
      error = errno;
      why = std::strerror(error);
    }
    const std::string place = text(host, ", port ", port);
    if (error == EADDRINUSE)
      throw PortTaken{text("the job's store cannot listen at ", place,
                           ": the port is taken by another program, perhaps another job or an earlier one that has not ended; choose "
                           "another port, the same for all ranks")};
    if (error == EADDRNOTAVAIL)
      throw ConfigError{text("the job's store cannot listen at ", place,
                             ": this machine does not have that address; it must be an address of the machine on which rank 0 runs")};
    throw ConfigError{text("the job's store cannot listen at ", place, ": ", why)};
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      polled_.assign({{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                      {.fd = guests_.size() < most_guests ? listener_.get() : -1, .events = POLLIN, .revents = 0}});
      comm::TimePoint next = comm::Clock::now() + std::chrono::hours{1};
      for (const Guest& guest : guests_) {
        polled_.push_back(
            {.fd = guest.socket.get(), .events = static_cast<short>(guest.out.empty() ? POLLIN : POLLIN | POLLOUT), .revents = 0});
        if (!guest.known()) next = std::min(next, guest.since + patience);
        if (guest.waits_for) next = std::min(next, guest.waits_for->second);
      }
      const timespec left = comm::time_left(next);
      ::ppoll(polled_.data(), polled_.size(), &left, nullptr);
      if (polled_[0].revents != 0) hear_owner();
      std::size_t i = 2;
      for (Guest& guest : guests_)
        if (const short events = polled_[i++].revents; events != 0) attend(guest, events);
      const comm::TimePoint now = comm::Clock::now();
      for (Guest& guest : guests_) {
        if (!guest.known() && now >= guest.since + patience) guest.closed = true;
        if (guest.waits_for && now >= guest.waits_for->second) answer(guest, StoreMessage::Kind::absent);
      }
      guests_.remove_if([](const Guest& guest) { return guest.closed; });
      count_ranks();
      if (polled_[1].revents != 0) accept();
    }
  }

  void count_ranks() {
    const std::lock_guard lock{mutex_};
    ranks_here_ = std::ranges::count_if(guests_, &Guest::known);
    for (const Guest& guest : guests_)
      if (guest.known()) has_come_[as_size(guest.rank)] = true;
    if (ranks_here_ == 0) changed_.notify_all();
  }
  void hear_owner() {
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    tell_failure();
  }
  /// To those who wait. The others hear of it when they ask for something.
  void tell_failure() {
    if (failure().empty()) return;
    for (Guest& guest : guests_)
      if (guest.waits_for) answer(guest, StoreMessage::Kind::failed, failure());
  }
  [[nodiscard]] std::string failure() {
    const std::lock_guard lock{mutex_};
    return failure_;
  }

  void accept() {
    for (int accepted = 0; accepted < 64 && guests_.size() < most_guests; ++accepted) {
      comm::Descriptor socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      const auto strange = [](const Guest& guest) { return !guest.known(); };
      if (!socket) {
        if (!comm::is_shortage(errno)) return;
        // Strangers go soon, and ranks do not go before all have come.
        if (std::ranges::none_of(guests_, strange)) refuse_more(errno);
        ::poll(nullptr, 0, 10);  // the listener stays ready
        return;
      }
      if (std::ranges::count_if(guests_, strange) >= static_cast<std::ptrdiff_t>(most_strangers) + self_.size)
        guests_.erase(std::ranges::find_if(guests_, strange));
      welcome(std::move(socket));
    }
  }

  void refuse_more(int error) {
    {
      const std::lock_guard lock{mutex_};
      if (std::ranges::count(has_come_, true) == self_.size) return;
    }
    fail({comm::Failure::Kind::lost, 0,
          text("the job's store, which rank 0 (or the launcher) hosts, holds the connections of ", guests_.size(), " of ", self_.size,
               " ranks and cannot take another one: ", comm::describe_system_error(error))});
    tell_failure();
    spare_.close();  // room for one guest at a time, who is told and leaves
  }

  void welcome(comm::Descriptor socket) {
    Guest guest{.socket = std::move(socket), .since = comm::Clock::now()};
    try {
      guest.shake = std::make_unique<handshake::Server>(self_, key_, voucher_.grounds(), voucher_.credential());
    } catch (const Error&) {  // no random bytes, now; it will come again
      return;
    }
    guest.out = guest.shake->greeting();
    flush(guests_.emplace_back(std::move(guest)));
  }

  void attend(Guest& guest, short events) {
    if ((events & ~POLLOUT) != 0 && !guest.known()) {
      get_acquainted(guest);
    } else if ((events & ~POLLOUT) != 0) {
      char bytes[4096];
      const ssize_t read = ::recv(guest.socket.get(), bytes, sizeof bytes, 0);
      if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) guest.closed = true;
      if (read > 0) guest.in.append(bytes, as_size(read));
      while (!guest.closed && take_request(guest)) {
      }
    }
    flush(guest);
  }

  void get_acquainted(Guest& guest) {
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
        std::ranges::any_of(guests_, [rank](const Guest& other) { return other.rank == rank && !has_left(other); }))
      verdict = handshake::Verdict::duplicate;
    if (verdict != handshake::Verdict::stranger) guest.out += handshake::bytes_of(shake.answer(verdict));
    flush(guest);
    if (verdict != handshake::Verdict::welcome) {
      guest.closed = true;
      return;
    }
    guest.rank = rank;
    guest.shake.reset();
  }

  /// Whether a guest has closed its connection, perhaps behind a request that has not been read yet.
  static bool has_left(const Guest& guest) {
    pollfd polled{.fd = guest.socket.get(), .events = POLLRDHUP, .revents = 0};
    return guest.closed || (::poll(&polled, 1, 0) == 1 && polled.revents != 0);
  }

  /// Carries out one request if it is there as a whole. A guest speaks one at a time, so what it has sent is never more than one.
  bool take_request(Guest& guest) {
    StoreMessage request;
    if (guest.in.size() < sizeof request) return false;
    std::memcpy(&request, guest.in.data(), sizeof request);
    if (!request.sound() || guest.waits_for) {
      guest.closed = true;
      return false;
    }
    const std::size_t bytes = sizeof request + request.key_bytes + request.value_bytes;
    if (guest.in.size() < bytes) return false;
    const std::string key = guest.in.substr(sizeof request, request.key_bytes);
    const std::string value = guest.in.substr(sizeof request + request.key_bytes, request.value_bytes);
    guest.in.erase(0, bytes);
    if (request.kind == StoreMessage::Kind::fail) {
      fail(comm::decode_failure(value));
      tell_failure();
      answer(guest, StoreMessage::Kind::ok);
      return true;
    }
    if (const std::string why = failure(); !why.empty()) {
      answer(guest, StoreMessage::Kind::failed, why);
      return true;
    }
    switch (request.kind) {
      case StoreMessage::Kind::set:
        set(guest, key, value);
        break;
      case StoreMessage::Kind::wait:
        if (const auto found = values_.find(key); found != values_.end())
          answer(guest, StoreMessage::Kind::ok, found->second);
        else
          guest.waits_for.emplace(key, comm::Clock::now() + std::chrono::milliseconds{request.milliseconds});
        break;
      case StoreMessage::Kind::add:
        add(guest, key, value);
        break;
      default:
        guest.closed = true;
    }
    return true;
  }

  void set(Guest& guest, const std::string& key, const std::string& value) {
    if (const auto found = values_.find(key); found != values_.end())
      return answer(guest, found->second == value ? StoreMessage::Kind::ok : StoreMessage::Kind::taken);
    if (!make(key, value)) return answer(guest, StoreMessage::Kind::full);
    answer(guest, StoreMessage::Kind::ok);
  }

  /// Answers what the counter is then; for what is no counter, what it is.
  void add(Guest& guest, const std::string& key, const std::string& amount) {
    auto found = values_.find(key);
    try {
      const std::string sum = std::to_string(added(key, found != values_.end() ? found->second : "0", added("amount", amount, 0)));
      if (found != values_.end())
        found->second = sum;
      else if (!make(key, sum))
        return answer(guest, StoreMessage::Kind::full);
      answer(guest, StoreMessage::Kind::ok, sum);
    } catch (const ConfigError&) {
      answer(guest, StoreMessage::Kind::taken, found != values_.end() ? found->second : amount);
    }
  }

  /// A new entry, and word of it to those who wait for it. False where there is no room.
  bool make(const std::string& key, const std::string& value) {
    const std::size_t bytes = key.size() + std::max(value.size(), counter_bytes) + entry_bytes;
    if (bytes_ + bytes > most_bytes) return false;
    bytes_ += bytes;
    values_.emplace(key, value);
    for (Guest& other : guests_)
      if (other.waits_for && other.waits_for->first == key) answer(other, StoreMessage::Kind::ok, value);
    return true;
  }

  void answer(Guest& guest, StoreMessage::Kind kind, std::string_view value = {}) {
    guest.waits_for.reset();
    guest.out += encode({.kind = kind}, {}, value);
    flush(guest);
  }

  void flush(Guest& guest) {
    if (guest.out.empty() || guest.closed) return;
    const ssize_t sent = ::send(guest.socket.get(), guest.out.data(), guest.out.size(), MSG_NOSIGNAL);
    if (sent > 0) guest.out.erase(0, as_size(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) guest.closed = true;
    if (guest.out.size() > most_unread) guest.closed = true;
  }
  static constexpr std::size_t most_unread = 2 * StoreMessage::longest_value;

  comm::Descriptor listener_;
  Voucher voucher_;
  handshake::Self self_;
  handshake::Key key_;
  comm::Descriptor wake_;
  comm::Descriptor spare_;  // for a guest, where the process has no other any more
  std::list<Guest> guests_;
  std::vector<pollfd> polled_;
  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;

  // Between the server's thread and its owner's.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t ranks_here_ = 0;
  std::vector<bool> has_come_;  // by rank
  std::string failure_;         // why the job cannot start; empty while it can

  std::jthread thread_;
};

}  // namespace pdp::launch
