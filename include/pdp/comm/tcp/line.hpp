#pragma once

#include <span>
#include <variant>

#if __has_include(<asio/ip/tcp.hpp>)
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#else
#error "pdp over TCP needs standalone Asio (Debian: libasio-dev), and the CMake target pdp::tcp"
#endif

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/message.hpp>
#include <pdp/comm/join/handshake/server.hpp>

namespace pdp::comm::tcp {

// The plain executor everywhere: each type of one costs a user's program a second to compile.
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Endpoint = asio::ip::tcp::endpoint;

/// A connection, from its first attempt.
struct Line {
  enum class Stage { accepting, dialling, greeting, waiting, closed };

  Line(asio::io_context& io, int whom) : socket{io}, rank{whom} {}

  Socket socket;
  int rank;  // whom it is dialled for, or -1: somebody who has come by himself
  handshake::Purpose purpose = handshake::Purpose::data;
  Endpoint endpoint;
  Stage stage = Stage::accepting;
  TimePoint until = TimePoint::max();  // when patience with a stranger ends, or the next attempt begins
  std::variant<std::monostate, handshake::Server, handshake::Client> handshake;

  [[nodiscard]] std::span<char> space() {
    if (auto* const server = std::get_if<handshake::Server>(&handshake)) return server->space();
    return std::get<handshake::Client>(handshake).space();
  }
};

}  // namespace pdp::comm::tcp
