#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/backend/wrapper.hpp>
#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/envelope.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// Calls of a backend that does not compare what its ranks ask for, compared: before each collective all ranks tell each other which one it
/// is, and where they differ each throws MismatchedCollective, now and in every call after. This waits for all ranks, at the start of
/// asynchronous calls, too: it is for finding a fault. Messages between two ranks are not compared.
template <Calls C>
class CheckedCalls : public WrappedCalls<C> {
  using WrappedCalls<C>::inner_;

 public:
  using WrappedCalls<C>::size;
  using Work = typename C::Work;

  explicit CheckedCalls(C inner) : CheckedCalls{std::move(inner), std::make_shared<std::optional<Failure>>()} {}

  Work start(const Request& request) {
    if (request.verb == Verb::send)
      check();
    else
      compare(request);
    return inner_.start(request);
  }
  [[nodiscard]] CheckedCalls split(int color, int key) {
    compare({.verb = Verb::split}, {});
    return CheckedCalls{inner_.split(color, key), failure_};
  }

 private:
  CheckedCalls(C inner, std::shared_ptr<std::optional<Failure>> failure)
      : WrappedCalls<C>{std::move(inner)}, failure_{std::move(failure)}, calls_(as_size(inner_.size())) {}

  /// Throws what has ended the world.
  void check() const {
    if (*failure_) (*failure_)->raise();
  }
  void compare(const Request& request) {
    const ErasedSpan& values = has_shards(request.verb) ? request.shard() : request.in;
    const Counts counts = has_shards(request.verb) ? request.counts : Counts{};
    std::uint64_t count = counts.empty() ? values.count : total(counts);
    if (request.verb == Verb::all_to_all) count = request.is_even() ? count / as_size(size()) : 0;
    compare({.count = count, .root = request.root, .verb = request.verb, .type = values.type, .reduction = request.reducer.reduction},
            counts);
  }
  void compare(Envelope call, Counts counts) {
    check();
    call.sequence = ++sequence_;
    call.channel = counts.size();  // a mix of the counts
    for (const std::size_t count : counts) call.channel = (call.channel ^ count) * 0x9e3779b97f4a7c15ULL;
    exchange_records(inner_, std::as_bytes(std::span{&call, 1}), std::as_writable_bytes(std::span{calls_}));
    for (std::size_t other = 1; other < calls_.size() && !*failure_; ++other) {
      const Envelope &first = calls_.front(), &theirs = calls_[other];
      if (first == theirs) continue;
      Envelope same_counts = theirs;
      same_counts.channel = first.channel;
      if (first != same_counts)
        *failure_ = mismatch(first, 0, theirs, as_int(other));
      else
        *failure_ =
            Failure{Failure::Kind::mismatch, 0,
                    text("ranks of one group gave different counts to one call: ", describe(first), " on rank 0 and on rank ", other,
                         " (call ", first.sequence, " of its group); the counts say what each rank has, and are the same on all ranks")};
    }
    check();
  }

  std::shared_ptr<std::optional<Failure>> failure_;  // of the world: its groups end with it
  std::vector<Envelope> calls_;                      // of all ranks
  std::uint64_t sequence_ = 0;
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
