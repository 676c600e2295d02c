#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
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
#include <pdp/comm/os/blocked_signals.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/comm/wait_until.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/access/voucher.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/launch/store/store_entries.hpp>
#include <pdp/launch/store/store_guest.hpp>
#include <pdp/launch/store/store_listener.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

namespace handshake = comm::handshake;

/// Hosts the job's store on a thread of its own, as long as this object exists. Listens at one address only. Drops a connection if the peer
/// does not prove in time that it is a rank of the job (see comm/join/handshake/server.hpp). Bounds the number of connections and the
/// memory that they use.
class TcpStoreServer {
 public:
  /// Serves a world of `size` ranks. Port 0: the system chooses a free port. `deadline`: for munge to encrypt the job's secret, if the
  /// grounds need it. Throws PortTaken if the port is taken, ConfigError if it cannot listen for another reason, and as Voucher does.
  explicit TcpStoreServer(const std::string& host = "127.0.0.1", std::uint16_t port = 0, int size = 1, const Access& access = {},
                          comm::TimePoint deadline = comm::Clock::now() + default_patience)
      : listener_{listen_for_store(host, port)},
        voucher_{access, Address::of(listener_.get()), deadline},
        self_{handshake::Self::of(handshake::Purpose::store, handshake::no_rank, size, access.job)},
        key_{voucher_.membership(), handshake::Purpose::store},
        wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
        spare_{::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0)},
        has_come_(as_size(size)) {
    if (!wake_ || !spare_) throw ConfigError{text("the job's store cannot open its descriptors: ", comm::describe_system_error(errno))};
    const comm::BlockedSignals blocked;
    try {
      thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
    } catch (const std::system_error& error) {
      throw ConfigError{text("the job's store cannot start a thread: ", comm::describe_system_error(error.code().value()))};
    }
  }
  TcpStoreServer(TcpStoreServer&&) = delete;
  ~TcpStoreServer() {
    thread_.request_stop();
    ::eventfd_write(wake_.get(), 1);
  }

  /// Returns the port at which the store listens.
  [[nodiscard]] std::uint16_t port() const { return Address::of(listener_.get()).port(); }

  /// Waits until all ranks that have connected have disconnected again, at most until the deadline.
  void wait_until_alone(comm::TimePoint deadline) {
    std::unique_lock lock{mutex_};
    comm::wait_until(changed_, lock, deadline, [this] { return ranks_here_ == 0; });
  }
  /// If the job cannot start, waits until all ranks from `first` on have connected and no rank is connected any more, at most until the
  /// deadline.
  void wait_until_told(int first, comm::TimePoint deadline) {
    std::unique_lock lock{mutex_};
    if (failure_.empty()) return;
    comm::wait_until(changed_, lock, deadline, [this, first] {
      return ranks_here_ == 0 && std::all_of(has_come_.begin() + first, has_come_.end(), [](bool come) { return come; });
    });
  }
  /// Returns whether that rank has ever connected and proved its identity.
  [[nodiscard]] bool has_come(int rank) {
    const std::lock_guard lock{mutex_};
    return has_come_[as_size(rank)];
  }
  /// Tells all ranks why the job cannot start, including those that connect later. The first failure counts.
  void fail(const comm::Failure& failure) {
    {
      const std::lock_guard lock{mutex_};
      if (!failure_.empty()) return;
      failure_ = comm::encode(failure).substr(0, StoreMessage::longest_value);
    }
    ::eventfd_write(wake_.get(), 1);
  }

 private:
  using Guest = StoreGuest;

  static constexpr std::chrono::seconds default_patience{60};
  static constexpr std::size_t most_strangers = 128;  // unauthenticated guests, in addition to one for each rank
  static constexpr std::chrono::seconds patience{5};  // for a guest to prove its identity

  /// Returns how many connections the server accepts at once: those of all ranks, which stay until the job has started, and of strangers.
  [[nodiscard]] std::size_t most_guests() const { return most_strangers + 2 * as_size(self_.size); }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      polled_.assign({{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                      {.fd = guests_.size() < most_guests() ? listener_.get() : -1, .events = POLLIN, .revents = 0}});
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
        if (guest.waits_for && now >= guest.waits_for->second) guest.answer(StoreMessage::Kind::absent);
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
  /// Sends the failure to guests that wait for a value. Other guests get it as the answer to their next request.
  void tell_failure() {
    if (failure().empty()) return;
    for (Guest& guest : guests_)
      if (guest.waits_for) guest.answer(StoreMessage::Kind::failed, failure());
  }
  [[nodiscard]] std::string failure() {
    const std::lock_guard lock{mutex_};
    return failure_;
  }

  void accept();
  void refuse_more(int error);
  void welcome(comm::Descriptor socket);
  void get_acquainted(Guest& guest);

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
    guest.flush();
  }

  /// Carries out one request if all of it has arrived. Returns whether it did. A guest makes one request at a time, so `in` never holds
  /// more than one.
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
      guest.answer(StoreMessage::Kind::ok);
      return true;
    }
    if (const std::string why = failure(); !why.empty()) {
      guest.answer(StoreMessage::Kind::failed, why);
      return true;
    }
    switch (request.kind) {
      case StoreMessage::Kind::set:
        conclude(guest, key, entries_.set(key, value));
        break;
      case StoreMessage::Kind::wait:
        if (const std::string* const found = entries_.find(key))
          guest.answer(StoreMessage::Kind::ok, *found);
        else
          guest.waits_for.emplace(key, comm::Clock::now() + std::chrono::milliseconds{request.milliseconds});
        break;
      case StoreMessage::Kind::add:
        conclude(guest, key, entries_.add(key, value));
        break;
      default:
        guest.closed = true;
    }
    return true;
  }

  /// Answers a guest, and sends the value of a new entry to the guests that wait for it.
  void conclude(Guest& guest, const std::string& key, const StoreEntries::Outcome& outcome) {
    if (outcome.is_new)
      for (Guest& other : guests_)
        if (other.waits_for && other.waits_for->first == key) other.answer(StoreMessage::Kind::ok, *entries_.find(key));
    guest.answer(outcome.kind, outcome.value);
  }

  comm::Descriptor listener_;
  Voucher voucher_;
  handshake::Self self_;
  handshake::Key key_;
  comm::Descriptor wake_;
  comm::Descriptor spare_;  // closed to admit a guest when the process has no other descriptor left
  std::list<Guest> guests_;
  std::vector<pollfd> polled_;
  StoreEntries entries_;

  // Shared by the server's thread and its owner's.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::ptrdiff_t ranks_here_ = 0;
  std::vector<bool> has_come_;  // by rank
  std::string failure_;         // why the job cannot start; empty: it can

  std::jthread thread_;
};

}  // namespace pdp::launch

#include <pdp/launch/store/store_entrance.hpp>
