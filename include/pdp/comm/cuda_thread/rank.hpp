#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/clock.hpp>
#include <pdp/comm/cuda_thread/world.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/os/waiting.hpp>

namespace pdp::comm::cuda_thread {

/// The state that all groups of one rank share. Waiting for one call advances the calls of all groups, so ranks may wait for calls of
/// different groups in different orders.
class Rank {
 public:
  Rank(std::shared_ptr<World> world, int number) : world_{std::move(world)}, number_{number} {}
  Rank(Rank&&) = delete;
  ~Rank() { world_->leave(number_); }

  [[nodiscard]] World& world() const { return *world_; }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] World::Seat& seat() const { return world_->seat(number_); }
  [[nodiscard]] int device() const { return seat().device; }
  [[nodiscard]] cudaStream_t caller() const { return caller_; }
  void caller(cudaStream_t stream) { caller_ = stream; }
  [[nodiscard]] Duration deadline() const { return deadline_; }
  void deadline(Duration duration) { deadline_ = duration; }

  void add(Group& group) { groups_.push_back(&group); }
  void remove(Group& group) { std::erase(groups_, &group); }

  /// Returns a call that no other rank reads any more, with its events.
  [[nodiscard]] Call& fresh();
  /// Takes back a call that its owner has finished with.
  void rest(Call& call) { seat().calls.give_back(call); }

  /// Throws the failure of the world, if it has failed.
  void check() {
    if (world_->failure() != nullptr) give_up();
  }
  [[noreturn]] void fail(Failure failure) {
    world_->fail(std::move(failure));
    give_up();
  }
  /// Ends the world without throwing.
  void end(Failure failure) noexcept {
    world_->fail(std::move(failure));
    quiesce();
  }

  void abort(const std::string& reason) { end({Failure::Kind::lost, number_, reason}); }
  void progress() { advance(); }
  /// Advances all calls as far as possible without waiting. Returns whether any advanced. Throws the failure of the world, if it has
  /// failed.
  bool advance();
  /// Waits until a call reaches `state`, which must be closed or complete. Throws Timeout at the deadline.
  void wait(Call& call, Call::State state);
  /// Returns whether finish() would return or throw at once.
  [[nodiscard]] bool done(Call& call);
  /// Waits until the call is complete, and takes it back.
  void finish(Call& call);
  /// Makes `stream` wait for the call. Takes the call back once it is closed.
  void finish_on(Call& call, cudaStream_t stream);
  /// Takes back a call that its owner does not wait for. Ends the world if the call is not complete.
  void abandon(Call& call) noexcept;

 private:
  [[noreturn]] void give_up() {
    quiesce();
    world_->failure()->raise();
  }
  /// Waits for the work in flight of all ranks after the world has failed, 5 s at most. That work reads and writes the memory of all ranks,
  /// which a caller may free after it catches the failure. No rank enqueues work after a failure.
  void quiesce() noexcept;
  [[nodiscard]] bool has_come(Call& call, Call::State state);
  [[nodiscard]] Failure timeout_of(const Call& call) const;

  std::shared_ptr<World> world_;
  int number_;
  cudaStream_t caller_ = nullptr;
  Duration deadline_ = default_deadline;
  std::vector<Group*> groups_;
  bool is_quiet_ = false;
};

inline Call& Rank::fresh() {
  check();
  const auto make_events = [this](Call& call) {
    const cuda::OnDevice on{device()};
    for (cudaEvent_t* event : {&call.ready, &call.end, &call.through})
      cuda::check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  };
  return seat().calls.take(make_events, [](const Call& call) { return call.users.load(std::memory_order_acquire) == 0; });
}

inline void Rank::quiesce() noexcept {
  if (is_quiet_) return;
  is_quiet_ = true;
  const TimePoint until = Clock::now() + std::chrono::seconds{5};
  for (int rank = 0; rank < world_->size(); ++rank) {
    World::Seat& seat = world_->seat(rank);
    const std::lock_guard lock{seat.giving};  // a rank that locks this later sees the failure and enqueues nothing
    const cuda::OnDevice on{seat.device, std::nothrow};
    for (cudaStream_t stream : seat.streams)
      while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        cudaGetLastError();
        if (Clock::now() >= until) {
          is_quiet_ = false;  // the next failing call waits again
          return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds{50});
      }
  }
}

}  // namespace pdp::comm::cuda_thread
