#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#if __has_include(<asio/ip/tcp.hpp>)
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#else
#error "pdp over TCP needs standalone Asio (Debian: libasio-dev), and the CMake target pdp::tcp"
#endif

#include <pdp/comm/descriptor.hpp>
#include <pdp/comm/tcp/hello.hpp>
#include <pdp/comm/transport.hpp>

namespace pdp::comm::tcp {

/// Opens the connections of one rank: it dials those below it and is dialled by those above it. Every connection proves with its first
/// bytes that it is of the job; whoever does not within a few seconds is dropped, and the job takes no notice.
class Mesh {
 public:
  /// Listens on a port of the system's choice, at one address only.
  Mesh(const std::string& address, Hello own) : own_{own}, peers_(static_cast<std::size_t>(own.size)), acceptor_{io_} {
    try {
      const Endpoint endpoint{asio::ip::make_address(address), 0};
      acceptor_.open(endpoint.protocol());
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const std::system_error& error) {
      throw ConfigError{text("rank ", own.rank, " cannot listen at ", address, ": ", error.what())};
    }
  }

  /// Where the others reach this rank: address and port.
  [[nodiscard]] std::string address() const {
    const Endpoint endpoint = acceptor_.local_endpoint();
    return text(endpoint.address().to_string(), ' ', endpoint.port());
  }

  /// Goes on until all connections stand. `addresses`: of all lower ranks, as they gave them. Throws Timeout, which names the missing
  /// ranks.
  std::vector<Descriptor> connect(const std::vector<std::string>& addresses, const Token& token, TimePoint deadline) {
    own_.token = token;
    missing_ = own_.size - 1;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      lines_.push_back(std::make_shared<Line>(io_, static_cast<int>(rank)));
      lines_.back()->endpoint = endpoint_of(static_cast<int>(rank), addresses[rank]);
      dial(lines_.back());
    }
    if (own_.rank + 1 < own_.size) accept();
    for (TimePoint now = Clock::now(); missing_ > 0 && fault_.message.empty() && foreign_.empty() && now < deadline; now = Clock::now()) {
      look_at_clock(now);
      io_.run_one_until(std::min(deadline, now + tick));
    }
    if (!foreign_.empty()) throw ConfigError{foreign_};
    if (!fault_.message.empty()) fault_.raise();
    if (missing_ > 0)
      throw Timeout{text(
          "no connection between rank ", own_.rank, " and ", missing_ranks(), " (of ", own_.size,
          " ranks) stood before the deadline for the start; a missing rank was not started, has failed, or cannot be reached from here")};
    std::vector<Descriptor> sockets;
    for (const auto& peer : peers_) sockets.push_back(peer ? Descriptor{peer->socket.release()} : Descriptor{});
    return sockets;
  }

 private:
  // The plain executor and one handler for everything: each type of either costs a user's program a second to compile.
  using Executor = asio::io_context::executor_type;
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
  using Endpoint = asio::ip::tcp::endpoint;

  static constexpr std::chrono::milliseconds tick{20};  // also between two attempts to connect
  static constexpr std::chrono::seconds patience_with_strangers{5};
  static constexpr std::ptrdiff_t strangers_at_once = 64;  // beyond one for each rank

  /// A connection, from its first attempt.
  struct Line {
    enum class Stage { accepting, dialling, greeting, joined, waiting, closed };

    Line(asio::io_context& io, int whom) : socket{io}, rank{whom} {}

    Socket socket;
    int rank;  // whom it is dialled for, or who has proved to be at its end; before that -1: somebody who has come by himself
    Endpoint endpoint;
    Stage stage = Stage::accepting;
    TimePoint until = TimePoint::max();  // when patience with a stranger ends, or the next attempt begins
    Hello theirs;
    std::size_t received = 0;  // bytes of it
    char peeked = 0;
  };
  struct Resume {
    Mesh* mesh;
    std::shared_ptr<Line> line;
    void operator()(std::error_code error, std::size_t bytes = 0) const { mesh->resume(line, error, bytes); }
  };

  void accept() {
    auto line = std::make_shared<Line>(io_, -1);
    acceptor_.async_accept(line->socket, Resume{this, line});
  }
  void dial(const std::shared_ptr<Line>& line) {
    line->stage = Line::Stage::dialling;
    line->until = TimePoint::max();
    line->received = 0;
    line->socket.async_connect(line->endpoint, Resume{this, line});
  }
  void listen(const std::shared_ptr<Line>& line) {
    line->stage = Line::Stage::greeting;
    auto* const bytes = reinterpret_cast<char*>(&line->theirs);
    line->socket.async_receive(asio::buffer(bytes + line->received, sizeof(Hello) - line->received), 0, Resume{this, line});
  }

  void resume(const std::shared_ptr<Line>& line, std::error_code error, std::size_t bytes) {
    switch (line->stage) {
      case Line::Stage::accepting:
        if (error) {  // too many files, say: later there may be fewer
          accept_at_ = Clock::now() + tick;
          return;
        }
        accept();
        welcome_stranger(line);
        return listen(line);
      case Line::Stage::dialling:
        if (error || !greet(*line)) return dial_later(*line);
        return listen(line);
      case Line::Stage::greeting:
        line->received += bytes;
        if (!error && line->received < sizeof(Hello)) return listen(line);
        return line->rank < 0 ? judge_stranger(line, error) : judge_dialled(line, error);
      case Line::Stage::joined:
        // A rank that ends while others still start would leave them waiting for the deadline.
        if (error && error != asio::error::operation_aborted)
          fault_ = {Failure::Kind::lost, line->rank,
                    text("rank ", line->rank, " is gone: its connection to rank ", own_.rank,
                         " was closed while the job was still starting; its own output says why")};
        return;
      case Line::Stage::waiting:
      case Line::Stage::closed:
        return;
    }
  }

  void look_at_clock(TimePoint now) {
    if (now >= accept_at_) {
      accept_at_ = TimePoint::max();
      accept();
    }
    for (auto next = lines_.begin(); next != lines_.end();) {
      const std::shared_ptr<Line> line = *next++;
      if (now < line->until) continue;
      if (line->stage == Line::Stage::waiting)
        dial(line);
      else
        dismiss(*line);
    }
  }

  void welcome_stranger(const std::shared_ptr<Line>& line) {
    // The one who has been silent for longest goes first; a rank that is sent away by that dials again.
    const auto strange = [](const std::shared_ptr<Line>& each) { return each->rank < 0; };
    if (std::count_if(lines_.begin(), lines_.end(), strange) == strangers_at_once + own_.size)
      dismiss(**std::find_if(lines_.begin(), lines_.end(), strange));
    line->until = Clock::now() + patience_with_strangers;
    lines_.push_back(line);
  }

  void judge_stranger(const std::shared_ptr<Line>& line, std::error_code error) {
    const Verdict verdict = error ? Verdict::stranger : judge(line->theirs, own_);
    const int rank = line->theirs.rank;
    if (verdict == Verdict::foreign) {
      greet(*line);
      foreign_ = describe_foreign(line->theirs, own_);
    } else if (verdict == Verdict::welcome && rank > own_.rank && !peers_[static_cast<std::size_t>(rank)] && greet(*line)) {
      return join(line, rank);
    }
    dismiss(*line);
  }

  void judge_dialled(const std::shared_ptr<Line>& line, std::error_code error) {
    const Verdict verdict = error ? Verdict::stranger : judge(line->theirs, own_);
    if (verdict == Verdict::foreign)
      foreign_ = describe_foreign(line->theirs, own_);
    else if (verdict == Verdict::welcome && line->theirs.rank == line->rank)
      join(line, line->rank);
    else
      dial_later(*line);
  }

  /// Says hello. A connection that is new takes as few bytes as that at once.
  bool greet(Line& line) {
    std::error_code error;
    return line.socket.send(asio::buffer(&own_, sizeof own_), 0, error) == sizeof own_ && !error;
  }
  void dial_later(Line& line) {
    std::error_code ignored;
    line.socket.close(ignored);
    line.stage = Line::Stage::waiting;
    line.until = Clock::now() + tick;
  }
  void dismiss(Line& line) {
    std::error_code ignored;
    line.stage = Line::Stage::closed;
    line.socket.close(ignored);
    lines_.remove_if([&line](const auto& each) { return each.get() == &line; });
  }
  void join(const std::shared_ptr<Line>& line, int rank) {
    line->rank = rank;
    line->stage = Line::Stage::joined;
    line->until = TimePoint::max();
    std::error_code ignored;  // of a connection that has just ended, which the next receive finds out
    line->socket.non_blocking(true, ignored);
    line->socket.set_option(asio::ip::tcp::no_delay{true}, ignored);
    peers_[static_cast<std::size_t>(rank)] = line;
    --missing_;
    line->socket.async_receive(asio::buffer(&line->peeked, 1), Socket::message_peek, Resume{this, line});
    lines_.remove(line);
  }

  [[nodiscard]] Endpoint endpoint_of(int rank, const std::string& address) const {
    const std::size_t space = std::min(address.find(' '), address.size());
    std::error_code error;
    const auto host = asio::ip::make_address(address.substr(0, space), error);
    const int port = std::atoi(address.c_str() + space);
    if (error || port < 1 || port > 65535)
      throw ConfigError{text("rank ", own_.rank, " cannot connect to rank ", rank, ": its address in the job's store is '", address,
                             "'; it should be an IP address and a port")};
    return {host, static_cast<std::uint16_t>(port)};
  }

  [[nodiscard]] std::string missing_ranks() const {
    std::string names;
    for (int rank = 0; rank < own_.size; ++rank)
      if (rank != own_.rank && !peers_[static_cast<std::size_t>(rank)]) names += text(names.empty() ? "rank " : ", rank ", rank);
    return names;
  }

  asio::io_context io_{1};  // first, as it must outlive what uses it
  Hello own_;
  std::vector<std::shared_ptr<Line>> peers_;
  std::list<std::shared_ptr<Line>> lines_;  // those that are not peers yet
  int missing_ = 0;
  Failure fault_;
  std::string foreign_;
  Acceptor acceptor_;
  TimePoint accept_at_ = TimePoint::max();
};

}  // namespace pdp::comm::tcp
