#pragma once

#include <concepts>
#include <utility>

#include <pdp/comm/work.hpp>

namespace pdp::comm {

/// A call in flight: the Work of a backend. Borrows the owner, which carries out the call. Its destructor ends the world if the call is not
/// complete, since the call might later write to memory that is no longer valid.
///
/// The backend declares, in the namespace of the owner:
/// - is_done(owner, call): whether finish() would return, or throw, at once;
/// - finish(owner, call): waits until the call is complete, and recycles it;
/// - drop(owner, call): recycles a call that is not waited for, and ends the world unless the call is complete. Throws nothing;
/// - finish_on(owner, call, stream), if streams can wait for its calls.
template <class Owner, class Call>
class [[nodiscard]] WorkHandle {
 public:
  WorkHandle() = default;
  WorkHandle(Owner& owner, Call& call) : owner_{&owner}, call_{&call} {}
  WorkHandle(WorkHandle&& other) noexcept : owner_{other.owner_}, call_{std::exchange(other.call_, nullptr)} {}
  WorkHandle& operator=(WorkHandle&& other) noexcept {
    if (this != &other) {
      clear();
      owner_ = other.owner_;
      call_ = std::exchange(other.call_, nullptr);
    }
    return *this;
  }
  ~WorkHandle() { clear(); }

  [[nodiscard]] bool pending() const { return call_ != nullptr; }
  [[nodiscard]] bool done() { return !pending() || is_done(*owner_, *call_); }
  void wait() {
    if (Call* const call = std::exchange(call_, nullptr)) finish(*owner_, *call);
  }
  /// Makes the stream wait instead of this thread: work that is enqueued on the stream from now on runs after the call. Afterwards
  /// pending() is false. If an error occurs later, a later call of the world throws it. Use the memory of the call only in that work, or
  /// after it.
  template <class Stream>
  void wait_on(const Stream& stream) requires requires(Owner& owner, Call& call) {
    finish_on(owner, call, stream);
  }
  {
    if (Call* const call = std::exchange(call_, nullptr)) finish_on(*owner_, *call, stream);
  }

 private:
  void clear() noexcept {
    if (Call* const call = std::exchange(call_, nullptr)) drop(*owner_, *call);
  }

  Owner* owner_ = nullptr;
  Call* call_ = nullptr;
};

}  // namespace pdp::comm
