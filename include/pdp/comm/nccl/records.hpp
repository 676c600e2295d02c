#pragma once

/// Records in host memory that the ranks of a group exchange, and the split of a group.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/nccl/staging.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm::nccl {

inline void Group::exchange_records(std::span<const std::byte> mine, std::span<std::byte> all, Verb verb) {
  const Envelope envelope{.count = mine.size(), .verb = verb, .type = DType::byte};
  refuse_together(envelope);
  std::byte *const device = world_->staging().device(), *const host = world_->staging().host();
  const auto ranks = as_size(size());
  for (std::size_t at = 0; at < mine.size(); at += Staging::record) {
    const std::size_t bytes = std::min(Staging::record, mine.size() - at), own = as_size(rank_) * bytes;
    std::memcpy(host + own, mine.data() + at, bytes);
    Call& call = this->call(envelope, -1, [&](const Call& made) {
      check(made, "cudaMemcpyAsync", cudaMemcpyAsync(device + own, host + own, bytes, cudaMemcpyDefault, stream_));
      check(made, "ncclAllGather", ncclAllGather(device + own, device, bytes, ncclUint8, comm(), stream_));
    });
    synchronise(call);
    check(call, "cudaMemcpyAsync", cudaMemcpyAsync(host, device, ranks * bytes, cudaMemcpyDefault, stream_));
    check(call, "cudaEventRecord", cudaEventRecord(call.end, stream_));
    finish(call);
    for (std::size_t rank = 0; rank < ranks; ++rank) std::memcpy(all.data() + rank * mine.size() + at, host + rank * bytes, bytes);
  }
}

inline Handle Group::split(int color, int key) {
  refuse_together({.verb = Verb::split});
  Call& call = fresh({.verb = Verb::split});
  synchronise(call);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  made_ = std::make_unique<ncclComm_t>(nullptr);
  // A split of the program's communicator passes no config. Then the new communicator blocks if that one does: NCCL does not allow a mix of
  // blocking and non-blocking communicators.
  if (const ncclResult_t result = ncclCommSplit(comm(), color, key, made_.get(), world_->is_own() ? &config : nullptr);
      result != ncclSuccess && result != ncclInProgress)
    fail(call, "ncclCommSplit", result);
  wait(call, [this] { return handle_.state() == ncclSuccess; });  // the new communicator is valid only after this
  Handle part{std::exchange(*made_, nullptr), world_->device(), true};
  try {
    wait(call, [&] {
      const ncclResult_t state = part.state();
      if (state != ncclSuccess && state != ncclInProgress) fail(call, "ncclCommSplit", state);
      return state == ncclSuccess;
    });
  } catch (...) {
    part.abort();
    throw;
  }
  world_->recycle(call);
  return part;
}

/// Returns the group of the ranks that pass the same colour. NCCL's colours must be 0 or more. So NCCL receives the lowest rank of the new
/// group as its colour.
inline std::shared_ptr<Group> split_off(const std::shared_ptr<Group>& group, int color, int key) {
  std::vector<ColorAndKey> all(as_size(group->size()));
  const ColorAndKey mine{color, key};
  group->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::split);
  const std::vector<int> members = members_of_color(all, color);
  std::vector<int> in_world;
  for (const int member : members) in_world.push_back(group->rank_in_world(member));
  const int first = *std::ranges::min_element(members);
  return std::make_shared<Group>(group->shared_world(), group->split(first, key), std::move(in_world), place_among(members, group->rank()));
}

}  // namespace pdp::comm::nccl
