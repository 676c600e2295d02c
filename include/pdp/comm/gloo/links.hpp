#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#if __has_include(<gloo/context.h>)
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>
#else
#error "pdp over Gloo needs Gloo (Debian: libgloo-dev), and the CMake target pdp::gloo"
#include <see the error above>
#endif

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::gloo {

/// The timeout of Gloo's waits. Gloo closes all connections when a wait times out, before a rank can send the reason. So Gloo's waits do
/// not time out: the World ends them.
inline constexpr std::chrono::milliseconds no_timeout = std::chrono::hours{24 * 30};

/// Mixes two numbers by splitmix64, so that each bit of both affects the result.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t part) {
  state += part + 0x9e3779b97f4a7c15ULL;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
  return state ^ (state >> 31);
}

class Buffer;

/// The buffers of a world, including those that Gloo makes within its collectives. When a connection closes, Gloo ends only the waits for
/// messages of which no byte has moved yet. So code that closes connections also interrupts all waits.
class Buffers {
 public:
  void add(Buffer& buffer);
  void remove(Buffer& buffer);
  /// Interrupts the current wait of each buffer, or its next wait if it has none now.
  void interrupt();

 private:
  std::mutex mutex_;
  Buffer* first_ = nullptr;
};

/// The connections of a world, for one of its groups. Translates the group's ranks and slots into those of the world. A slot is Gloo's tag
/// of a message.
class Links final : public ::gloo::transport::Context {
 public:
  static constexpr std::uint64_t world = 0;  // the channel of the group of all ranks, which uses slots unchanged

  /// `ranks`: the world ranks of the members, in the order of the group. `channel`: the same on all members.
  Links(std::shared_ptr<::gloo::transport::Context> connections, std::shared_ptr<Buffers> buffers, std::vector<int> ranks, int own,
        std::uint64_t channel)
      : Context{own, as_int(ranks.size())},
        connections_{std::move(connections)},
        buffers_{std::move(buffers)},
        ranks_{std::move(ranks)},
        channel_{channel} {}

  [[nodiscard]] int in_world(int member) const { return ranks_[as_size(member)]; }
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] std::uint64_t slot(std::uint64_t of_group) const { return channel_ == world ? of_group : mix(channel_, of_group); }
  [[nodiscard]] const std::shared_ptr<::gloo::transport::Context>& connections() const { return connections_; }
  [[nodiscard]] const std::shared_ptr<Buffers>& buffers() const { return buffers_; }

  std::unique_ptr<::gloo::transport::Pair>& getPair(int member) override { return connections_->getPair(in_world(member)); }
  std::unique_ptr<::gloo::transport::Pair>& createPair(int member) override { return connections_->createPair(in_world(member)); }
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<Buffer> buffer(void* data, std::size_t bytes) const;

 private:
  std::shared_ptr<::gloo::transport::Context> connections_;
  std::shared_ptr<Buffers> buffers_;
  std::vector<int> ranks_;
  std::uint64_t channel_;
};

/// Memory that Gloo sends from or receives into, for one group. An interrupted wait of Gloo's collectives throws Gloo's IoException.
class Buffer final : public ::gloo::transport::UnboundBuffer {
 public:
  Buffer(const Links& links, std::unique_ptr<::gloo::transport::UnboundBuffer> inner)
      : UnboundBuffer{inner->ptr, inner->size}, links_{links}, inner_{std::move(inner)} {
    links_.buffers()->add(*this);
  }
  Buffer(Buffer&&) = delete;
  ~Buffer() override { links_.buffers()->remove(*this); }

  /// Waits until a message has been received, or sent. Returns false if the wait was interrupted.
  [[nodiscard]] bool received() { return inner_->waitRecv(nullptr, no_timeout); }
  [[nodiscard]] bool sent() { return inner_->waitSend(nullptr, no_timeout); }
  void interrupt() {
    inner_->abortWaitRecv();
    inner_->abortWaitSend();
  }

  // Called by Gloo's collectives, which ignore the return value. So an interrupted wait throws.
  using UnboundBuffer::waitRecv;
  using UnboundBuffer::waitSend;
  bool waitRecv(int* /*rank*/, std::chrono::milliseconds timeout) override {
    return inner_->waitRecv(nullptr, timeout) ? true : interrupted();
  }
  bool waitSend(int* /*rank*/, std::chrono::milliseconds timeout) override {
    return inner_->waitSend(nullptr, timeout) ? true : interrupted();
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->send(links_.in_world(to), links_.slot(slot), offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(links_.in_world(from), links_.slot(slot), offset, bytes);
  }
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    for (int& member : from) member = links_.in_world(member);
    inner_->recv(std::move(from), links_.slot(slot), offset, bytes);
  }

 private:
  friend class Buffers;
  [[noreturn]] static bool interrupted() { throw ::gloo::IoException{"the wait was interrupted, as the world has ended"}; }

  const Links& links_;
  std::unique_ptr<::gloo::transport::UnboundBuffer> inner_;
  Buffer* previous_ = nullptr;
  Buffer* next_ = nullptr;
};

inline void Buffers::add(Buffer& buffer) {
  const std::lock_guard lock{mutex_};
  buffer.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &buffer;
  first_ = &buffer;
}
inline void Buffers::remove(Buffer& buffer) {
  const std::lock_guard lock{mutex_};
  (buffer.previous_ == nullptr ? first_ : buffer.previous_->next_) = buffer.next_;
  if (buffer.next_ != nullptr) buffer.next_->previous_ = buffer.previous_;
}
inline void Buffers::interrupt() {
  const std::lock_guard lock{mutex_};
  for (Buffer* each = first_; each != nullptr; each = each->next_) each->interrupt();
}

inline std::unique_ptr<Buffer> Links::buffer(void* data, std::size_t bytes) const {
  return std::make_unique<Buffer>(*this, connections_->createUnboundBuffer(data, bytes));
}
inline std::unique_ptr<::gloo::transport::UnboundBuffer> Links::createUnboundBuffer(void* data, std::size_t bytes) {
  return buffer(data, bytes);
}

/// A group in the form that Gloo's collectives take.
class Context final : public ::gloo::Context {
 public:
  explicit Context(std::shared_ptr<Links> links) : ::gloo::Context{links->rank, links->size}, links_{std::move(links)} {
    transportContext_ = links_;
    timeout_ = no_timeout;
  }
  [[nodiscard]] const Links& links() const { return *links_; }

 private:
  std::shared_ptr<Links> links_;
};

}  // namespace pdp::comm::gloo
