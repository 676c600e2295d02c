#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <barrier>
#include <bit>
#include <chrono>
#include <exception>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include <pdp/comm/join/handshake/client.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/net/address.hpp>
#include <pdp/testing/ranks.hpp>

#include "catch.hpp"
#include "comm/findings.hpp"
#include "comm/stream_ranks.hpp"

namespace tcp_mesh_test {

using namespace stream_test;
namespace comm = pdp::comm;

namespace {

std::size_t open_sockets() {
  std::size_t sockets = 0;
  for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    sockets += std::filesystem::read_symlink(each.path(), gone).string().rfind("socket:", 0) == 0 ? 1 : 0;
  }
  return sockets;
}

/// Connects to rank 0 of two as the pulse of rank 1, the connection for heartbeats. Sends nothing after the handshake.
comm::Descriptor play_pulse(pdp::launch::InProcessStore& store) {
  using namespace comm::handshake;
  const std::string address = store.wait("tcp/address/0", patience());
  const std::size_t space = address.find(' ');
  std::string why;
  const auto found = pdp::launch::resolve(address.substr(0, space), static_cast<std::uint16_t>(std::stoi(address.substr(space + 1))), why);
  comm::Descriptor socket{::socket(found.at(0).family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(socket.get(), found.at(0).get(), found.at(0).size) != 0) throw std::runtime_error{"connect"};
  Client client{comm::handshake::Self::of(Purpose::data, 1, 2, {}), 0, Purpose::pulse};
  const auto hear = [&] {
    while (!client.space().empty()) {
      const ssize_t read = ::recv(socket.get(), client.space().data(), client.space().size(), 0);
      if (read <= 0) throw std::runtime_error{"the handshake was cut off"};
      client.took(static_cast<std::size_t>(read));
    }
  };
  hear();
  const Introduction words = client.introduce(Key{comm::Membership{}, Purpose::data, store.wait("tcp/token", patience())});
  if (::send(socket.get(), &words, sizeof words, 0) != sizeof words) throw std::runtime_error{"send"};
  hear();
  if (client.stage() != Client::Stage::welcome) throw std::runtime_error{"the pulse was refused"};
  return socket;
}

/// Returns the exception that ends rank 0 of two, which waits with this heartbeat. `play` acts for rank 1 on its pulse.
template <class F>
std::exception_ptr end_of_rank_zero(std::chrono::seconds heartbeat, const F& play) {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  store.set("tcp/address/1", "127.0.0.1 1");
  {
    const std::jthread zero{[&] {
      try {
        TcpTransport transport = TcpTransport::connect(store, 0, 2, patience());
        transport.heartbeat(heartbeat);
        thrown = failure_of(transport);
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    const comm::Descriptor pulse = play_pulse(store);
    play(pulse.get());
    char bytes[4096];
    while (::recv(pulse.get(), bytes, sizeof bytes, 0) > 0) {
    }
  }
  return thrown;
}

}  // namespace

TEST_CASE("TcpTransport delivers all messages if all ranks connect to each other at once", "[comm][tcp][mesh]") {
  const int size = GENERATE(2, 3, 6);
  for (int world = 0; world < 10; ++world)
    ranks<TcpTransport>(size, [&](TcpTransport& transport) {
      const auto others = static_cast<std::size_t>(size - 1);
      std::vector<std::vector<std::byte>> out(others), in(others);
      std::vector<SendRequest> sends(others);
      std::vector<ReceiveRequest> receives(others);
      for (std::size_t i = 0; i < others; ++i) {
        const int peer = (transport.rank() + 1 + static_cast<int>(i)) % size;
        out[i] = pattern(1000, transport.rank() * size + peer);
        in[i].resize(1000);
        fill(sends[i], peer, out[i]);
        fill(receives[i], peer, in[i]);
        transport.post(sends[i]);
        transport.post(receives[i]);
      }
      for (std::size_t i = 0; i < others; ++i) {
        finish(transport, sends[i]);
        finish(transport, receives[i]);
        require(in[i] == pattern(1000, receives[i].peer * size + transport.rank()), "other bytes arrived");
      }
    });
}

TEST_CASE("Tcp collectives need at most 2 log2(N) + 8 sockets for each rank", "[comm][tcp][mesh]") {
  const int size = GENERATE(16, 19);
  const std::size_t before = open_sockets();
  std::size_t most = 0;
  pdp::testing::ranks<comm::Tcp>(size, [&](comm::Tcp& world) {
    std::vector<float> small(100, 1), large(100'000, 1), all(small.size() * static_cast<std::size_t>(size));
    for (int root : {0, 1, size / 2, size - 1}) {
      world.broadcast(small, root);
      world.reduce(large, comm::Sum{}, root);
    }
    world.all_reduce(small, comm::Sum{});
    world.all_reduce(large, comm::Sum{});
    world.all_gather(std::as_const(small), all);
    world.reduce_scatter(std::as_const(all), small, comm::Sum{});
    world.barrier();
    if (world.rank() == 0) most = open_sockets();
    world.barrier();
  });
  const auto ranks = static_cast<std::size_t>(size);
  const auto levels = static_cast<std::size_t>(std::bit_width(ranks - 1));  // bit_width returns an int from GCC 13 on
  CHECK((most - before) / ranks <= 2 * levels + 8);
  CHECK(most > before);
}

TEST_CASE("Tcp reports a failure to every rank, even to ranks without a connection", "[comm][tcp][mesh]") {
  constexpr int size = 9;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<comm::Tcp>(size, [](comm::Tcp& world) {
    std::vector<int> values(3);
    // No ranks are connected yet. Rank 4 fails. Each of the others waits for a rank that never sends.
    if (world.rank() == 4) world.abort("for good reason");
    world.recv(values, (world.rank() + 3) % size);
  });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{2});
  for (const auto& each : errors) {
    CHECK(each.lost_rank() == 4);
    CHECK_THAT(each.what(), Contains("for good reason"));
  }
}

TEST_CASE("Tcp reports a rank that has left to all waiting ranks, even if they were never connected", "[comm][tcp][mesh]") {
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<comm::Tcp>(6, [](comm::Tcp& world) {
    std::vector<int> values(3);
    if (world.rank() == 2) return;
    world.recv(values, world.rank() == 5 ? 2 : 5);
  });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{2});
  for (const int rank : {0, 1, 3, 4, 5}) {
    CHECK(errors[static_cast<std::size_t>(rank)].lost_rank() == 2);
    CHECK_THAT(errors[static_cast<std::size_t>(rank)].what(), Contains("rank 2 has finished while rank 5 still has a call with it"));
  }
}

TEST_CASE("TcpTransport reports a rank as lost if it sends no heartbeat in time", "[comm][tcp][mesh]") {
  const auto start = std::chrono::steady_clock::now();
  const auto thrown = end_of_rank_zero(std::chrono::seconds{1}, [](int) {});
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("received no heartbeat from it for 1000 ms") && Contains("PDP_HEARTBEAT"));
  CHECK(std::chrono::steady_clock::now() - start > std::chrono::seconds{1});
}

TEST_CASE("TcpTransport keeps waiting for a rank that sends heartbeats", "[comm][tcp][mesh]") {
  std::atomic<bool> over = false;
  const auto thrown = end_of_rank_zero(std::chrono::seconds{2}, [&](int pulse) {
    const comm::stream::Frame beat{.kind = comm::stream::Frame::Kind::beat};
    for (int beats = 0; beats < 45; ++beats) {
      static_cast<void>(::send(pulse, &beat, sizeof beat, MSG_NOSIGNAL));
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    over = true;
    ::shutdown(pulse, SHUT_WR);
  });
  CHECK(over);
  CHECK_THAT(words(thrown), Contains("closed unexpectedly, so"));
}

TEST_CASE("TcpTransport reports the peer as lost after an invalid frame on its pulse", "[comm][tcp][mesh]") {
  using Frame = comm::stream::Frame;
  Frame frame;
  SECTION("an unknown kind") { frame.kind = static_cast<Frame::Kind>(99); }
  SECTION("a message") { frame.kind = Frame::Kind::message; }
  SECTION("a failure of an unknown kind") { frame = {.kind = Frame::Kind::failure, .envelope = {.tag = 9}}; }
  SECTION("a failure with an overlong text") { frame = {.kind = Frame::Kind::failure, .length = 1u << 31, .envelope = {.tag = 0}}; }
  const auto thrown = end_of_rank_zero(std::chrono::seconds{60}, [&](int pulse) {
    if (::send(pulse, &frame, sizeof frame, 0) != sizeof frame) throw std::runtime_error{"send"};
  });
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("rank 0 received malformed data from rank 1"));
}

TEST_CASE("TcpTransport throws a failure that arrives on a pulse with its rank and text", "[comm][tcp][mesh]") {
  using Frame = comm::stream::Frame;
  const std::string story = "rank 7 did it";
  const auto thrown = end_of_rank_zero(std::chrono::seconds{60}, [&](int pulse) {
    const Frame frame{.kind = Frame::Kind::failure, .length = static_cast<std::uint32_t>(story.size()), .envelope = {.tag = 0, .root = 7}};
    std::string bytes{reinterpret_cast<const char*>(&frame), sizeof frame};
    for (const char letter : bytes + story)  // one byte at a time
      if (::send(pulse, &letter, 1, 0) != 1) throw std::runtime_error{"send"};
  });
  CHECK(lost_rank(thrown) == 7);
  CHECK(words(thrown) == story);
}

TEST_CASE("Tcp survives a shortage of file descriptors during which a stranger connects", "[comm][tcp][mesh]") {
  pdp::launch::InProcessStore store;
  const comm::TimePoint deadline = comm::Clock::now() + std::chrono::minutes{1};
  std::array<std::exception_ptr, 2> thrown;
  std::barrier in_turn{3};
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        try {
          comm::Tcp world = comm::Tcp::connect(store, rank, 2, deadline);
          std::vector<int> values(3, 1);
          world.all_reduce(values, comm::Sum{});
          in_turn.arrive_and_wait();
          in_turn.arrive_and_wait();
          world.all_reduce(values, comm::Sum{});
          if (values[2] != 4) throw std::logic_error{"wrong values"};
        } catch (...) {
          thrown[static_cast<std::size_t>(rank)] = std::current_exception();
          in_turn.arrive_and_drop();
        }
      });
    in_turn.arrive_and_wait();
    std::string why;
    std::istringstream place{store.get("tcp/address/0").value()};
    std::string host;
    std::uint16_t port = 0;
    place >> host >> port;
    const auto address = pdp::launch::resolve(host, port, why).at(0);
    const comm::Descriptor stranger{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const int connected = ::connect(stranger.get(), address.get(), address.size);
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(connected == 0);
    in_turn.arrive_and_wait();
  }
  for (const auto& each : thrown)
    if (each) CHECK_NOTHROW(std::rethrow_exception(each));
}

}  // namespace tcp_mesh_test
