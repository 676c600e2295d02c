#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#if __has_include(<asio/ip/tcp.hpp>)
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#endif

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/join/handshake/explain.hpp>
#include <pdp/comm/join/handshake/server.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/comm/tcp/line.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// The connections of one rank that are being made (lines). Dials other ranks, and accepts connections. On each connection, both ends prove
/// that they belong to the job, and which rank they are (see comm/join/handshake/). An accepted connection without this proof is dropped
/// after 5 s, without effect on the job. All work is done on the thread that runs the asio::io_context. That thread must call
/// look_at_clock() regularly.
class Lines {
 public:
  using Purpose = handshake::Purpose;
  using Verdict = handshake::Verdict;

  /// Callbacks for the results. A line is dialled again until it is connected, its owner drops it, no process listens at its address any
  /// more, or the other rank says that it dials this one itself.
  struct Events {
    std::function<Verdict(int rank, Purpose)> judge;                      // decides whether to accept a rank that has proved its identity
    std::function<void(int rank, Purpose, bool dialled, Socket)> joined;  // both ends have proved their identity
    std::function<void(int rank, Purpose, std::string where)> absent;     // no process listens at the rank's address any more
    std::function<void(std::string why)> misfit;                          // a rank of the job that cannot belong to this world
    std::function<void(std::string why)> exhausted;                       // the system has no more sockets
  };

  /// Listens on a port that the system chooses, at one address only. Throws ConfigError if it cannot.
  Lines(asio::io_context& io, const std::string& address, const handshake::Self& own, Events events)
      : io_{io}, own_{own}, events_{std::move(events)}, acceptor_{io} {
    try {
      const Endpoint endpoint{asio::ip::make_address(address), 0};
      acceptor_.open(endpoint.protocol());
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const std::system_error& error) {
      throw ConfigError{text("rank ", own.rank, " cannot listen at ", address, ": ", describe_system_error(error.code().value()))};
    }
  }
  Lines(Lines&&) = delete;

  /// Returns the address and port at which other ranks reach this one.
  [[nodiscard]] std::string address() const {
    const Endpoint endpoint = acceptor_.local_endpoint();
    return text(endpoint.address().to_string(), ' ', endpoint.port());
  }
  /// Parses the address that a rank has published. Throws ConfigError if it does not begin with an IP address and a port.
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

  /// Begins to accept connections of ranks that know the key.
  void open(const handshake::Key& key) {
    key_ = key;
    accept();
  }
  /// Begins to connect to a rank.
  void dial(int rank, Purpose purpose, const Endpoint& endpoint) {
    lines_.push_back(std::make_shared<Line>(io_, rank));
    lines_.back()->purpose = purpose;
    lines_.back()->endpoint = endpoint;
    dial(lines_.back());
  }
  /// Stops dialling a rank.
  void drop(int rank, Purpose purpose) {
    const auto found = find(rank, purpose);
    if (found != lines_.end()) dismiss(**found);
  }
  [[nodiscard]] bool dials(int rank, Purpose purpose) { return find(rank, purpose) != lines_.end(); }
  /// Returns the reason of the last failure to connect; empty if there was none.
  [[nodiscard]] const std::string& why() const { return why_; }

  /// Handles timeouts and retries. Call it once per `tick` unless idle().
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
  [[nodiscard]] bool idle() const { return lines_.empty() && accept_at_ == TimePoint::max(); }
  static constexpr std::chrono::milliseconds tick{20};  // also the time between two attempts to connect

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

  static constexpr std::chrono::seconds patience_with_strangers{5};
  static constexpr std::chrono::seconds patience_with_shortage{2};
  static constexpr std::ptrdiff_t strangers_at_once = 64;  // in addition to one for each rank

  struct Resume {  // one handler type for all operations
    Lines* lines;
    std::shared_ptr<Line> line;
    void operator()(std::error_code error, std::size_t bytes = 0) const { lines->resume(line, error, bytes); }
  };

  [[nodiscard]] std::list<std::shared_ptr<Line>>::iterator find(int rank, Purpose purpose) {
    return std::find_if(lines_.begin(), lines_.end(), [&](const auto& each) { return each->rank == rank && each->purpose == purpose; });
  }

  void accept() {
    auto line = std::make_shared<Line>(io_, -1);
    acceptor_.async_accept(line->socket, Resume{this, line});
  }
  void dial(const std::shared_ptr<Line>& line) {
    line->stage = Line::Stage::dialling;
    line->until = TimePoint::max();
    line->socket.async_connect(line->endpoint, Resume{this, line});
  }
  void listen(const std::shared_ptr<Line>& line) {
    line->stage = Line::Stage::greeting;
    const std::span<char> space = line->space();
    line->socket.async_receive(asio::buffer(space.data(), space.size()), 0, Resume{this, line});
  }

  void resume(const std::shared_ptr<Line>& line, std::error_code error, std::size_t bytes) {
    switch (line->stage) {
      case Line::Stage::accepting:
        if (error) {
          // Strangers leave soon, which frees their sockets.
          const auto strange = [](const std::shared_ptr<Line>& each) { return each->rank < 0; };
          if (is_shortage(error.value()) && std::none_of(lines_.begin(), lines_.end(), strange)) suffer_shortage(error);
          accept_at_ = Clock::now() + tick;
          return;
        }
        short_since_ = TimePoint::max();
        accept();
        welcome_stranger(line);
        if (!say(*line, line->handshake.emplace<handshake::Server>(own_, *key_, handshake::Grounds::secret).greeting()))
          return dismiss(*line);
        return listen(line);
      case Line::Stage::dialling:
        if (error) return missed(line, error);
        short_since_ = TimePoint::max();
        line->handshake.emplace<handshake::Client>(own_, line->rank, line->purpose);
        return listen(line);
      case Line::Stage::greeting:
        if (line->rank < 0)
          error ? dismiss(*line) : hear_stranger(line, bytes);
        else
          error ? dial_later(*line) : hear_dialled(line, bytes);
        return;
      case Line::Stage::waiting:
      case Line::Stage::closed:
        return;
    }
  }

  /// Calls `exhausted` if a shortage of descriptors or memory has lasted for patience_with_shortage. A shorter one has no effect.
  void suffer_shortage(std::error_code error) {
    const TimePoint now = Clock::now();
    short_since_ = std::min(short_since_, now);
    if (now - short_since_ < patience_with_shortage) return;
    events_.exhausted(text("rank ", own_.rank, " cannot open another connection: ", describe_system_error(error.value())));
  }

  /// Ranks listen until they end. So a refused connection means that the rank has ended.
  void missed(const std::shared_ptr<Line>& line, std::error_code error) {
    if (is_shortage(error.value())) suffer_shortage(error);
    if (error != asio::error::connection_refused) {
      why_ =
          text("rank ", line->rank, " at ", line->endpoint.address().to_string(), " port ", line->endpoint.port(), ": ", error.message());
      return dial_later(*line);
    }
    dismiss(*line);
    events_.absent(line->rank, line->purpose, text(line->endpoint.address().to_string(), " port ", line->endpoint.port()));
  }

  void welcome_stranger(const std::shared_ptr<Line>& line) {
    // If there are too many strangers, drops the one that was accepted first. If it is a rank, it dials again.
    const auto strange = [](const std::shared_ptr<Line>& each) { return each->rank < 0; };
    if (std::count_if(lines_.begin(), lines_.end(), strange) == strangers_at_once + own_.size)
      dismiss(**std::find_if(lines_.begin(), lines_.end(), strange));
    line->until = Clock::now() + patience_with_strangers;
    lines_.push_back(line);
  }

  void hear_stranger(const std::shared_ptr<Line>& line, std::size_t bytes) {
    using Stage = handshake::Server::Stage;
    auto& server = std::get<handshake::Server>(line->handshake);
    server.took(bytes);
    if (server.stage() == Stage::hearing) return listen(line);
    const int rank = server.theirs().from;
    const Purpose purpose = server.theirs().purpose;
    Verdict verdict = server.verdict();
    if (verdict == Verdict::welcome)
      verdict = events_.judge(rank, purpose);
    else if (verdict == Verdict::other_build)
      events_.misfit(handshake::explain_builds(own_.build, own_.rank, server.theirs().build, text("rank ", rank)));
    const bool said = verdict != Verdict::stranger && say(*line, handshake::bytes_of(server.answer(verdict)));
    if (said && verdict == Verdict::welcome) return join(*line, rank, purpose, /*dialled*/ false);
    dismiss(*line);
  }

  void hear_dialled(const std::shared_ptr<Line>& line, std::size_t bytes) {
    using Stage = handshake::Client::Stage;
    auto& client = std::get<handshake::Client>(line->handshake);
    client.took(bytes);
    if (client.stage() == Stage::invited && !say(*line, handshake::bytes_of(client.introduce(*key_)))) return dial_later(*line);
    if (client.stage() == Stage::welcome) return join(*line, line->rank, line->purpose, /*dialled*/ true);
    if (client.stage() != Stage::refused) return listen(line);
    // The port may belong to another process by now. Only a process that knows the secret is believed.
    const bool believed = client.verdict_is_proved();
    if (believed && client.verdict() == Verdict::crossed) return dismiss(*line);
    why_ = handshake::explain(client, text("rank ", line->rank));
    dial_later(*line);
    if (believed) events_.misfit(why_);
  }

  /// Sends bytes of a handshake. They fit into the buffers of a new connection, so a partial send is an error.
  bool say(Line& line, std::string_view bytes) {
    std::error_code error;
    return line.socket.send(asio::buffer(bytes.data(), bytes.size()), 0, error) == bytes.size() && !error;
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
  void join(Line& line, int rank, Purpose purpose, bool dialled) {
    std::error_code ignored;  // an error means that the connection has just ended, which the next receive reports
    line.socket.non_blocking(true, ignored);
    line.socket.set_option(asio::ip::tcp::no_delay{true}, ignored);
    Socket socket = std::move(line.socket);
    dismiss(line);
    events_.joined(rank, purpose, dialled, std::move(socket));
  }

  asio::io_context& io_;
  handshake::Self own_;
  Events events_;
  std::optional<handshake::Key> key_;
  std::list<std::shared_ptr<Line>> lines_;
  std::string why_;
  Acceptor acceptor_;
  TimePoint accept_at_ = TimePoint::max();
  TimePoint short_since_ = TimePoint::max();  // the first failure of the current shortage; no success has followed it
};

}  // namespace pdp::comm::tcp
