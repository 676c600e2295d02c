#pragma once

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/backend/calls.hpp>
#include <pdp/comm/backend/work_handle.hpp>
#include <pdp/comm/mpi/collectives.hpp>
#include <pdp/comm/mpi/group.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// One rank's calls over MPI: MPI's own collectives, on a communicator that only pdp uses.
class MpiCalls {
 public:
  using Work = WorkHandle<mpi::Group, mpi::Call>;

  /// Duplicates `comm`, so all its ranks must call this together. `most`: the most elements to pass to one MPI function. A larger call is
  /// made in pieces, or as a message of one derived datatype (see LargeType). Throws ConfigError for MPI_COMM_NULL and for an
  /// inter-communicator.
  MpiCalls(mpi::Session session, MPI_Comm comm, int most = INT_MAX);

  [[nodiscard]] int rank() const { return group_->rank(); }
  [[nodiscard]] int size() const { return group_->size(); }
  [[nodiscard]] Duration deadline() const { return world().deadline; }
  void deadline(Duration duration) { world().deadline = duration; }
  void progress();
  void abort(const std::string& reason);

  Work start(const Request& request);
  Region allocate(std::size_t bytes);
  [[nodiscard]] MpiCalls split(int color, int key);

 private:
  explicit MpiCalls(std::unique_ptr<mpi::Group> group) : group_{std::move(group)} {}

  [[nodiscard]] mpi::World& world() const { return group_->world(); }

  mpi::Call& begin(const Request& request, const CheckedRequest& checked);
  mpi::Call& begin_message(const Request& request, const CheckedRequest& checked);
  [[nodiscard]] MPI_Op operation_of(const Request& request) const;

  std::unique_ptr<mpi::Group> group_;
};

inline MpiCalls::MpiCalls(mpi::Session session, MPI_Comm comm, int most) {
  int between_groups = 0;
  if (comm != MPI_COMM_NULL) MPI_Comm_test_inter(comm, &between_groups);
  if (comm == MPI_COMM_NULL || between_groups != 0)
    throw ConfigError{comm == MPI_COMM_NULL ? "comm::Mpi cannot use MPI_COMM_NULL; pass a communicator that contains this process"
                                            : "comm::Mpi cannot use an intercommunicator; pass an intracommunicator"};
  MPI_Comm own = MPI_COMM_NULL;
  if (const int code = MPI_Comm_dup(comm, &own); code != MPI_SUCCESS)
    throw CommunicationError{text("MPI_Comm_dup failed: ", mpi::describe_error(code))};
  group_ = std::make_unique<mpi::Group>(std::make_shared<mpi::World>(std::move(session), most), own);
  world().ranks = size();
}

/// Probes for a message that never arrives, which lets MPI move the calls in flight.
inline void MpiCalls::progress() {
  world().check();
  int found = 0;
  MPI_Iprobe(rank(), group_->own_tag(), group_->comm(), &found, MPI_STATUS_IGNORE);
}

inline void MpiCalls::abort(const std::string& reason) {
  if (!group_) return;  // a moved-from object has no world to end
  if (world().ranks > 1) group_->end_job(reason);
  if (!world().failure) world().failure = std::make_exception_ptr(PeerLost{0, reason});
}

inline Region MpiCalls::allocate(std::size_t bytes) {
  world().check();
  if (bytes == 0) return {};
  void* memory = nullptr;
  std::size_t space = bytes + alignment;
  if (const int code = MPI_Alloc_mem(static_cast<MPI_Aint>(space), MPI_INFO_NULL, &memory); code != MPI_SUCCESS)
    throw CommunicationError{text("rank ", rank(), ": MPI_Alloc_mem failed for ", bytes, " bytes: ", mpi::describe_error(code))};
  // The owner keeps the world, so that MPI is not finalised before the memory is freed.
  std::shared_ptr<void> owner{memory, [world = group_->shared_world()](void* own) {
                                if (mpi::is_running()) MPI_Free_mem(own);
                              }};
  void* const aligned = std::align(alignment, bytes, memory, space);
  std::memset(aligned, 0, bytes);
  return {static_cast<std::byte*>(aligned), bytes, std::move(owner)};
}

inline MpiCalls::Work MpiCalls::start(const Request& request) {
  const CheckedRequest checked = group_->check(request);
  mpi::Call& call = request.verb == Verb::send ? begin_message(request, checked) : begin(request, checked);
  if (!request.waits_at_once) return {*group_, call};
  group_->finish(call);
  return {};
}

inline mpi::Call& MpiCalls::begin(const Request& request, const CheckedRequest& checked) {
  const MPI_Op operation = operation_of(request);
  mpi::Call& call = group_->fresh(request.waits_at_once);
  call.envelope = checked.envelope;
  call.result = request.out;
  mpi::Maker{*group_, call, request, checked, operation}.make();
  if (request.verb != Verb::reduce || rank() == request.root) call.divide = request.reducer.divide;
  return call;
}

inline mpi::Call& MpiCalls::begin_message(const Request& request, const CheckedRequest& checked) {
  if (request.tag >= group_->own_tag())
    throw ConfigError{
        text("rank ", rank(), " cannot use message tag ", request.tag, ": this MPI library has tags 0 to ", group_->own_tag() - 1)};
  mpi::Call& call = group_->fresh(false);
  call.envelope = checked.envelope;
  call.peer = request.from != no_peer ? request.from : request.to;
  if (request.from != no_peer) group_->receive(call, request.out, request.from, request.tag);
  if (request.to != no_peer) group_->send(call, request.in, request.to, request.tag);
  return call;
}

/// Returns MPI's operation for a request; MPI_OP_NULL if the request does not reduce. Throws ConfigError if there is no such operation for
/// the element type.
inline MPI_Op MpiCalls::operation_of(const Request& request) const {
  const Verb verb = request.verb;
  if (!reduces(verb)) return MPI_OP_NULL;
  const MPI_Op found = world().operations.of(request.in.type, request.reducer.reduction);
  if (found == MPI_OP_NULL)
    throw ConfigError{
        text(name(verb), " on rank ", rank(), ": MPI cannot reduce ", name(request.in.type), " by ", name(request.reducer.reduction))};
  return found;
}

/// Returns the group of the ranks that pass the same colour. MPI's colours must be 0 or more. So MPI receives the lowest rank of the new
/// group as its colour.
inline MpiCalls MpiCalls::split(int color, int key) {
  std::vector<std::int32_t> colors(as_size(size()));
  colors[as_size(rank())] = color;
  const ErasedSpan all{reinterpret_cast<std::byte*>(colors.data()), colors.size(), sizeof(std::int32_t), DType::int32};
  complete(*this, {.verb = Verb::all_gather, .in = all.part(as_size(rank()), 1), .out = all});
  const auto first = as_int(std::ranges::find(colors, color) - colors.begin());
  mpi::Call& call = group_->fresh(true);
  call.envelope = {.verb = Verb::split};
  MPI_Comm comm = MPI_COMM_NULL;
  group_->check(call, "MPI_Comm_split", MPI_Comm_split(group_->comm(), first, key, &comm));
  world().recycle(call);
  return MpiCalls{std::make_unique<mpi::Group>(group_->shared_world(), comm)};
}

static_assert(AllocatesRegions<MpiCalls>);

}  // namespace pdp::comm
