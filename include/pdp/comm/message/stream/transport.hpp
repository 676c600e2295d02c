#pragma once

#include <memory>
#include <optional>

#include <pdp/comm/message/probe.hpp>
#include <pdp/comm/message/transport.hpp>

namespace pdp::comm::stream {

template <class L>
class Connections;

/// A transport over one byte stream for each pair of ranks. It is a handle of its Connections, so programs that use it do not include their
/// definition. L is a model of Links. The members are defined in transport_source.hpp, and compiled once, in a source that knows L.
template <class L>
class StreamTransport {
 public:
  StreamTransport(int rank, L links);
  StreamTransport(StreamTransport&&) noexcept;
  StreamTransport& operator=(StreamTransport&&) noexcept;
  ~StreamTransport();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] const Failure* failure() const;
  void post(SendRequest& send);
  void post(ReceiveRequest& receive);
  bool progress();
  void wait(TimePoint until);
  void fail(Failure failure) noexcept;
  void heartbeat(Duration duration);
  void send_probe(const Probe& probe, int peer, const SendRequest* send);
  std::optional<ReceivedProbe> take_probe();

 protected:
  [[nodiscard]] Connections<L>& connections() const { return *connections_; }

 private:
  std::unique_ptr<Connections<L>> connections_;
};

}  // namespace pdp::comm::stream
