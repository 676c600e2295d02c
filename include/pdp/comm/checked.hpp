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

  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {}) {
    compare(verb, in, root, reducer);
    return inner_.collective(verb, in, out, root, reducer);
  }
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {}) {
    compare(verb, shard, counts, root, reducer);
    return inner_.collective(verb, whole, shard, counts, root, reducer);
  }
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received) {
    compare(in, sent, received);
    return inner_.all_to_all(in, sent, out, received);
  }
  void complete_collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
    compare(verb, in, root, reducer);
    comm::complete_collective(inner_, verb, in, out, root, reducer);
  }
  void complete_collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
    compare(verb, shard, counts, root, reducer);
    comm::complete_collective(inner_, verb, whole, shard, counts, root, reducer);
  }
  void complete_all_to_all(Memory in, Counts sent, Memory out, Counts received) {
    compare(in, sent, received);
    comm::complete_all_to_all(inner_, in, sent, out, received);
  }
  Work exchange(Memory out, int to, Memory in, int from, int tag) {
    if (*failure_) (*failure_)->raise();
    return inner_.exchange(out, to, in, from, tag);
  }
  [[nodiscard]] CheckedCalls split(int color, int key) {
    compare({.verb = Verb::split}, {});
    return CheckedCalls{inner_.split(color, key), failure_};
  }

 private:
  CheckedCalls(C inner, std::shared_ptr<std::optional<Failure>> failure)
      : WrappedCalls<C>{std::move(inner)}, failure_{std::move(failure)}, calls_(as_size(inner_.size())) {}

  void compare(Verb verb, Memory values, int root, const Reducer& reducer) {
    compare({.count = values.count, .root = root, .verb = verb, .type = values.type, .reduction = reducer.reduction}, {});
  }
  void compare(Verb verb, Memory shard, Counts counts, int root, const Reducer& reducer) {
    compare({.count = counts.empty() ? shard.count : total(counts),
             .root = root,
             .verb = verb,
             .type = shard.type,
             .reduction = reducer.reduction},
            counts);
  }
  void compare(Memory in, Counts sent, Counts received) {
    const bool equal = sent.empty() && received.empty();
    compare({.count = equal ? in.count / as_size(size()) : 0, .verb = Verb::all_to_all, .type = in.type}, {});
  }
  void compare(Envelope call, Counts counts) {
    if (*failure_) (*failure_)->raise();
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
    if (*failure_) (*failure_)->raise();
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
