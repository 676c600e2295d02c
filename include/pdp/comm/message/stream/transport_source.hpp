#pragma once

#include <optional>
#include <utility>

#include <pdp/comm/message/stream/connections.hpp>
#include <pdp/comm/message/stream/transport.hpp>

namespace pdp::comm::stream {

template <class L>
StreamTransport<L>::StreamTransport(int rank, L links) : connections_{std::make_unique<Connections<L>>(rank, std::move(links))} {}
template <class L>
StreamTransport<L>::StreamTransport(StreamTransport&&) noexcept = default;
template <class L>
StreamTransport<L>& StreamTransport<L>::operator=(StreamTransport&&) noexcept = default;
template <class L>
StreamTransport<L>::~StreamTransport() = default;

template <class L>
int StreamTransport<L>::rank() const {
  return connections_->rank();
}
template <class L>
int StreamTransport<L>::size() const {
  return connections_->size();
}
template <class L>
const Failure* StreamTransport<L>::failure() const {
  return connections_->failure();
}
template <class L>
void StreamTransport<L>::post(SendRequest& send) {
  connections_->post(send);
}
template <class L>
void StreamTransport<L>::post(ReceiveRequest& receive) {
  connections_->post(receive);
}
template <class L>
bool StreamTransport<L>::progress() {
  return connections_->progress();
}
template <class L>
void StreamTransport<L>::wait(TimePoint until) {
  connections_->wait(until);
}
template <class L>
void StreamTransport<L>::fail(Failure failure) noexcept {
  connections_->fail(std::move(failure));
}
template <class L>
void StreamTransport<L>::heartbeat(Duration duration) {
  connections_->heartbeat(duration);
}
template <class L>
void StreamTransport<L>::send_probe(const Probe& probe, int peer, const SendRequest* send) {
  connections_->send_probe(probe, peer, send);
}
template <class L>
std::optional<ReceivedProbe> StreamTransport<L>::take_probe() {
  return connections_->take_probe();
}

}  // namespace pdp::comm::stream
