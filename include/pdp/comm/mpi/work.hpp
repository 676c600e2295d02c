#pragma once

#include <utility>

#include <pdp/comm/mpi/group.hpp>
#include <pdp/comm/work.hpp>

namespace pdp::comm::mpi {

/// A call in flight. Letting go of it before it is complete ends the job, as its memory would be written after its time.
class [[nodiscard]] Work {
 public:
  Work() = default;
  explicit Work(Call& call) : call_{&call} {}
  Work(Work&& other) noexcept : call_{std::exchange(other.call_, nullptr)} {}
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      abandon();
      call_ = std::exchange(other.call_, nullptr);
    }
    return *this;
  }
  ~Work() { abandon(); }

  [[nodiscard]] bool pending() const { return call_ != nullptr; }
  [[nodiscard]] bool done() { return !pending() || call_->group->done(*call_); }
  void wait() {
    if (Call* const call = std::exchange(call_, nullptr)) call->group->finish(*call);
  }

 private:
  void abandon() noexcept {
    if (Call* const call = std::exchange(call_, nullptr)) call->group->abandon(*call);
  }

  Call* call_ = nullptr;
};
static_assert(Waitable<Work>);

}  // namespace pdp::comm::mpi
