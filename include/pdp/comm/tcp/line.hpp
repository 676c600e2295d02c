#pragma once

#include <span>
#include <variant>

#if __has_include(<asio/ip/tcp.hpp>)
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#else
#error "pdp over TCP needs standalone Asio (Debian: libasio-dev), and the CMake target pdp::tcp"
#include <see the error above>
#endif

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/message.hpp>
#include <pdp/comm/join/handshake/server.hpp>

namespace pdp::comm::tcp {

// One plain executor type everywhere: each further type adds a second to the compile time of a user's program.
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Endpoint = asio::ip::tcp::endpoint;

/// A line: a connection that is being made.
struct Line {
  enum class Stage { accepting, dialling, greeting, waiting, closed };

  Line(asio::io_context& io, int whom) : socket{io}, rank{whom} {}

  Socket socket;
  int rank;  // the rank that is dialled, or -1 for an accepted connection: a stranger until it proves its rank
  handshake::Purpose purpose = handshake::Purpose::data;
  Endpoint endpoint;
  Stage stage = Stage::accepting;
  TimePoint until = TimePoint::max();  // the deadline of a stranger's handshake, or the time of the next attempt
  std::variant<std::monostate, handshake::Server, handshake::Client> handshake;

  /// Returns the memory for the next bytes of the handshake. Call this only after the handshake has begun.
  [[nodiscard]] std::span<char> space() {
    if (auto* const server = std::get_if<handshake::Server>(&handshake)) return server->space();
    return std::get<handshake::Client>(handshake).space();
  }
};

}  // namespace pdp::comm::tcp
