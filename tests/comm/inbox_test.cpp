#include <pdp/comm/message/stream/inbox.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using pdp::comm::Failure;
using pdp::comm::ReceiveRequest;
using pdp::comm::stream::Frame;
using pdp::comm::stream::Inbox;
using pdp::comm::stream::Strays;

/// Passes the bytes to an Inbox, which must take all of them.
void take_all(Inbox& inbox, Strays& strays, std::vector<std::byte> bytes) {
  REQUIRE(inbox.take(bytes.data(), bytes.size(), strays) == bytes.size());
}

void take_frame(Inbox& inbox, Strays& strays, const Frame& frame) {
  std::vector<std::byte> bytes(sizeof frame);
  std::memcpy(bytes.data(), &frame, sizeof frame);
  take_all(inbox, strays, bytes);
}

}  // namespace

TEST_CASE("Inbox keeps the text of a failure out of the memory of a message that it interrupts", "[comm][stream]") {
  constexpr std::size_t bytes = Frame::capacity + 8;  // in two frames
  std::vector<std::byte> values(bytes);
  ReceiveRequest receive;
  receive.envelope = {.channel = 1, .count = bytes, .bytes = bytes};
  receive.data = values.data();
  Inbox inbox{0, 1};
  Strays strays{0};
  inbox.post(receive, strays);
  take_frame(inbox, strays, {.kind = Frame::Kind::message, .length = Frame::capacity, .envelope = receive.envelope});
  REQUIRE(inbox.straight().size() == Frame::capacity);
  inbox.placed(Frame::capacity);

  const std::string text(Frame::longest_text, 'x');
  Frame failure{.kind = Frame::Kind::failure, .length = Frame::longest_text};
  failure.envelope.tag = static_cast<int>(Failure::Kind::lost);
  failure.envelope.root = 1;
  take_frame(inbox, strays, failure);
  CHECK(inbox.straight().empty());
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  take_all(inbox, strays, {first, first + text.size()});
  REQUIRE(inbox.fault());
  CHECK(inbox.fault()->message == text);
}
