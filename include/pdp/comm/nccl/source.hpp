#pragma once

/// Definitions of pdp/comm/nccl.hpp. They need the headers of the CUDA toolkit, so pdp includes them in src/nccl.cpp only.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/comm/nccl/collectives.hpp>
#include <pdp/comm/nccl/connect.hpp>
#include <pdp/comm/nccl/group.hpp>
#include <pdp/comm/nccl/group_failures.hpp>
#include <pdp/comm/nccl/memory.hpp>
#include <pdp/comm/nccl/records.hpp>
#include <pdp/comm/nccl/world_groups.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

namespace nccl {

bool is_done(Group& group, Call& call) { return group.done(call); }
void finish(Group& group, Call& call) { group.finish(call); }
void finish_on(Group& group, Call& call, Stream stream) { group.finish_on(call, stream); }
void drop(Group& group, Call& call) noexcept { group.abandon(call); }

}  // namespace nccl

template class DeviceCalls<nccl::Group, nccl::Call>;

void NcclCalls::begin_group() { group().world().begin_together(); }
void NcclCalls::end_group() { group().world().end_together(); }

namespace nccl {

inline std::vector<int> everybody(int size) {
  std::vector<int> ranks(as_size(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline std::shared_ptr<Group> adopt(ncclComm_t comm, cudaStream_t caller) {
  if (comm == nullptr) throw ConfigError{"comm::Nccl cannot adopt a null communicator"};
  int rank = 0, size = 0, device = 0;
  for (const ncclResult_t result : {ncclCommUserRank(comm, &rank), ncclCommCount(comm, &size), ncclCommCuDevice(comm, &device)})
    if (result != ncclSuccess)
      throw ConfigError{text("comm::Nccl was given a communicator that cannot be used: ", describe_error(result, comm))};
  check_version(rank);
  return std::make_shared<Group>(std::make_shared<World>(rank, size, device, caller, false), Handle{comm, device, false}, everybody(size),
                                 rank);
}

}  // namespace nccl

Nccl::Nccl(ncclComm* comm, nccl::Stream caller) : BasicCommunicator{NcclCalls{nccl::adopt(comm, caller)}} {}

bool Nccl::shares_gpus() {
  int version = 0;
  const char* const allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return ncclGetVersion(&version) == ncclSuccess && version >= 23000 && allowed != nullptr && std::string_view{allowed} == "1";
}

Nccl Nccl::connect(StoreView store, int rank, int size, TimePoint deadline, Options options) {
  if (size < 1 || rank < 0 || rank >= size) throw ConfigError{text("there is no rank ", rank, " in a world of ", size, " ranks")};
  const nccl::Appointment appointment = nccl::Meeting{store, rank, size}.attend(nccl::Report::of(rank, options), deadline);
  nccl::Handle handle = nccl::connect(appointment, rank, size, deadline);
  Nccl world{BasicCommunicator{
      NcclCalls{std::make_shared<nccl::Group>(std::make_shared<nccl::World>(rank, size, appointment.device, options.caller, true),
                                              std::move(handle), nccl::everybody(size), rank)}}};
  world.deadline(std::max<Duration>(deadline - Clock::now(), std::chrono::milliseconds{1}));
  world.barrier();  // no rank needs the store after this
  world.deadline(default_deadline);
  return world;
}

static_assert(Communicator<Nccl> && HasReduceScatter<Nccl> && RecordsCalls<Nccl> && QueuesMessages<Nccl> && !FailsFast<Nccl>);

}  // namespace pdp::comm
