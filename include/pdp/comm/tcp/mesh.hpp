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
#include <utility>
#include <vector>

#if __has_include(<asio/ip/tcp.hpp>)
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#else
#error "pdp over TCP needs standalone Asio (Debian: libasio-dev), and the CMake target pdp::tcp"
#endif

#include <pdp/comm/tcp/descriptor.hpp>
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
      const asio::ip::tcp::endpoint endpoint{asio::ip::make_address(address), 0};
      acceptor_.open(endpoint.protocol());
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const std::system_error& error) {
      throw ConfigError{text("rank ", own.rank, " cannot listen at ", address, ": ", error.what())};
    }
  }

  /// Where the others reach this rank: address and port.
  [[nodiscard]] std::string address() const {
    const auto endpoint = acceptor_.local_endpoint();
    return text(endpoint.address().to_string(), ' ', endpoint.port());
  }

  /// Goes on until all connections stand. `addresses`: of all lower ranks, as they gave them. Throws Timeout, which names the missing
  /// ranks.
  std::vector<Descriptor> connect(const std::vector<std::string>& addresses, const Token& token, TimePoint deadline) {
    own_.token = token;
    missing_ = own_.size - 1;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) dial(static_cast<int>(rank), addresses[rank]);
    if (own_.rank + 1 < own_.size) accept();
    while (missing_ > 0 && fault_.message.empty() && foreign_.empty() && Clock::now() < deadline) io_.run_one_until(deadline);
    if (!foreign_.empty()) throw ConfigError{foreign_};
    if (!fault_.message.empty()) fault_.raise();
    if (missing_ > 0)
      throw Timeout{text(
          "no connection between rank ", own_.rank, " and ", missing_ranks(), " (of ", own_.size,
          " ranks) stood before the deadline for the start; a missing rank was not started, has failed, or cannot be reached from here")};
    std::vector<Descriptor> sockets;
    for (Peer& peer : peers_) sockets.push_back(peer.socket ? Descriptor{peer.socket->release()} : Descriptor{});
    return sockets;
  }

 private:
  using Socket = asio::ip::tcp::socket;
  static constexpr auto patience_with_strangers = std::chrono::seconds{5};
  static constexpr std::size_t strangers_at_once = 64;  // beyond one for each rank

  struct Peer {
    std::unique_ptr<Socket> socket;
    char peeked = 0;
  };
  /// A connection whose other end has not proved anything yet.
  struct Guest {
    explicit Guest(asio::io_context& io) : socket{io}, timer{io} {}
    Socket socket;
    asio::steady_timer timer;
    Hello theirs;
  };

  // ---- Ranks above this one come by themselves --------------------------------------------------------------------

  void accept() {
    auto guest = std::make_shared<Guest>(io_);
    acceptor_.async_accept(guest->socket, [this, guest](std::error_code error) {
      if (error) {  // too many files, say: later there may be fewer
        retry_.expires_after(std::chrono::milliseconds{50});
        retry_.async_wait([this](std::error_code) { accept(); });
        return;
      }
      accept();
      receive(guest);
    });
  }

  void receive(const std::shared_ptr<Guest>& guest) {
    // The one who has been silent for longest goes first; a rank that is sent away by that dials again.
    if (guests_.size() == strangers_at_once + peers_.size()) dismiss(*guests_.front());
    guests_.push_back(guest);
    guest->timer.expires_after(patience_with_strangers);
    guest->timer.async_wait([this, guest](std::error_code error) {
      if (!error) dismiss(*guest);
    });
    asio::async_read(guest->socket, asio::buffer(&guest->theirs, sizeof(Hello)), [this, guest](std::error_code error, std::size_t) {
      const Verdict verdict = error ? Verdict::stranger : judge(guest->theirs, own_);
      if (verdict == Verdict::stranger || (verdict == Verdict::welcome && !awaited(guest->theirs.rank))) return dismiss(*guest);
      asio::async_write(guest->socket, asio::buffer(&own_, sizeof(Hello)), [this, guest, verdict](std::error_code failed, std::size_t) {
        if (verdict == Verdict::foreign) foreign_ = describe_foreign(guest->theirs, own_);
        if (!failed && verdict == Verdict::welcome && awaited(guest->theirs.rank)) join(guest->theirs.rank, std::move(guest->socket));
        dismiss(*guest);
      });
    });
  }

  [[nodiscard]] bool awaited(int rank) const { return rank > own_.rank && !peers_[static_cast<std::size_t>(rank)].socket; }

  void dismiss(Guest& guest) {
    std::error_code ignored;
    guest.timer.cancel();
    guest.socket.close(ignored);
    guests_.remove_if([&guest](const auto& each) { return each.get() == &guest; });
  }

  // ---- Ranks below this one are dialled ---------------------------------------------------------------------------

  void dial(int rank, const std::string& address) {
    const std::size_t space = address.find(' ');
    std::error_code error;
    const auto host = asio::ip::make_address(address.substr(0, space), error);
    const int port = error || space == std::string::npos ? 0 : std::atoi(address.c_str() + space + 1);
    if (port < 1 || port > 65535)
      throw ConfigError{text("rank ", own_.rank, " cannot connect to rank ", rank, ": its address in the job's store is '", address,
                             "'; it should be an IP address and a port")};
    dial(rank, asio::ip::tcp::endpoint{host, static_cast<std::uint16_t>(port)});
  }

  void dial(int rank, const asio::ip::tcp::endpoint& endpoint) {
    auto guest = std::make_shared<Guest>(io_);
    guest->socket.async_connect(endpoint, [this, guest, rank, endpoint](std::error_code refused) {
      if (refused) return dial_again(*guest, guest, rank, endpoint);
      asio::async_write(guest->socket, asio::buffer(&own_, sizeof(Hello)),
                        [this, guest, rank, endpoint](std::error_code failed, std::size_t) {
                          if (failed) return dial_again(*guest, guest, rank, endpoint);
                          asio::async_read(guest->socket, asio::buffer(&guest->theirs, sizeof(Hello)),
                                           [this, guest, rank, endpoint](std::error_code closed, std::size_t) {
                                             const Verdict verdict = closed ? Verdict::stranger : judge(guest->theirs, own_);
                                             if (verdict == Verdict::foreign)
                                               foreign_ = describe_foreign(guest->theirs, own_);
                                             else if (verdict == Verdict::welcome && guest->theirs.rank == rank)
                                               join(rank, std::move(guest->socket));
                                             else
                                               dial_again(*guest, guest, rank, endpoint);
                                           });
                        });
    });
  }

  void dial_again(Guest& guest, const std::shared_ptr<Guest>& keep, int rank, const asio::ip::tcp::endpoint& endpoint) {
    std::error_code ignored;
    guest.socket.close(ignored);
    guest.timer.expires_after(std::chrono::milliseconds{20});
    guest.timer.async_wait([this, keep, rank, endpoint](std::error_code) { dial(rank, endpoint); });
  }

  // ---- Ranks that have proved themselves --------------------------------------------------------------------------

  void join(int rank, Socket&& socket) {
    std::error_code ignored;  // of a connection that has just ended: watch() will find that out
    socket.non_blocking(true, ignored);
    socket.set_option(asio::ip::tcp::no_delay{true}, ignored);
    peers_[static_cast<std::size_t>(rank)].socket = std::make_unique<Socket>(std::move(socket));
    --missing_;
    watch(rank);
  }

  /// A rank that ends while others still start would leave them waiting for the deadline.
  void watch(int rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.socket->async_receive(asio::buffer(&peer.peeked, 1), Socket::message_peek, [this, rank](std::error_code error, std::size_t) {
      if (!error || error == asio::error::operation_aborted) return;
      fault_ = {Failure::Kind::lost, rank,
                text("rank ", rank, " is gone: its connection to rank ", own_.rank,
                     " was closed while the job was still starting; its own output says why")};
    });
  }

  [[nodiscard]] std::string missing_ranks() const {
    std::string names;
    for (int rank = 0; rank < own_.size; ++rank)
      if (rank != own_.rank && !peers_[static_cast<std::size_t>(rank)].socket) names += text(names.empty() ? "rank " : ", rank ", rank);
    return names;
  }

  asio::io_context io_{1};  // first, as it must outlive what uses it
  Hello own_;
  std::vector<Peer> peers_;
  int missing_ = 0;
  Failure fault_;
  std::string foreign_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer retry_{io_};
  std::list<std::shared_ptr<Guest>> guests_;
};

}  // namespace pdp::comm::tcp
