#include <cstring>

#include "catch.hpp"
#include "comm/tcp_ranks.hpp"

using namespace tcp_test;
namespace tcp = pdp::comm::tcp;

TEST_CASE("tcp: a message of any size arrives as it was sent", "[comm][tcp]") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{16384},
                                  tcp::Frame::capacity - 1, tcp::Frame::capacity, tcp::Frame::capacity + 1, 3 * tcp::Frame::capacity + 17})
    ranks(2, [&](TcpTransport& transport) {
      const int peer = 1 - transport.rank();
      if (transport.rank() == 0) send(transport, peer, pattern(bytes, 1));
      if (transport.rank() == 1) require(receive(transport, peer, bytes) == pattern(bytes, 1), "other bytes arrived");
    });
}

TEST_CASE("tcp: large messages both ways at once do not wait for each other", "[comm][tcp]") {
  constexpr std::size_t bytes = 24 * 1024 * 1024;
  ranks(3, [&](TcpTransport& transport) {
    std::vector<std::vector<std::byte>> out(3), in(3, std::vector<std::byte>(bytes));
    std::vector<SendRequest> sends(3);
    std::vector<ReceiveRequest> receives(3);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == transport.rank()) continue;
      const auto i = static_cast<std::size_t>(peer);
      out[i] = pattern(bytes, transport.rank());
      fill(sends[i], peer, out[i]);
      fill(receives[i], peer, in[i]);
      transport.post(sends[i]);
      transport.post(receives[i]);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (static_cast<int>(i) == transport.rank()) continue;
      finish(transport, sends[i]);
      finish(transport, receives[i]);
      require(in[i] == pattern(bytes, static_cast<int>(i)), "other bytes arrived");
    }
  });
}

TEST_CASE("tcp: messages with one tag keep their order, and those with another may be taken first", "[comm][tcp]") {
  constexpr int count = 40;
  ranks(2, [](TcpTransport& transport) {
    if (transport.rank() == 0) {
      for (int i = 0; i < count; ++i) send(transport, 1, pattern(static_cast<std::size_t>(1000 * i), i), i % 2);
      receive(transport, 1, 1, 7);
    } else {
      for (const int tag : {1, 0})  // nothing of tag 1 is expected when the first of tag 0 arrives
        for (int i = tag; i < count; i += 2)
          require(receive(transport, 0, static_cast<std::size_t>(1000 * i), tag) == pattern(static_cast<std::size_t>(1000 * i), i),
                  "order");
      send(transport, 0, pattern(1, 0), 7);
    }
  });
}

TEST_CASE("tcp: a message that is larger than all buffers and expected by nobody does not hold up another", "[comm][tcp]") {
  constexpr std::size_t large = 32 * 1024 * 1024;
  ranks(2, [](TcpTransport& transport) {
    if (transport.rank() == 0) {
      const auto first = pattern(large, 1), second = pattern(100, 2);
      SendRequest sends[2];
      fill(sends[0], 1, first, 1);
      fill(sends[1], 1, second, 2);
      for (SendRequest& each : sends) transport.post(each);
      for (SendRequest& each : sends) finish(transport, each);
      receive(transport, 1, 1, 3);
    } else {
      require(receive(transport, 0, 100, 2) == pattern(100, 2), "the second");
      require(receive(transport, 0, large, 1) == pattern(large, 1), "the first");
      send(transport, 0, pattern(1, 0), 3);
    }
  });
}

TEST_CASE("tcp: a receive that is posted while its message arrives gets all of it", "[comm][tcp]") {
  const auto values = pattern(3 * tcp::Frame::capacity + 12, 5);
  const bool combined = GENERATE(false, true);
  const std::size_t cut = GENERATE(as<std::size_t>{}, 64, 67, 30'001, 256 * 1024 + 64 - 3, 256 * 1024 + 64, 256 * 1024 + 100, 300'001);
  auto [transport, peer] = Bare::make();
  std::vector<std::byte> stream;
  for (std::size_t at = 0; at < values.size(); at += tcp::Frame::capacity) {
    tcp::Frame frame{.kind = at == 0 ? tcp::Frame::Kind::message : tcp::Frame::Kind::more,
                     .length = static_cast<std::uint32_t>(std::min(tcp::Frame::capacity, values.size() - at))};
    if (at == 0) frame.envelope = envelope(values.size());
    const auto* header = reinterpret_cast<const std::byte*>(&frame);
    stream.insert(stream.end(), header, header + sizeof frame);
    stream.insert(stream.end(), values.begin() + static_cast<std::ptrdiff_t>(at),
                  values.begin() + static_cast<std::ptrdiff_t>(at + frame.length));
  }
  std::size_t said = 0;
  const auto say_until = [&, to = peer.get()](std::size_t end) {
    while (said < end) {
      const ssize_t sent = ::send(to, stream.data() + said, end - said, 0);
      if (sent > 0) said += static_cast<std::size_t>(sent);
      for (int looks = 0; looks < 100; ++looks) transport.progress();
    }
  };
  say_until(cut);
  std::vector<std::byte> got(values.size());
  ReceiveRequest request;
  fill(request, 1, got);
  request.element = 4;
  if (combined) request.consume = pdp::comm::combine<std::int32_t, pdp::comm::Sum>;
  transport.post(request);
  say_until(stream.size());
  finish(transport, request);
  CHECK(got == values);
}

TEST_CASE("tcp: what is combined on the way arrives in whole and aligned elements, whatever came before it", "[comm][tcp]") {
  for (const std::size_t odd : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1001}})
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{8191}, std::size_t{100'003}})
      ranks(2, [&](TcpTransport& transport) {
        std::vector<double> values(count);
        std::iota(values.begin(), values.end(), 1.0);
        if (transport.rank() == 0) {
          const auto before = pattern(odd, 0);
          SendRequest sends[2];
          fill(sends[0], 1, before);
          sends[1].envelope = {.channel = 2, .count = count, .bytes = count * sizeof(double), .type = pdp::DType::float64};
          sends[1].data = reinterpret_cast<const std::byte*>(values.data());
          sends[1].peer = 1;
          for (SendRequest& each : sends) transport.post(each);
          for (SendRequest& each : sends) finish(transport, each);
        } else {
          ReceiveRequest request;
          request.envelope = {.channel = 2, .count = count, .bytes = count * sizeof(double), .type = pdp::DType::float64};
          request.data = reinterpret_cast<std::byte*>(values.data());
          request.element = sizeof(double);
          request.peer = 0;
          request.consume = [](std::byte* into, const std::byte* from, std::size_t bytes) {
            require(reinterpret_cast<std::uintptr_t>(from) % alignof(double) == 0 && bytes % sizeof(double) == 0,
                    "a part of an element, or not aligned");
            pdp::comm::combine<double, pdp::comm::Sum>(into, from, bytes);
          };
          std::vector<std::byte> before(odd);
          ReceiveRequest first;
          fill(first, 0, before);
          transport.post(request);
          transport.post(first);
          finish(transport, request);
          finish(transport, first);
          for (std::size_t i = 0; i < count; ++i) require(values[i] == 2.0 * static_cast<double>(i + 1), "a wrong sum");
        }
      });
}

TEST_CASE("tcp: calls that differ are told to both ranks, with both calls", "[comm][tcp][mismatch]") {
  const bool receive_first = GENERATE(false, true);
  const auto thrown = outcomes(2, [&](TcpTransport& transport) {
    std::vector<std::byte> values(9);
    SendRequest request;
    fill(request, 0, values);
    ReceiveRequest expected;
    std::vector<std::byte> room(8);
    fill(expected, 1, room);
    if (transport.rank() == 1) transport.post(request);
    if (transport.rank() == 0 && receive_first) transport.post(expected);
    if (transport.rank() == 0 && !receive_first) {
      transport.wait(Clock::now() + std::chrono::milliseconds{20});
      transport.post(expected);
    }
    if (const auto failed = failure_of(transport)) std::rethrow_exception(failed);
  });
  for (const auto& each : thrown) {
    CHECK(is<pdp::MismatchedCollective>(each));
    CHECK_THAT(words(each), Contains("send of 8 byte with tag 0 on rank 0") && Contains("send of 9 byte with tag 0 on rank 1"));
  }
}

TEST_CASE("tcp: a failure is told to every rank, which all throw the same", "[comm][tcp]") {
  const auto thrown = outcomes(4, [](TcpTransport& transport) {
    if (transport.rank() == 2) transport.fail({pdp::comm::Failure::Kind::timeout, 2, "rank 2 has waited long enough"});
    if (const auto failed = failure_of(transport)) std::rethrow_exception(failed);
  });
  for (const auto& each : thrown) {
    CHECK(is<pdp::Timeout>(each));
    CHECK(words(each) == "rank 2 has waited long enough");
  }
}

TEST_CASE("tcp: a failure is told even while a message is half sent, and nobody takes the half for a whole", "[comm][tcp]") {
  std::atomic<bool> failed{false};
  const auto thrown = outcomes(2, [&](TcpTransport& transport) {
    std::vector<std::byte> values(std::size_t{64} << 20);
    if (transport.rank() == 0) {
      SendRequest request;
      fill(request, 1, values);
      transport.post(request);
      for (int looks = 0; looks < 50; ++looks) transport.progress();
      require(!request.done, "the system took 64 MiB at once");
      transport.fail({pdp::comm::Failure::Kind::lost, 0, "rank 0 gave up"});
      failed = true;
      require(!request.done, "a message that was not sent is done");
      transport.progress();
    } else {
      while (!failed) std::this_thread::yield();
      ReceiveRequest request;
      fill(request, 0, values);
      transport.post(request);
      const auto told = failure_of(transport);
      require(!request.done, "half a message was taken for a whole");
      std::rethrow_exception(told);
    }
  });
  for (const auto& each : thrown) CHECK(words(each) == "rank 0 gave up");
}

TEST_CASE("tcp: a peer that vanishes is lost for every other rank", "[comm][tcp]") {
  // Ranks 0 and 1 are connected, rank 2 is the test.
  auto [zero_one, one_zero] = pair_of_sockets();
  auto [zero_two, two_zero] = pair_of_sockets();
  auto [one_two, two_one] = pair_of_sockets();
  std::vector<tcp::Descriptor> of_zero(3), of_one(3);
  of_zero[1] = std::move(zero_one);
  of_zero[2] = std::move(zero_two);
  of_one[0] = std::move(one_zero);
  of_one[2] = std::move(one_two);
  std::exception_ptr thrown[2];
  {
    TcpTransport zero{0, std::move(of_zero)}, one{1, std::move(of_one)};
    const std::jthread first{[&] { thrown[0] = failure_of(zero); }};
    const std::jthread second{[&] { thrown[1] = failure_of(one); }};
    two_zero.close();  // rank 1 can know it from rank 0 alone
  }
  for (const auto& each : thrown) {
    CHECK(lost_rank(each) == 2);
    CHECK_THAT(words(each), Contains("rank 2 is gone: its connection to rank 0 was closed without a goodbye"));
  }
}

TEST_CASE("tcp: a rank that ends its part is lost only for those who still need it", "[comm][tcp]") {
  const auto thrown = outcomes(3, [](TcpTransport& transport) {
    if (transport.rank() == 2) return;
    if (transport.rank() == 1) send(transport, 0, pattern(10, 1), 5);
    if (transport.rank() == 0) {
      receive(transport, 1, 10, 5);
      receive(transport, 2, 10);
    }
  });
  CHECK(lost_rank(thrown[0]) == 2);
  CHECK_THAT(words(thrown[0]), Contains("rank 2 has ended its part while rank 0 still has a call with it (send of 10 byte with tag 0)"));
  CHECK_FALSE(thrown[1]);
  CHECK_FALSE(thrown[2]);
}

TEST_CASE("tcp: what a rank has sent arrives, although it leaves at once", "[comm][tcp]") {
  constexpr std::size_t bytes = 100'000;
  std::atomic<bool> gone{false};
  ranks(2, [&](TcpTransport& transport) {
    if (transport.rank() == 1) {
      send(transport, 0, pattern(bytes, 3));
      { const TcpTransport leaving = std::move(transport); }
      gone = true;
    } else {
      while (!gone) std::this_thread::yield();
      require(receive(transport, 1, bytes) == pattern(bytes, 3), "other bytes arrived");
    }
  });
}

TEST_CASE("tcp: what makes no sense ends the world, and takes no memory for what it claims", "[comm][tcp]") {
  tcp::Frame frame{.kind = tcp::Frame::Kind::message};
  SECTION("an unknown kind") { frame.kind = static_cast<tcp::Frame::Kind>(77); }
  SECTION("the middle of a message that never began") { frame = {.kind = tcp::Frame::Kind::more, .length = 5}; }
  SECTION("a frame longer than frames are") {
    frame.length = tcp::Frame::capacity + 1;
    frame.envelope = envelope(tcp::Frame::capacity + 1);
  }
  SECTION("a frame shorter than its message") { frame.envelope = envelope(100); }
  SECTION("a message longer than memory could be") {
    frame.length = tcp::Frame::capacity;
    frame.envelope = envelope(std::size_t{1} << 60);
  }
  SECTION("a failure of an unknown kind") { frame = {.kind = tcp::Frame::Kind::failure, .envelope = {.tag = 9}}; }
  SECTION("a failure with a long story") { frame = {.kind = tcp::Frame::Kind::failure, .length = 1u << 31, .envelope = {.tag = 0}}; }
  auto [transport, peer] = Bare::make();
  REQUIRE(::send(peer.get(), &frame, sizeof frame, 0) == sizeof frame);
  const auto thrown = failure_of(transport);
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("rank 0 cannot make sense of what rank 1 sent"));
}

TEST_CASE("tcp: a message that claims a terabyte and then falls silent costs what has arrived of it", "[comm][tcp]") {
  auto [transport, peer] = Bare::make();
  const tcp::Frame frame{.kind = tcp::Frame::Kind::message, .length = tcp::Frame::capacity, .envelope = envelope(std::size_t{1} << 40)};
  REQUIRE(::send(peer.get(), &frame, sizeof frame, 0) == sizeof frame);
  for (int looks = 0; looks < 1000; ++looks) transport.progress();
  CHECK(transport.failure() == nullptr);
}

TEST_CASE("tcp: a world of one makes no connection", "[comm][tcp]") {
  pdp::launch::InProcessStore store;
  TcpTransport transport = TcpTransport::connect(store, 0, 1, Clock::now());
  CHECK(transport.size() == 1);
  CHECK_FALSE(transport.progress());
}
