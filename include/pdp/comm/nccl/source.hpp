#pragma once

/// The definitions of what pdp/comm/nccl.hpp declares, included by src/nccl.cpp only, as they need the toolkit's headers.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/nccl.hpp>
#include <pdp/comm/nccl/collectives.hpp>
#include <pdp/comm/nccl/connect.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

bool NcclCalls::Work::done() { return !pending() || call_->group->done(*call_); }
void NcclCalls::Work::wait() {
  if (!pending()) return;
  nccl::Call& call = *std::exchange(call_, nullptr);
  call.group->finish(call);
}
void NcclCalls::Work::wait_on(nccl::Stream stream) {
  if (!pending()) return;
  nccl::Call& call = *std::exchange(call_, nullptr);
  call.group->finish_on(call, stream);
}
void NcclCalls::Work::abandon() noexcept {
  nccl::Call& call = *std::exchange(call_, nullptr);
  call.group->abandon(call);
}

NcclCalls::NcclCalls(std::shared_ptr<nccl::Group> group) : group_{std::move(group)} {}
NcclCalls::NcclCalls(NcclCalls&&) noexcept = default;
NcclCalls& NcclCalls::operator=(NcclCalls&&) noexcept = default;
NcclCalls::~NcclCalls() = default;

int NcclCalls::rank() const { return group_->rank(); }
int NcclCalls::size() const { return group_->size(); }
int NcclCalls::device() const { return group_->world().device(); }
nccl::Stream NcclCalls::caller() const { return group_->world().caller(); }
void NcclCalls::caller(nccl::Stream stream) { group_->world().caller(stream); }
Duration NcclCalls::deadline() const { return group_->world().deadline(); }
void NcclCalls::deadline(Duration duration) { group_->world().deadline(duration); }
void NcclCalls::progress() { group_->world().check_in_flight(); }
void NcclCalls::abort(const std::string& reason) {
  if (!group_) return;  // one that was moved from has no world to end
  nccl::World& world = group_->world();
  world.end(std::make_exception_ptr(PeerLost{world.rank(), reason}));
}

NcclCalls::Work NcclCalls::collective(Verb verb, Memory in, Memory out, int root, Reducer reducer) {
  return Work{nccl::begin(*group_, verb, in, out, root, reducer)};
}
NcclCalls::Work NcclCalls::collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer) {
  return Work{nccl::begin(*group_, verb, whole, shard, counts, root, reducer)};
}
NcclCalls::Work NcclCalls::all_to_all(Memory in, Counts sent, Memory out, Counts received) {
  return Work{nccl::begin(*group_, in, sent, out, received)};
}
NcclCalls::Work NcclCalls::exchange(Memory out, int to, Memory in, int from, int tag) {
  return Work{nccl::begin(*group_, out, to, in, from, tag)};
}
void NcclCalls::exchange_records(std::span<const std::byte> mine, std::span<std::byte> all) {
  group_->exchange_records(mine, all, Verb::all_gather);
}
void NcclCalls::begin_group() { group_->world().begin_together(); }
void NcclCalls::end_group() { group_->world().end_together(); }

namespace nccl {

/// Memory of NCCL's own, registered for the calls of a group until the group ends, where it could be.
class Piece {
 public:
  Piece(const std::shared_ptr<Group>& group, std::size_t bytes)
      : group_{group}, world_{group->shared_world()}, result_{ncclMemAlloc(&memory_, bytes)} {
    if (result_ == ncclSuccess)
      registration_ = group->enroll(memory_, bytes);
    else
      memory_ = nullptr;
  }
  Piece(Piece&&) = delete;
  /// Where a program's own communicator has failed, calls may still be at work, which the program alone can abort: then the memory is
  /// never given back.
  ~Piece() {
    withdraw();
    if (memory_ != nullptr && !world_->may_be_at_work()) ncclMemFree(memory_);
  }

  /// Null where there is none: then result() says why.
  [[nodiscard]] void* memory() const { return memory_; }
  [[nodiscard]] ncclResult_t result() const { return result_; }
  [[nodiscard]] bool is_registered() const { return registration_ != nullptr; }
  void withdraw() {
    if (const auto alive = group_.lock(); alive && is_registered()) alive->withdraw(registration_);
    registration_ = nullptr;
  }

 private:
  std::weak_ptr<Group> group_;
  std::shared_ptr<World> world_;
  void *memory_ = nullptr, *registration_ = nullptr;
  ncclResult_t result_;
};

}  // namespace nccl

/// NCCL wants all ranks to give a call registered memory, or none of them: so they tell each other what they have.
Region NcclCalls::allocate(std::size_t bytes) {
  enum class Has : std::uint64_t { nothing, memory, registered };
  struct Record {
    std::uint64_t bytes;
    Has has;
  };
  group_->world().check();
  group_->settle();
  const nccl::OnDevice on{device()};
  const auto piece = std::make_shared<nccl::Piece>(group_, std::max(bytes, std::size_t{1}));
  const Record mine{bytes, piece->is_registered() ? Has::registered : piece->memory() != nullptr ? Has::memory : Has::nothing};
  std::vector<Record> all(as_size(size()));
  group_->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::all_gather);
  if (mine.has == Has::nothing)
    throw DeviceError{text("rank ", rank(), " has no ", bytes, " bytes on device ", device(),
                           ": ncclMemAlloc says: ", nccl::describe_error(piece->result(), nullptr))};
  const auto least = std::ranges::min_element(all, {}, &Record::has);
  if (least->has == Has::nothing)
    throw DeviceError{text("rank ", least - all.begin(), " of ", size(), " has no ", least->bytes,
                           " bytes on its device for memory that all of them allocate; it says more")};
  if (const auto other = std::ranges::find_if(all, [bytes](const Record& each) { return each.bytes != bytes; }); other != all.end())
    throw ConfigError{text("rank ", rank(), " allocates ", bytes, " bytes, but rank ", other - all.begin(), " ", other->bytes,
                           "; every rank of a group asks for as many")};
  if (least->has == Has::memory) piece->withdraw();
  if (bytes == 0) return {};
  cuda::clear(piece->memory(), bytes);
  return {static_cast<std::byte*>(piece->memory()), bytes, piece};
}

/// NCCL's colours are 0 or more. So a group's colour there is its first rank.
NcclCalls NcclCalls::split(int color, int key) {
  struct Record {
    std::int32_t color, key, rank_in_world;
  };
  std::vector<Record> all(as_size(size()));
  const Record mine{color, key, group_->rank_in_world(rank())};
  group_->exchange_records(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}), Verb::split);
  std::vector<std::pair<int, int>> sorted;  // key, rank in this group
  for (int other = 0; other < size(); ++other)
    if (const Record& record = all[as_size(other)]; record.color == color) sorted.emplace_back(record.key, other);
  int first = size();
  for (const auto& [member_key, member] : sorted) first = std::min(first, member);
  std::ranges::sort(sorted);
  std::vector<int> members;
  int own = 0;
  for (const auto& [member_key, member] : sorted) {
    if (member == rank()) own = as_int(members.size());
    members.push_back(all[as_size(member)].rank_in_world);
  }
  return NcclCalls{std::make_shared<nccl::Group>(group_->shared_world(), group_->split(first, key), std::move(members), own)};
}

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
  world.barrier();  // after it nobody needs the store any more
  world.deadline(default_deadline);
  return world;
}

}  // namespace pdp::comm
