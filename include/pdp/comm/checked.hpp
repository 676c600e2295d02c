#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
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
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace detail {

/// A comparison of the collectives of the ranks of one group. Each rank describes its next collective, and all descriptions must be equal.
class CallComparison {
 public:
  /// `failure`: the failure that has ended the world, if there is one. All groups of the world share it.
  /// `ranks`: the ranks of this group by their numbers in the world.
  CallComparison(std::shared_ptr<std::optional<Failure>> failure, std::vector<int> ranks);

  [[nodiscard]] const std::shared_ptr<std::optional<Failure>>& failure() const { return failure_; }
  /// Returns the number in the world of a rank of this group.
  [[nodiscard]] int rank_in_world(int rank) const { return ranks_[as_size(rank)]; }
  /// Throws the failure that has ended the world, if there is one.
  void check() const;
  /// Returns the description of the next collective of this rank. Throws as check() does.
  [[nodiscard]] Envelope next(const Request& request);
  /// Returns the memory for the descriptions of all ranks, in the order of ranks.
  [[nodiscard]] std::span<std::byte> calls();
  /// Throws MismatchedCollective, now and in every later check(), if the descriptions differ. Call it when all of them are in calls().
  void compare();

 private:
  std::shared_ptr<std::optional<Failure>> failure_;  // shared by all groups of the world
  std::vector<int> ranks_;
  std::vector<Envelope> calls_;  // descriptions of one collective, by rank
  std::uint64_t sequence_ = 0;
};

}  // namespace detail

/// Calls that compare the collectives of all ranks, for a backend that does not compare them itself. Before each collective, each rank
/// sends a description of its call to all others. If the descriptions differ, every rank throws MismatchedCollective, in this call and in
/// every later one. Messages between two ranks are not compared.
///
/// The start of a collective waits for all ranks, even if the call is asynchronous. So use this only to find a fault.
template <Calls C>
class CheckedCalls : public WrappedCalls<C> {
  using WrappedCalls<C>::inner_;

 public:
  using Work = typename C::Work;

  explicit CheckedCalls(C inner)
      : WrappedCalls<C>{std::move(inner)}, comparison_{std::make_shared<std::optional<Failure>>(), numbers_from_0(inner_.size())} {}

  Work start(const Request& request) {
    if (request.verb == Verb::send)
      comparison_.check();
    else
      compare(request);
    return inner_.start(request);
  }
  [[nodiscard]] CheckedCalls split(int color, int key) {
    compare({.verb = Verb::split});
    C group = inner_.split(color, key);
    const int here = comparison_.rank_in_world(inner_.rank());
    std::vector<int> ranks(as_size(group.size()));
    exchange_records(group, std::as_bytes(std::span{&here, 1}), std::as_writable_bytes(std::span{ranks}));
    return CheckedCalls{std::move(group), {comparison_.failure(), std::move(ranks)}};
  }

 private:
  CheckedCalls(C group, detail::CallComparison comparison) : WrappedCalls<C>{std::move(group)}, comparison_{std::move(comparison)} {}

  static std::vector<int> numbers_from_0(int count) {
    std::vector<int> numbers(as_size(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  void compare(const Request& request) {
    const Envelope call = comparison_.next(request);
    exchange_records(inner_, std::as_bytes(std::span{&call, 1}), comparison_.calls());
    comparison_.compare();
  }

  detail::CallComparison comparison_;
};

/// A communicator that compares collectives before they run: Checked{std::move(world)}. For backends that do not compare collectives
/// themselves; see CheckedCalls.
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
