#pragma once

/// The definitions of what pdp/comm/gloo.hpp declares, included by that header or by one source; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <pdp/comm/gloo.hpp>
#include <pdp/comm/gloo/connect.hpp>
#include <pdp/comm/gloo/lane.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace gloo {

/// A call in which every rank brings as much.
inline Call& prepare(Lane& lane, Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  if (verb == Verb::broadcast || verb == Verb::reduce) lane.checks().root(verb, root);
  lane.checks().one_type(verb, in, out);
  Call& call = lane.next();
  call.collective.in = in;
  call.collective.out = out;
  call.collective.reducer = reducer;
  lane.identify(call, verb, in.count, root);
  return call;
}

/// A call with a shard for each rank.
inline Call& prepare(Lane& lane, Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  Call& call = lane.next();
  call.collective.shards = lane.checks().shards(verb, whole, shard, counts, root, call.begins[0]);
  const bool spreads = verb == Verb::scatter || verb == Verb::reduce_scatter;
  call.collective.in = spreads ? whole : shard;
  call.collective.out = spreads ? shard : whole;
  lane.checks().one_type(verb, call.collective.in, call.collective.out);
  call.collective.reducer = reducer;
  lane.identify(call, verb, counts.empty() ? shard.count : call.collective.shards.begin(lane.size()), root, counts);
  return call;
}

inline Call& prepare(Lane& lane, Memory in, Counts sent, Memory out, Counts received) {
  Call& call = lane.next();
  const bool equal = sent.empty() && received.empty();
  std::tie(call.collective.shards, call.collective.received) = lane.checks().all_to_all(in, sent, out, received, call.begins);
  lane.checks().one_type(Verb::all_to_all, in, out);
  call.collective.in = in;
  call.collective.out = out;
  call.collective.reducer = {};
  lane.identify(call, Verb::all_to_all, equal ? in.count / as_size(lane.size()) : 0, no_root);
  return call;
}

}  // namespace gloo

PDP_INLINE bool GlooCalls::Work::done() { return !pending() || lane_->done(*call_); }
PDP_INLINE void GlooCalls::Work::wait() {
  if (pending()) lane_->finish(*std::exchange(call_, nullptr));
}
PDP_INLINE void GlooCalls::Work::abandon() noexcept { lane_->abandon(*std::exchange(call_, nullptr)); }

PDP_INLINE GlooCalls::GlooCalls(std::shared_ptr<gloo::World> world) {
  auto everybody = world->everybody();
  lane_ = std::make_unique<gloo::Lane>(std::move(world), std::move(everybody));
}
PDP_INLINE GlooCalls::GlooCalls(std::unique_ptr<gloo::Lane> lane) : lane_{std::move(lane)} {}
PDP_INLINE GlooCalls::GlooCalls(GlooCalls&&) noexcept = default;
PDP_INLINE GlooCalls& GlooCalls::operator=(GlooCalls&&) noexcept = default;
PDP_INLINE GlooCalls::~GlooCalls() = default;

PDP_INLINE int GlooCalls::rank() const { return lane_->rank(); }
PDP_INLINE int GlooCalls::size() const { return lane_->size(); }
PDP_INLINE Duration GlooCalls::deadline() const { return lane_->world().deadlines().deadline(); }
PDP_INLINE void GlooCalls::deadline(Duration duration) { lane_->world().deadlines().deadline(duration); }
PDP_INLINE void GlooCalls::progress() {}
PDP_INLINE void GlooCalls::abort(const std::string& reason) {
  if (lane_) lane_->world().fail({Failure::Kind::lost, lane_->world().rank(), reason});  // one that was moved from has no world to end
}

PDP_INLINE GlooCalls::Work GlooCalls::collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  gloo::Call& call = gloo::prepare(*lane_, verb, in, out, root, reducer);
  lane_->start(call);
  return {*lane_, call};
}
PDP_INLINE GlooCalls::Work GlooCalls::collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  gloo::Call& call = gloo::prepare(*lane_, verb, whole, shard, counts, root, reducer);
  lane_->start(call);
  return {*lane_, call};
}
PDP_INLINE GlooCalls::Work GlooCalls::all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  gloo::Call& call = gloo::prepare(*lane_, in, sent, out, received);
  lane_->start(call);
  return {*lane_, call};
}
PDP_INLINE GlooCalls::Work GlooCalls::exchange(Memory out, int to, Memory in, int from, int tag) {
  lane_->checks().message(out, to, in, from, tag);
  gloo::Call& call = lane_->next();
  lane_->exchange(call, out, to, in, from, tag);
  return {*lane_, call};
}
PDP_INLINE void GlooCalls::complete_collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  lane_->complete(gloo::prepare(*lane_, verb, in, out, root, reducer));
}
PDP_INLINE void GlooCalls::complete_collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  lane_->complete(gloo::prepare(*lane_, verb, whole, shard, counts, root, reducer));
}
PDP_INLINE void GlooCalls::complete_all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  lane_->complete(gloo::prepare(*lane_, in, sent, out, received));
}

PDP_INLINE GlooCalls GlooCalls::split(int color, int key) {
  std::array<std::int32_t, 2> mine{color, key};
  std::vector<std::int32_t> all(2 * as_size(size()));
  const auto memory = [](auto& values) {
    return Memory{reinterpret_cast<std::byte*>(values.data()), values.size(), sizeof(std::int32_t), DType::int32};
  };
  complete_collective(Verb::all_gather, memory(all), memory(mine), Counts{}, no_root, Reducer{});
  std::vector<std::pair<int, int>> sorted;  // key, rank in this group
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank)
    if (all[2 * rank] == color) sorted.emplace_back(all[2 * rank + 1], as_int(rank));
  std::ranges::sort(sorted);
  std::vector<int> members;
  for (const auto& [member_key, member] : sorted) members.push_back(member);
  return GlooCalls{lane_->part(members, color)};
}

PDP_INLINE Gloo::Gloo(const std::shared_ptr<::gloo::Context>& context)
    : BasicCommunicator{GlooCalls{std::make_shared<gloo::World>(gloo::connect_beside(context), context ? context->rank : 0,
                                                                context ? context->size : 1, default_deadline)}} {}

PDP_INLINE Gloo Gloo::connect(StoreView store, int rank, int size, TimePoint deadline) {
  auto connections = gloo::connect(store, rank, size, deadline);
  Gloo world{
      BasicCommunicator{GlooCalls{std::make_shared<gloo::World>(std::move(connections), rank, size, gloo::milliseconds_until(deadline))}}};
  world.barrier();  // after it nobody needs the store any more
  world.deadline(default_deadline);
  return world;
}

}  // namespace pdp::comm
