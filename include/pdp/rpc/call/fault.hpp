#pragma once

#include <cstdint>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/wire/reader.hpp>
#include <pdp/rpc/wire/writer.hpp>

namespace pdp::rpc {

/// An exception that travels to another rank: its type, if that is one of pdp's or of the standard library's, and its message.
struct Fault {
  std::uint32_t type = 0;  // the index of the type in a table that is equal on all ranks; 0: RemoteError
  std::string message;

  /// Describes the exception that is being handled. `where`: begins the message, for example "Encoder::forward on rank 1 (worker1)".
  static Fault current(const std::string& where);
  /// Throws the exception.
  [[noreturn]] void raise() const;

  void write(Writer& writer) const;
  static Fault read(Reader& reader);
};

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/call/source/fault.hpp>
#endif
