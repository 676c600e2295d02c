#include <cstring>

#include "catch.hpp"
#include "comm/stream_ranks.hpp"

using namespace stream_test;
using pdp::comm::stream::Frame;

TEMPLATE_TEST_CASE("Stream transports deliver messages of any size unchanged", "[comm][stream]", ShmTransport, TcpTransport) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{16384},
                                  Frame::capacity - 1, Frame::capacity, Frame::capacity + 1, 3 * Frame::capacity + 17})
    ranks<TestType>(2, [&](TestType& transport) {
      const int peer = 1 - transport.rank();
      if (transport.rank() == 0) send(transport, peer, pattern(bytes, 1));
      if (transport.rank() == 1) require(receive(transport, peer, bytes) == pattern(bytes, 1), "other bytes arrived");
    });
}

TEMPLATE_TEST_CASE("Stream transports carry large messages in both directions at once", "[comm][stream]", ShmTransport, TcpTransport) {
  constexpr std::size_t bytes = (PDP_TEST_SANITIZED ? 6 : 24) * 1024 * 1024;
  ranks<TestType>(3, [&](TestType& transport) {
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

TEMPLATE_TEST_CASE("Stream transports keep the order of messages with one tag, but not across tags", "[comm][stream]", ShmTransport,
                   TcpTransport) {
  constexpr int count = 40;
  ranks<TestType>(2, [](TestType& transport) {
    if (transport.rank() == 0) {
      for (int i = 0; i < count; ++i) send(transport, 1, pattern(static_cast<std::size_t>(1000 * i), i), i % 2);
      receive(transport, 1, 1, 7);
    } else {
      for (const int tag : {1, 0})  // messages with tag 0 arrive before their receives are posted
        for (int i = tag; i < count; i += 2)
          require(receive(transport, 0, static_cast<std::size_t>(1000 * i), tag) == pattern(static_cast<std::size_t>(1000 * i), i),
                  "order");
      send(transport, 0, pattern(1, 0), 7);
    }
  });
}

TEMPLATE_TEST_CASE("Stream transports deliver a message behind an unexpected one that is larger than all buffers", "[comm][stream]",
                   ShmTransport, TcpTransport) {
  constexpr std::size_t large = 32 * 1024 * 1024;
  ranks<TestType>(2, [](TestType& transport) {
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

TEMPLATE_TEST_CASE("Stream transports combine whole, aligned elements, whatever message came before", "[comm][stream]", ShmTransport,
                   TcpTransport) {
  for (const std::size_t odd : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1001}})
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{8191}, std::size_t{100'003}})
      ranks<TestType>(2, [&](TestType& transport) {
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

TEMPLATE_TEST_CASE("Stream transports throw MismatchedCollective with both calls on both ranks", "[comm][stream][mismatch]", ShmTransport,
                   TcpTransport) {
  const bool receive_first = GENERATE(false, true);
  const auto thrown = outcomes<TestType>(2, [&](TestType& transport) {
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

TEMPLATE_TEST_CASE("Stream transports throw the same failure on every rank", "[comm][stream]", ShmTransport, TcpTransport) {
  const auto thrown = outcomes<TestType>(4, [](TestType& transport) {
    if (transport.rank() == 2) transport.fail({pdp::comm::Failure::Kind::timeout, 2, "rank 2 has waited long enough"});
    if (const auto failed = failure_of(transport)) std::rethrow_exception(failed);
  });
  for (const auto& each : thrown) {
    CHECK(is<pdp::Timeout>(each));
    CHECK(words(each) == "rank 2 has waited long enough");
  }
}

TEMPLATE_TEST_CASE("Stream transports report a failure within a message and do not complete that message", "[comm][stream]", ShmTransport,
                   TcpTransport) {
  std::atomic<bool> failed{false};
  const auto thrown = outcomes<TestType>(2, [&](TestType& transport) {
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

TEMPLATE_TEST_CASE("Stream transports report a rank that has left only to ranks that still have a call with it", "[comm][stream]",
                   ShmTransport, TcpTransport) {
  const auto thrown = outcomes<TestType>(3, [](TestType& transport) {
    if (transport.rank() == 2) return;
    if (transport.rank() == 1) send(transport, 0, pattern(10, 1), 5);
    if (transport.rank() == 0) {
      receive(transport, 1, 10, 5);
      receive(transport, 2, 10);
    }
  });
  CHECK(lost_rank(thrown[0]) == 2);
  CHECK_THAT(words(thrown[0]), Contains("rank 2 has finished while rank 0 still has a call with it (send of 10 byte with tag 0)"));
  CHECK_FALSE(thrown[1]);
  CHECK_FALSE(thrown[2]);
}

TEMPLATE_TEST_CASE("Stream transports deliver a message whose sender leaves at once", "[comm][stream]", ShmTransport, TcpTransport) {
  constexpr std::size_t bytes = 100'000;
  std::atomic<bool> gone{false};
  ranks<TestType>(2, [&](TestType& transport) {
    if (transport.rank() == 1) {
      send(transport, 0, pattern(bytes, 3));
      { const TestType leaving = std::move(transport); }
      gone = true;
    } else {
      while (!gone) std::this_thread::yield();
      require(receive(transport, 1, bytes) == pattern(bytes, 3), "other bytes arrived");
    }
  });
}

TEMPLATE_TEST_CASE("Stream transports connect a world of one rank", "[comm][stream]", ShmTransport, TcpTransport) {
  pdp::launch::InProcessStore store;
  TestType transport = TestType::connect(store, 0, 1, Clock::now());
  CHECK(transport.size() == 1);
  CHECK_FALSE(transport.progress());
}
