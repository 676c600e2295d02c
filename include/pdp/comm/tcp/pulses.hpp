#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <pdp/comm/message/stream/frame.hpp>
#include <pdp/comm/message/stream/heartbeat.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/tcp/lines.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm::tcp {

/// One rank's two connections in the ring of a world's ranks: to the rank before it, and to the rank after it. Neighbours exchange
/// heartbeats, and pass the world's failure on in both directions. So every rank hears of a failure, whatever other connections it has. The
/// ring costs a rank two sockets and a few wake-ups a second, whatever the size of the world. All work is done on the thread that runs the
/// asio::io_context.
class Pulses {
 public:
  /// `failed`: called once, with the first failure of the world.
  Pulses(int rank, int size, std::function<void(const Failure&)> failed) : rank_{rank}, size_{size}, failed_{std::move(failed)} {}
  Pulses(Pulses&&) = delete;

  [[nodiscard]] int before() const { return (rank_ + size_ - 1) % size_; }
  [[nodiscard]] int after() const { return (rank_ + 1) % size_; }
  /// Returns whether this rank dials the rank before it. Every rank does, except rank 0 in a world of two ranks, for which one connection
  /// is enough.
  [[nodiscard]] bool dials() const { return size_ > 2 || rank_ == 1; }
  [[nodiscard]] bool is_dialled() const { return size_ > 2 || (size_ == 2 && rank_ == 0); }
  [[nodiscard]] bool complete() const { return (!dials() || pulses_[0]) && (!is_dialled() || pulses_[1]); }
  [[nodiscard]] std::string missing() const {
    const bool one = dials() && !pulses_[0], other = is_dialled() && !pulses_[1];
    return text(one ? text("rank ", before()) : "", one && other ? " and " : "", other ? text("rank ", after()) : "");
  }
  /// Returns `welcome` for the rank after this one, unless it is connected already.
  [[nodiscard]] handshake::Verdict judge(int rank) const {
    if (!is_dialled() || rank != after()) return handshake::Verdict::no_such_rank;
    return pulses_[1] ? handshake::Verdict::duplicate : handshake::Verdict::welcome;
  }

  /// Adds one of the two connections. `dialled`: by this rank.
  void add(bool dialled, Socket socket) {
    auto& place = pulses_[dialled ? 0 : 1];
    place = std::make_shared<Pulse>(dialled ? before() : after(), std::move(socket));
    if (told_) say(*place, frame_of(*told_), told_->message);
    hear(place);
  }

  /// Sets the process ids of the rank before and of the rank after; 0 for a rank on another host. Then the end of their processes is
  /// noticed even if a forked child keeps the connections open.
  void watch(pid_t before, pid_t after) { processes_ = {before, after}; }

  /// Sets how long a rank may be silent, rounded up to whole intervals; zero means for ever.
  void patience(Duration heartbeat) { patience_ = (heartbeat + interval - Duration{1}) / interval; }

  /// Sends a heartbeat to the neighbours, and counts how long they have been silent. Call this once per Heartbeat::interval. Intervals in
  /// which this process did not run count as one.
  void beat() {
    for (std::size_t i = 0; i < pulses_.size(); ++i) {
      const auto& each = pulses_[i];
      if (!each || each->ended) continue;
      if (has_ended(*each, processes_[i])) {
        tell({Failure::Kind::lost, each->rank,
              text("rank ", each->rank,
                   " is gone: its process has ended, but a child of it keeps its connections open; its own output says why")});
        continue;
      }
      each->out.empty() ? say(*each, {.kind = Frame::Kind::beat}, {}) : flush(*each);
      if (++each->silence > patience_ && patience_ > 0)
        tell(stream::Heartbeat::lost(each->rank, rank_, interval * patience_,
                                     "its process is stopped, or its machine or the network is down"));
    }
  }

  /// Passes on the world's failure. Does nothing after the first one.
  void tell(const Failure& failure) {
    if (told_) return;
    told_ = failure;
    told_->message.resize(std::min(told_->message.size(), Frame::longest_text));
    for (const auto& each : pulses_)
      if (each && !each->ended) say(*each, frame_of(*told_), told_->message);
    failed_(*told_);
  }

  /// Says goodbye, unless the world has failed, and ends the sending sides of the connections.
  void leave() {
    for (const auto& each : pulses_) {
      if (!each) continue;
      if (!each->ended && !told_) say(*each, {.kind = Frame::Kind::bye}, {});
      each->ended = true;
      std::error_code ignored;
      each->socket.shutdown(asio::socket_base::shutdown_send, ignored);
    }
  }
  /// Returns the two sockets, so that a caller can wait until the last data is acknowledged. A missing one is -1.
  [[nodiscard]] std::array<int, 2> sockets() const {
    std::array<int, 2> handles{-1, -1};
    for (std::size_t i = 0; i < pulses_.size(); ++i)
      if (pulses_[i]) handles[i] = pulses_[i]->socket.native_handle();
    return handles;
  }

 private:
  using Frame = stream::Frame;
  static constexpr auto interval = stream::Heartbeat::interval;

  struct Pulse {
    Pulse(int whom, Socket connection) : rank{whom}, socket{std::move(connection)} { out.reserve(sizeof(Frame)); }

    int rank;
    Socket socket;
    std::string out;  // not sent yet
    Frame frame;
    std::string in;            // the text of a failure, which follows its frame
    std::size_t received = 0;  // bytes of the frame and its text
    long silence = 0;          // intervals
    bool ended = false;
    Descriptor process{};     // of the other rank, if it is on this host
    bool last_words = false;  // the process has ended, but unread data may be left
  };
  struct Resume {
    Pulses* pulses;
    std::shared_ptr<Pulse> pulse;
    void operator()(std::error_code error, std::size_t bytes) const { pulses->resume(pulse, error, bytes); }
  };

  /// Returns whether the process of the rank at the other end has ended, and all data that it sent has been read. If the system has reused
  /// the process id, this watches another process. A report may then be late, but is still true.
  static bool has_ended(Pulse& pulse, pid_t process) {
    if (process == 0) return false;
    if (!pulse.process) {
      pulse.process = Descriptor{as_int(::syscall(SYS_pidfd_open, process, 0))};
      if (!pulse.process && errno != ESRCH) return false;  // no pidfd_open: the end shows as a closed connection or as silence
    }
    pollfd polled{.fd = pulse.process.get(), .events = POLLIN, .revents = 0};
    const bool ended = !pulse.process || (::poll(&polled, 1, 0) == 1 && polled.revents != 0);
    return ended && std::exchange(pulse.last_words, true);
  }

  static Frame frame_of(const Failure& failure) {
    return {.kind = Frame::Kind::failure,
            .length = static_cast<std::uint32_t>(failure.message.size()),
            .envelope = {.tag = as_int(failure.kind), .root = failure.rank}};
  }

  /// Queues a frame and its text, and sends as much as the connection takes. A neighbour that does not read is also silent, which beat()
  /// reports.
  static void say(Pulse& pulse, const Frame& frame, std::string_view text) {
    pulse.out.append(reinterpret_cast<const char*>(&frame), sizeof frame).append(text);
    flush(pulse);
  }
  static void flush(Pulse& pulse) {
    std::error_code error;
    const std::size_t sent = pulse.socket.send(asio::buffer(pulse.out), 0, error);
    pulse.out.erase(0, error ? 0 : sent);
  }

  void hear(const std::shared_ptr<Pulse>& pulse) {
    const bool header = pulse->received < sizeof(Frame);
    char* const into =
        header ? reinterpret_cast<char*>(&pulse->frame) + pulse->received : pulse->in.data() + pulse->received - sizeof(Frame);
    const std::size_t wanted = header ? sizeof(Frame) - pulse->received : sizeof(Frame) + pulse->in.size() - pulse->received;
    pulse->socket.async_receive(asio::buffer(into, wanted), 0, Resume{this, pulse});
  }

  void resume(const std::shared_ptr<Pulse>& pulse, std::error_code error, std::size_t bytes) {
    if (error == asio::error::operation_aborted) return;
    if (error) return closed(*pulse);
    pulse->silence = 0;
    pulse->received += bytes;
    if (pulse->received >= sizeof(Frame)) {
      const Frame& frame = pulse->frame;
      switch (frame.kind) {
        case Frame::Kind::beat:
          break;
        case Frame::Kind::bye:
          pulse->ended = true;
          return;
        case Frame::Kind::failure:
          if (frame.length > Frame::longest_text || frame.envelope.tag < 0 || frame.envelope.tag > as_int(Failure::Kind::timeout))
            return garbled(*pulse);
          pulse->in.resize(frame.length);
          if (pulse->received < sizeof(Frame) + frame.length) return hear(pulse);
          pulse->ended = true;
          return tell({static_cast<Failure::Kind>(frame.envelope.tag), frame.envelope.root, pulse->in});
        default:
          return garbled(*pulse);
      }
      pulse->received = 0;
    }
    hear(pulse);
  }

  void closed(Pulse& pulse) {
    pulse.ended = true;
    tell({Failure::Kind::lost, pulse.rank,
          text("rank ", pulse.rank, " is gone: its connection to rank ", rank_,
               " closed unexpectedly, so its process has probably ended; its own output says why")});
  }
  void garbled(Pulse& pulse) {
    pulse.ended = true;
    tell({Failure::Kind::lost, pulse.rank,
          text("rank ", rank_, " received malformed data from rank ", pulse.rank, "; the connection or that rank's memory is damaged")});
  }

  int rank_, size_;
  std::function<void(const Failure&)> failed_;
  std::array<std::shared_ptr<Pulse>, 2> pulses_;  // to the rank before, and to the rank after
  std::array<pid_t, 2> processes_{};              // of these ranks; 0 if on another host
  long patience_ = stream::Heartbeat::patience / interval;
  std::optional<Failure> told_;
};

}  // namespace pdp::comm::tcp
