#pragma once

#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::rpc {

/// An exception of a remote call whose type is neither one of pdp's nor one of the standard library's. Exceptions of those types arrive as
/// their own type. The message names the call and the rank in both cases.
class RemoteError : public Error {
 public:
  explicit RemoteError(const std::string& message);
  ~RemoteError() override;
};

/// A reference or a future that refers to nothing: default-constructed, moved from, or already read.
class EmptyReference : public Error {
 public:
  explicit EmptyReference(const std::string& message);
  ~EmptyReference() override;
};

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/source/error.hpp>
#endif
