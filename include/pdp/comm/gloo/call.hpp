#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/gloo/collectives.hpp>
#include <pdp/comm/gloo/links.hpp>
#include <pdp/comm/gloo/quiet.hpp>

namespace pdp::comm::gloo {

/// A call of one rank: a collective, or a message in one or both directions. It never moves, and is reused.
class Call {
 public:
  enum class State : unsigned char { in_flight, complete, broken };

  Collective collective;
  std::array<CallChecks::Begins, 2> begins;    // offsets of the shards
  std::unique_ptr<Buffer> sending, receiving;  // of a message; null for a direction that it does not have
  std::atomic<State> state{State::complete};
  Call* next = nullptr;  // in the queue of its group

  [[nodiscard]] bool ended() const { return state.load(std::memory_order_acquire) != State::in_flight; }
  [[nodiscard]] bool is_message() const { return collective.envelope.tag != Envelope::collective; }

  /// Waits for the messages. Returns false if the wait was interrupted. Throws the exceptions of Gloo.
  bool wait_for_messages() {
    if (receiving && !received_) received_ = receiving->received();
    if (receiving && !received_) return false;
    if (sending && !sent_) sent_ = sending->sent();
    if (sending && !sent_) return false;
    state.store(State::complete, std::memory_order_release);
    return true;
  }
  /// Destroys the buffers of the messages. After that, Gloo no longer accesses their memory.
  void drop_messages() {
    receiving.reset();
    sending.reset();
    received_ = sent_ = false;
  }

 private:
  bool received_ = false, sent_ = false;
};

/// Polls messages without blocking the caller. Gloo can only wait, and a wait that times out closes all connections. So a thread waits for
/// the message that was polled last.
class Looker {
 public:
  Looker() = default;
  Looker(Looker&&) = delete;
  ~Looker() {
    const std::lock_guard lock{mutex_};
    if (current_ != nullptr) interrupt(*current_);
    thread_.request_stop();
  }

  /// Returns whether the message has ended. May report the end a moment late.
  [[nodiscard]] bool done(Call& call) {
    const std::lock_guard lock{mutex_};
    want(call);
    return call.ended();
  }
  /// Returns whether the message has ended. Waits for its end, for `time` at most.
  [[nodiscard]] bool done_within(Call& call, std::chrono::milliseconds time) {
    std::unique_lock lock{mutex_};
    const TimePoint until = Clock::now() + time;
    while (!call.ended() && Clock::now() < until) {
      want(call);
      changed_.wait_until(lock, std::min(until, Clock::now() + patience), [&] { return call.ended(); });
    }
    return call.ended();
  }
  /// Stops the wait for a call. After that, this object does not use the call any more.
  void leave(Call& call) {
    std::unique_lock lock{mutex_};
    if (wanted_ == &call) wanted_ = nullptr;
    while (current_ == &call) {
      interrupt(call);
      changed_.wait(lock);
    }
  }

 private:
  /// How long the thread waits for one message before a poll of another one may interrupt it: long enough for the wait to begin.
  static constexpr std::chrono::milliseconds patience{1};

  static void interrupt(Call& call) {
    if (call.receiving) call.receiving->interrupt();
    if (call.sending) call.sending->interrupt();
  }

  /// Makes the thread wait for this call next.
  void want(Call& call) {
    if (call.ended() || current_ == &call) return;
    if (!thread_.joinable()) thread_ = std::jthread{[this](const std::stop_token& stop) { look(stop); }};
    wanted_ = &call;
    if (current_ == nullptr)
      changed_.notify_all();
    else if (Clock::now() - since_ > patience)
      interrupt(*current_);
  }

  void look(const std::stop_token& stop) {
    Quiet::this_thread();
    std::unique_lock lock{mutex_};
    while (changed_.wait(lock, stop, [this] { return wanted_ != nullptr; }) && !stop.stop_requested()) {
      Call& call = *(current_ = std::exchange(wanted_, nullptr));
      since_ = Clock::now();
      lock.unlock();
      try {
        static_cast<void>(call.wait_for_messages());
      } catch (const std::exception&) {
        call.state.store(Call::State::broken, std::memory_order_release);
      }
      lock.lock();
      current_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Call* wanted_ = nullptr;
  Call* current_ = nullptr;  // the call that the thread waits for
  TimePoint since_;
  std::jthread thread_;
};

}  // namespace pdp::comm::gloo
