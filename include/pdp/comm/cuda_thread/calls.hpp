#pragma once

#include <utility>

#include <pdp/comm/backend/checks.hpp>
#include <pdp/comm/backend/device_calls.hpp>
#include <pdp/comm/cuda_thread/group.hpp>
#include <pdp/comm/shards.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::cuda_thread {

/// Throws ConfigError if there is no kernel for the reduction and element type of the request.
inline void check_reduction(const Group& group, const Request& request) {
  const DType type = request.in.type;
  const Reduction reduction = request.reducer.reduction;
  if (reduces(request.verb) && kernel_of(type, reduction) == nullptr)
    throw ConfigError{text(name(request.verb), " on rank ", group.rank(), ": there is no ", name(reduction), " of ", name(type),
                           " on a GPU; floating-point numbers have sum, product, min, max and average")};
}

/// Checks a request and starts its call. Throws ConfigError or ShapeError if the request is invalid.
inline Call& begin(Group& group, const Request& request) {
  group.owner().check();
  const CheckedRequest checked = CallChecks{group.rank(), group.size()}.check(request, group.begins());
  check_reduction(group, request);
  comm::check_memory(group, request);
  Call& call = group.fresh(checked.envelope);
  call.in = request.in;
  call.out = request.out;
  call.cut = checked.shards;
  call.received = checked.received;
  if (!request.is_even()) std::swap(call.begins, group.begins());  // the checked shards borrow these buffers
  if (request.verb != Verb::send) return group.start(call);
  call.to = request.to;
  call.from = request.from;
  return group.start_message(call);
}

}  // namespace pdp::comm::cuda_thread
