#pragma once

/// Definitions of pdp/comm/gloo.hpp, included by that header or by one source; see pdp/core/separate_compilation.hpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/gloo.hpp>
#include <pdp/comm/gloo/connect.hpp>
#include <pdp/comm/gloo/lane.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::comm {

namespace gloo {

PDP_INLINE bool is_done(Lane& lane, Call& call) { return lane.done(call); }
PDP_INLINE void finish(Lane& lane, Call& call) { lane.finish(call); }
PDP_INLINE void drop(Lane& lane, Call& call) noexcept { lane.abandon(call); }

}  // namespace gloo

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
  if (lane_) lane_->world().fail({Failure::Kind::lost, lane_->world().rank(), reason});  // a moved-from object has no world to end
}

PDP_INLINE GlooCalls::Work GlooCalls::start(const Request& request) {
  gloo::Call* const call = lane_->start(request);
  return call != nullptr ? Work{*lane_, *call} : Work{};
}

PDP_INLINE GlooCalls GlooCalls::split(int color, int key) {
  ColorAndKey mine{color, key};
  std::vector<ColorAndKey> all(as_size(size()));
  const auto memory = [](ColorAndKey* values, std::size_t count) {
    return ErasedSpan{reinterpret_cast<std::byte*>(values), 2 * count, sizeof(std::int32_t), DType::int32};
  };
  complete(*this, {.verb = Verb::all_gather, .in = memory(&mine, 1), .out = memory(all.data(), all.size())});
  return GlooCalls{lane_->part(members_of_color(all, color), color)};
}

PDP_INLINE Gloo::Gloo(const std::shared_ptr<::gloo::Context>& context)
    : BasicCommunicator{GlooCalls{std::make_shared<gloo::World>(gloo::connect_beside(context), context ? context->rank : 0,
                                                                context ? context->size : 1, default_deadline)}} {}

PDP_INLINE Gloo Gloo::connect(StoreView store, int rank, int size, TimePoint deadline) {
  auto connections = gloo::connect(store, rank, size, deadline);
  Gloo world{
      BasicCommunicator{GlooCalls{std::make_shared<gloo::World>(std::move(connections), rank, size, gloo::milliseconds_until(deadline))}}};
  world.barrier();  // no rank needs the store after this
  world.deadline(default_deadline);
  return world;
}

static_assert(Communicator<Gloo> && HasReduceScatter<Gloo> && FailsFast<Gloo>);

}  // namespace pdp::comm
