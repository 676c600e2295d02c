#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<asio/ip/tcp.hpp>)  // else line.hpp says what is missing
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#endif

#include <pdp/comm/message/stream/heartbeat.hpp>
#include <pdp/comm/message/stream/links.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/comm/shm/this_host.hpp>
#include <pdp/comm/tcp/acknowledged.hpp>
#include <pdp/comm/tcp/lines.hpp>
#include <pdp/comm/tcp/pulses.hpp>
#include <pdp/comm/wait_until.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// The connections of one rank to others, made when either side first wants them. A helper thread, which sleeps nearly always, makes them.
/// It also exchanges heartbeats with the neighbours in the ring of ranks (see Pulses), and receives the world's failure from them. The
/// owner, which is the rank's own thread, takes the results when news() is true.
class Mesh {
 public:
  using Purpose = handshake::Purpose;

  /// A new connection to another rank, on which nothing has been sent since the handshake.
  struct Arrival {
    int rank;
    Descriptor socket;
  };

  /// Listens on a port that the system chooses, at one address only. Throws ConfigError if it cannot.
  Mesh(const std::string& address, const handshake::Self& own)
      : own_{own},
        states_(as_size(own.size)),
        lines_{io_,
               address,
               own,
               {.judge = [this](int rank, Purpose purpose) { return judge(rank, purpose); },
                .joined = [this](int rank, Purpose purpose, bool dialled,
                                 Socket socket) { joined(rank, purpose, dialled, std::move(socket)); },
                .absent = [this](int rank, Purpose purpose, const std::string& where) { absent(rank, purpose, where); },
                .misfit = [this](const std::string& why) { misfit(why); },
                .exhausted = [this](const std::string& why) { exhausted(why); }}},
        pulses_{own.rank, own.size, [this](const Failure& failure) { failed(failure); }},
        bell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {
    if (!bell_) throw ConfigError{text("rank ", own.rank, " cannot create an eventfd: ", describe_system_error(errno))};
  }
  Mesh(Mesh&&) = delete;
  /// Stops the thread. Without a leave() before, the neighbours assume that this rank's process has ended.
  ~Mesh() { stop(); }

  /// Returns the address and port at which other ranks reach this one, then its process and host, for ranks of the same host.
  [[nodiscard]] std::string address() const { return text(lines_.address(), ' ', ::getpid(), ' ', shm::this_host()); }

  /// Starts the thread and accepts connections of ranks that know the key.
  void open(const handshake::Key& key) {
    lines_.open(key);
    try {
      thread_ = std::thread{[this] { run(); }};
    } catch (const std::system_error& error) {
      throw ConfigError{text("rank ", own_.rank, " cannot start its connection thread: ", describe_system_error(error.code().value()))};
    }
  }
  /// Waits until this rank is connected to its neighbours in the ring. Call this once, after open(). `addresses`: of all ranks, as they
  /// published them. Throws Timeout, which names the missing neighbours, ConfigError if a rank of the job is of another build or was
  /// started twice, and PeerLost if a rank is gone.
  void take_place(const std::vector<std::string>& addresses, TimePoint deadline) {
    for (int rank = 0; rank < own_.size; ++rank) endpoints_.push_back(lines_.endpoint_of(rank, addresses[as_size(rank)]));
    const auto process_of = [&](int rank) { return process_here(addresses[as_size(rank)]); };
    asio::post(io_, [this, before = process_of(pulses_.before()), after = process_of(pulses_.after())] {
      pulses_.watch(before, after);
      if (pulses_.dials()) dial(pulses_.before(), Purpose::pulse);
    });
    std::unique_lock lock{mutex_};
    wait_until(stands_, lock, deadline, [this] { return in_place_ || failure_ || !misfit_.empty(); });
    if (!misfit_.empty()) throw ConfigError{misfit_};
    if (failure_) {
      // The neighbours must receive this failure, or they would report that this rank is gone.
      const TimePoint until = std::min(deadline, Clock::now() + passing_on);
      wait_until(stands_, lock, until, [this] { return in_place_; });
      lock.unlock();
      leave(until);
      failure_->raise();
    }
    if (in_place_) return;
    lock.unlock();
    stop();  // the state of the helper thread may be read after this
    throw Timeout{
        text("no connection between rank ", own_.rank, " and ", pulses_.missing(), " (of ", own_.size,
             " ranks) was made before the deadline for the start (PDP_TIMEOUT); the peer has failed, or cannot be reached from here",
             lines_.why().empty() ? "" : text(" (", lines_.why(), ')'))};
  }

  /// Requests a connection to a rank, which will be among the arrivals.
  void want(int rank) {
    asio::post(io_, [this, rank] {
      if (state(rank) != State::none) return;
      state(rank) = State::wanted;
      dial(rank, Purpose::data);
    });
  }
  /// Passes the world's failure on to all ranks.
  void tell(const Failure& failure) {
    asio::post(io_, [this, failure] { pulses_.tell(failure); });
  }
  /// Sets how long a neighbour may be silent; zero means for ever.
  void heartbeat(Duration duration) {
    asio::post(io_, [this, duration] { pulses_.patience(duration); });
  }

  /// Returns whether there is anything to take. Reads one flag.
  [[nodiscard]] bool news() const { return news_.load(std::memory_order_acquire); }
  /// Returns a descriptor that is readable while there is news.
  [[nodiscard]] int descriptor() const { return bell_.get(); }
  /// Takes the new connections, and adds all other news to `news`.
  std::vector<Arrival> take(stream::News& news) {
    const std::lock_guard lock{mutex_};
    news_.store(false, std::memory_order_relaxed);
    std::uint64_t rung = 0;
    static_cast<void>(!::read(bell_.get(), &rung, sizeof rung));
    news.failure = failure_;
    news.left = std::exchange(absent_, {});
    return std::exchange(arrivals_, {});
  }

  /// Says goodbye to the neighbours, and waits until they have received it, or until the given time.
  void leave(TimePoint until) noexcept {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { pulses_.leave(); });
    stop();
    for (const int socket : pulses_.sockets())
      while (socket >= 0 && !acknowledged(socket) && Clock::now() < until) ::poll(nullptr, 0, 1);
  }

 private:
  enum class State : unsigned char { none, wanted, joined };
  static constexpr std::chrono::milliseconds passing_on{500};  // how long a failure may delay a rank that is still starting

  /// Returns the process in a rank's address; 0 if it is on another host, or is this process.
  static pid_t process_here(const std::string& address) {
    std::istringstream words{address};
    std::string host, port, place;
    pid_t process = 0;
    if (!(words >> host >> port >> process) || !(words >> place) || place != shm::this_host()) return 0;
    return process == ::getpid() ? 0 : process;
  }

  [[nodiscard]] State& state(int rank) { return states_[as_size(rank)]; }

  void stop() noexcept {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { stopping_ = true; });
    thread_.join();
  }
  void run() {
    stream::Heartbeat::hold_back_signals();
    for (TimePoint next_beat = Clock::now(); !stopping_;) {
      const TimePoint now = Clock::now();
      if (now >= next_beat) {
        next_beat = now + stream::Heartbeat::interval;
        pulses_.beat();
      }
      lines_.look_at_clock(now);
      io_.run_one_until(lines_.idle() ? next_beat : std::min(next_beat, now + Lines::tick));
    }
  }

  handshake::Verdict judge(int rank, Purpose purpose) {
    using Verdict = handshake::Verdict;
    if (purpose == Purpose::pulse) return pulses_.judge(rank);
    if (state(rank) == State::joined) return Verdict::duplicate;
    // If two ranks dial each other, the line that the higher rank dials is kept.
    return lines_.dials(rank, purpose) && rank < own_.rank ? Verdict::crossed : Verdict::welcome;
  }
  void dial(int rank, Purpose purpose) { lines_.dial(rank, purpose, endpoints_[as_size(rank)]); }

  void joined(int rank, Purpose purpose, bool dialled, Socket socket) {
    if (purpose == Purpose::pulse) {
      pulses_.add(dialled, std::move(socket));
      if (pulses_.complete()) tell_owner([this] { in_place_ = true; });
      return;
    }
    lines_.drop(rank, purpose);
    state(rank) = State::joined;
    std::error_code error;
    Descriptor descriptor{socket.release(error)};
    if (!error) tell_owner([&] { arrivals_.push_back({rank, std::move(descriptor)}); });
  }
  void absent(int rank, Purpose purpose, const std::string& where) {
    if (purpose == Purpose::data) return tell_owner([&] { absent_.push_back(rank); });
    pulses_.tell({Failure::Kind::lost, rank,
                  text("rank ", rank, " is gone: nothing listens at ", where,
                       " any more, so its process has ended while the job was still starting; its own output says why")});
  }
  void exhausted(const std::string& why) { pulses_.tell({Failure::Kind::lost, own_.rank, why}); }
  void misfit(const std::string& why) {
    if (in_place_) return pulses_.tell({Failure::Kind::lost, own_.rank, why});
    tell_owner([&] { misfit_ = why; });
  }
  void failed(const Failure& failure) {
    tell_owner([&] { failure_ = failure; });
  }

  template <class Change>
  void tell_owner(const Change& change) {
    const std::lock_guard lock{mutex_};
    change();
    news_.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    static_cast<void>(!::write(bell_.get(), &one, sizeof one));
    stands_.notify_all();
  }

  asio::io_context io_{1};  // first, because its users must not outlive it
  // Without this, the context stops for good when no operation is pending, for example while a shortage of descriptors prevents accepting.
  asio::executor_work_guard<Executor> work_{io_.get_executor()};
  handshake::Self own_;
  std::vector<State> states_;  // of data connections
  std::vector<Endpoint> endpoints_;
  bool stopping_ = false;
  Lines lines_;
  Pulses pulses_;
  Descriptor bell_;

  // Shared by the two threads. `mutex_` guards the members up to `in_place_`.
  std::mutex mutex_;
  std::condition_variable stands_;
  std::vector<Arrival> arrivals_;
  std::vector<int> absent_;
  std::optional<Failure> failure_;
  std::string misfit_;
  bool in_place_ = false;
  std::atomic<bool> news_{false};

  std::thread thread_;
};

}  // namespace pdp::comm::tcp
