#include <pdp/comm/message/stream/inbox.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fuzz.hpp"

using namespace pdp::comm;
using namespace pdp::comm::stream;

namespace {

/// Reads the fuzzer's input from its beginning. Gives zeros after its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* bytes, std::size_t size) : left_{bytes, size} {}
  [[nodiscard]] bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  std::uint32_t number() {  // mostly small
    const std::uint32_t first = byte();
    return first < 200 ? first : (first - 200) << 8 | byte();
  }
  std::span<const std::uint8_t> some(std::size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> left_;
};

/// A receive whose memory is exactly as long as its message, so that a sanitizer detects any write beyond it.
struct Receive {
  std::unique_ptr<std::byte[]> values;
  ReceiveRequest request;
};

Envelope envelope(Bytes& bytes) {
  struct Type {
    pdp::DType type;
    std::uint64_t bytes;
  };
  constexpr std::array types{Type{pdp::DType::byte, 1}, Type{pdp::DType::float32, 4}, Type{pdp::DType::float64, 8},
                             Type{pdp::DType::float16, 2}};
  Envelope envelope;
  const std::uint8_t choice = bytes.byte();
  envelope.channel = 1 + choice % 2;
  envelope.tag = choice / 2 % 3 - 1;
  envelope.verb = envelope.tag == Envelope::collective ? Verb::all_reduce : Verb::send;
  envelope.sequence = choice / 8 % 4;
  const Type& type = types[choice / 32 % types.size()];
  envelope.type = type.type;
  envelope.count = bytes.number();
  envelope.bytes = envelope.count * type.bytes;
  return envelope;
}

/// Reads a stream as the sockets do: directly into the receive's memory if the inbox offers it, else through a staging buffer.
class Reader {
 public:
  explicit Reader(Inbox& inbox, Strays& strays) : inbox_{&inbox}, strays_{&strays} {}

  void read(std::span<const std::byte> stream) {
    while (!stream.empty() && !inbox_->fault() && !inbox_->ended()) {
      std::byte* const staged = staging_.data();
      std::memcpy(staged, carry_.data(), carried_);
      const std::span<std::byte> straight = inbox_->straight();
      const std::size_t placed = std::min(straight.size(), stream.size());
      if (placed > 0) std::memcpy(straight.data(), stream.data(), placed);
      stream = stream.subspan(placed);
      const std::size_t more = std::min(stream.size(), staging_.size() - carried_);
      if (more > 0) std::memcpy(staged + carried_, stream.data(), more);
      stream = stream.subspan(more);
      if (placed > 0) inbox_->placed(placed);
      const std::size_t there = carried_ + more, taken = inbox_->take(staged, there, *strays_);
      if (taken > there) std::abort();
      carried_ = inbox_->fault() ? 0 : there - taken;
      if (carried_ > carry_.size()) std::abort();
      std::memcpy(carry_.data(), staged + taken, carried_);
    }
  }

 private:
  alignas(64) std::array<std::byte, 16 * 1024> staging_;
  std::array<std::byte, sizeof(Frame)> carry_;
  std::size_t carried_ = 0;
  Inbox* inbox_;
  Strays* strays_;
};

}  // namespace

/// Checks for any bytes, in pieces of any size, that an Inbox writes only to the memory of its receives and of strays (messages that have
/// no receive yet). It may allocate only for bytes that have arrived. At the end it must know why a receive is incomplete.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes{data, size};
  Strays strays{0};
  Inbox inbox{0, 1};
  Reader reader{inbox, strays};
  std::deque<Receive> receives;
  std::vector<std::byte> stream;
  // For the last message that has begun, the inbox may allocate memory for a whole frame before that frame has arrived.
  fuzz::AllocationBound bound{100'000 + 4 * Frame::capacity + 1000 * size};

  int large = 0;  // messages of several frames, limited since they are slow
  const auto may_be_large = [&] { return large++ < 2; };
  const auto flush = [&] {
    bound.allow(8 * stream.size());
    for (std::size_t done = 0; done < stream.size();) {
      const std::size_t piece =
          bytes.empty() ? stream.size() - done : std::min((1 + bytes.number()) * (1 + stream.size() / 4096), stream.size() - done);
      reader.read(std::span{stream}.subspan(done, piece));
      done += piece;
    }
    stream.clear();
  };
  const auto append = [&](const auto& value) {
    const auto raw = std::as_bytes(std::span{&value, 1});
    stream.insert(stream.end(), raw.begin(), raw.end());
  };
  while (!bytes.empty()) {
    switch (bytes.byte() % 9) {
      case 0: {
        Frame frame;
        frame.envelope = envelope(bytes);
        frame.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(frame.envelope.bytes, Frame::capacity));
        append(frame);
        stream.insert(stream.end(), frame.length, std::byte{1});
        break;
      }
      case 1: {  // a message of several frames, or the beginning of one
        if (!may_be_large()) break;
        Frame frame;
        frame.envelope = envelope(bytes);
        frame.envelope.bytes = Frame::capacity + frame.envelope.bytes;
        frame.length = Frame::capacity;
        append(frame);
        stream.insert(stream.end(), bytes.byte() % 4 == 0 ? 5000 : Frame::capacity, std::byte{2});
        Frame rest;
        rest.kind = Frame::Kind::more;
        rest.length = static_cast<std::uint32_t>(frame.envelope.bytes - Frame::capacity);
        append(rest);
        stream.insert(stream.end(), rest.length, std::byte{3});
        break;
      }
      case 2: {
        Frame frame;
        frame.kind = static_cast<Frame::Kind>(bytes.byte() % 8);
        frame.length = bytes.number();
        frame.envelope = envelope(bytes);
        append(frame);
        break;
      }
      case 3: {
        const auto raw = bytes.some(bytes.byte());
        stream.insert(stream.end(), std::as_bytes(raw).begin(), std::as_bytes(raw).end());
        break;
      }
      case 4:
        stream.insert(stream.end(), bytes.number(), std::byte{4});
        break;
      case 5: {
        flush();
        if (inbox.fault()) break;
        Receive& receive = receives.emplace_back();
        ReceiveRequest& request = receive.request;
        request.envelope = envelope(bytes);
        if (request.envelope.count > 0) request.element = request.envelope.bytes / request.envelope.count;
        if (bytes.byte() % 4 == 0 && may_be_large()) request.envelope.bytes += Frame::capacity;
        bound.allow(request.envelope.bytes);
        receive.values = std::make_unique<std::byte[]>(request.envelope.bytes);
        request.data = receive.values.get();
        request.peer = 1;
        request.done = false;
        if (bytes.byte() % 2 == 0) {
          request.consume = [](std::byte* into, const std::byte* from, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) into[i] ^= from[i];
          };
        }
        inbox.post(request, strays);
        break;
      }
      case 6:
        flush();
        inbox.compare(inbox);
        break;
      case 7:
        flush();
        inbox.compare(envelope(bytes));
        break;
      case 8:
        flush();
        inbox.compare_earlier(envelope(bytes));
        break;
    }
  }
  flush();
  if (!inbox.fault()) {
    inbox.closed();
    if (!inbox.ended() && !inbox.fault()) std::abort();
  }
  if (inbox.fault() && inbox.fault()->message.empty() && !inbox.told()) std::abort();
  return 0;
}
