#include <cstring>

#include "catch.hpp"
#include "comm/stream_ranks.hpp"

namespace tcp_transport_test {

using namespace stream_test;
using pdp::comm::stream::Frame;

TEST_CASE("TcpTransport delivers a whole message if its receive is posted while the message arrives", "[comm][tcp]") {
  const auto values = pattern(3 * Frame::capacity + 12, 5);
  const bool combined = GENERATE(false, true);
  const std::size_t cut = GENERATE(as<std::size_t>{}, 64, 67, 30'001, 256 * 1024 + 64 - 3, 256 * 1024 + 64, 256 * 1024 + 100, 300'001);
  auto [transport, peer] = Bare::make();
  std::vector<std::byte> stream;
  for (std::size_t at = 0; at < values.size(); at += Frame::capacity) {
    Frame frame{.kind = at == 0 ? Frame::Kind::message : Frame::Kind::more,
                .length = static_cast<std::uint32_t>(std::min(Frame::capacity, values.size() - at))};
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

TEST_CASE("TcpTransport reports a vanished peer as lost on every other rank", "[comm][tcp]") {
  // Ranks 0 and 1 are transports. The test plays rank 2.
  auto [zero_one, one_zero] = pair_of_sockets();
  auto [zero_two, two_zero] = pair_of_sockets();
  auto [one_two, two_one] = pair_of_sockets();
  std::vector<pdp::comm::Descriptor> of_zero(3), of_one(3);
  of_zero[1] = std::move(zero_one);
  of_zero[2] = std::move(zero_two);
  of_one[0] = std::move(one_zero);
  of_one[2] = std::move(one_two);
  std::exception_ptr thrown[2];
  {
    TcpTransport zero{0, std::move(of_zero)}, one{1, std::move(of_one)};
    const std::jthread first{[&] { thrown[0] = failure_of(zero); }};
    const std::jthread second{[&] { thrown[1] = failure_of(one); }};
    two_zero.close();  // the connection to rank 1 stays open, so rank 1 learns only from rank 0 that rank 2 is gone
  }
  for (const auto& each : thrown) {
    CHECK(lost_rank(each) == 2);
    CHECK_THAT(words(each), Contains("rank 2 is gone: its connection to rank 0 closed unexpectedly, so"));
  }
}

TEST_CASE("TcpTransport reports the peer as lost after an invalid frame", "[comm][tcp]") {
  Frame frame{.kind = Frame::Kind::message};
  SECTION("an unknown kind") { frame.kind = static_cast<Frame::Kind>(77); }
  SECTION("the middle of a message without a beginning") { frame = {.kind = Frame::Kind::more, .length = 5}; }
  SECTION("a frame longer than the capacity") {
    frame.length = Frame::capacity + 1;
    frame.envelope = envelope(Frame::capacity + 1);
  }
  SECTION("a frame shorter than its message") { frame.envelope = envelope(100); }
  SECTION("a message larger than any memory") {
    frame.length = Frame::capacity;
    frame.envelope = envelope(std::size_t{1} << 60);
  }
  SECTION("a failure of an unknown kind") { frame = {.kind = Frame::Kind::failure, .envelope = {.tag = 9}}; }
  SECTION("a failure with an overlong text") { frame = {.kind = Frame::Kind::failure, .length = 1u << 31, .envelope = {.tag = 0}}; }
  auto [transport, peer] = Bare::make();
  REQUIRE(::send(peer.get(), &frame, sizeof frame, 0) == sizeof frame);
  const auto thrown = failure_of(transport);
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("rank 0 received malformed data from rank 1"));
}

TEST_CASE("TcpTransport keeps waiting for the rest of a message that claims a terabyte", "[comm][tcp]") {
  auto [transport, peer] = Bare::make();
  const Frame frame{.kind = Frame::Kind::message, .length = Frame::capacity, .envelope = envelope(std::size_t{1} << 40)};
  REQUIRE(::send(peer.get(), &frame, sizeof frame, 0) == sizeof frame);
  for (int looks = 0; looks < 1000; ++looks) transport.progress();
  CHECK(transport.failure() == nullptr);
}

}  // namespace tcp_transport_test
