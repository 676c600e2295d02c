#pragma once

/// Definitions for pdp/rpc/error.hpp; see pdp/core/separate_compilation.hpp.

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/error.hpp>

namespace pdp::rpc {

PDP_INLINE RemoteError::RemoteError(const std::string& message) : Error{message} {}
PDP_INLINE RemoteError::~RemoteError() = default;
PDP_INLINE EmptyReference::EmptyReference(const std::string& message) : Error{message} {}
PDP_INLINE EmptyReference::~EmptyReference() = default;

}  // namespace pdp::rpc
