#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/request.hpp>
#include <pdp/comm/backend/wrapper.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace detail {

/// Compares what the ranks of one group say of each of their collectives.
class CallComparison {
 public:
  /// `failure`: what has ended the world, if anything has.
  CallComparison(std::shared_ptr<std::optional<Failure>> failure, int ranks);

  [[nodiscard]] const std::shared_ptr<std::optional<Failure>>& failure() const { return failure_; }
  /// Throws what has ended the world.
  void check() const;
  /// What this rank says of its next collective.
  [[nodiscard]] Envelope next(const Request& request);
  /// Where all ranks say it.
  [[nodiscard]] std::span<std::byte> calls();
  /// Throws where they differ. To be called when all are there.
  void compare();

 private:
  std::shared_ptr<std::optional<Failure>> failure_;  // of the world: its groups end with it
  std::vector<Envelope> calls_;                      // of all ranks
  std::uint64_t sequence_ = 0;
};

}  // namespace detail

/// Calls of a backend that does not compare what its ranks ask for, compared: before each collective all ranks tell each other which one it
/// is, and where they differ each throws MismatchedCollective, now and in every call after. This waits for all ranks, at the start of
/// asynchronous calls, too: it is for finding a fault. Messages between two ranks are not compared.
template <Calls C>
class CheckedCalls : public WrappedCalls<C> {
  using WrappedCalls<C>::inner_;

 public:
  using Work = typename C::Work;

  explicit CheckedCalls(C inner) : CheckedCalls{std::move(inner), std::make_shared<std::optional<Failure>>()} {}

  Work start(const Request& request) {
    if (request.verb == Verb::send)
      comparison_.check();
    else
      compare(request);
    return inner_.start(request);
  }
  [[nodiscard]] CheckedCalls split(int color, int key) {
    compare({.verb = Verb::split});
    return CheckedCalls{inner_.split(color, key), comparison_.failure()};
  }

 private:
  CheckedCalls(C inner, std::shared_ptr<std::optional<Failure>> failure)
      : WrappedCalls<C>{std::move(inner)}, comparison_{std::move(failure), inner_.size()} {}

  void compare(const Request& request) {
    const Envelope call = comparison_.next(request);
    exchange_records(inner_, std::as_bytes(std::span{&call, 1}), comparison_.calls());
    comparison_.compare();
  }

  detail::CallComparison comparison_;
};

/// A communicator whose collectives are compared before they run: Checked{std::move(world)}. For backends that do not do so themselves.
template <class Comm>
class Checked : public BasicCommunicator<CheckedCalls<typename Comm::Erased>> {
  using Base = BasicCommunicator<CheckedCalls<typename Comm::Erased>>;

 public:
  explicit Checked(Comm world) : Base{CheckedCalls{world.release()}} {}
  Checked(Base&& group) : Base{std::move(group)} {}
  [[nodiscard]] Checked split(int color, int key) { return Base::split(color, key); }
};

}  // namespace pdp::comm

#ifndef PDP_SEPARATE_CORE
#include <pdp/comm/source/checked.hpp>
#endif
