#pragma once

/// Definitions for pdp/rpc/remote.hpp; see pdp/core/separate_compilation.hpp.

#include <cstdint>
#include <memory>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/call/core.hpp>
#include <pdp/rpc/error.hpp>
#include <pdp/rpc/remote.hpp>

namespace pdp::rpc::detail {

PDP_INLINE Reference::~Reference() {
  const auto core = core_.lock();
  if (!core || !slot_) return;
  try {
    core->release(owner_, slot_, weight_, true, is_silent_);
  } catch (...) {  // the world has failed, and its error reaches this rank in its next call
  }
}

PDP_INLINE std::shared_ptr<Core> Reference::core() const {
  auto core = core_.lock();
  if (!core) throw EmptyReference{"the Node of this Remote has ended"};
  return core;
}

PDP_INLINE std::uint64_t Reference::give() {
  if (weight_ == 1) weight_ += core()->more_weight(owner_, slot_);
  // A rank gives away an 256th of a large weight, so it can pass a reference on some 5,000 times before it needs more.
  constexpr std::uint64_t plenty = std::uint64_t{1} << 31;
  const std::uint64_t given = weight_ > plenty ? weight_ / 256 : weight_ / 2;
  weight_ -= given;
  return given;
}

}  // namespace pdp::rpc::detail
