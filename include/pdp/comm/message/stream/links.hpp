#pragma once

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pdp/comm/message/stream/inbox.hpp>
#include <pdp/core/copyable.hpp>

namespace pdp::comm::stream {

/// The events that a rank waits for on its stream with one peer, and whether one of them has occurred.
struct Interest {
  bool read = false;   // data, or the end of the stream
  bool write = false;  // space for more data
  bool ready = false;
};

/// Events from outside the streams.
struct News {
  std::optional<Failure> failure{};  // the failure of the world, if it has failed
  std::vector<int> left{};           // ranks to which a stream was requested after they had ended their part
};

/// The byte streams between one rank and each other rank, in both directions: sockets, or rings in shared memory. They belong to the thread
/// that reads and writes them.
///
/// - open(peer): returns whether there is a stream to this peer; there is none to this rank itself. want(peer): requests a stream if there
///   is none.
/// - news(): returns whether there are events from outside the streams. take_news(): opens the streams that have been connected meanwhile,
///   and returns the other events. Call it only if news() is true. tell(failure): reports the failure to all ranks, including those without
///   a stream from this rank.
/// - heartbeat(duration): sets how long a rank may be silent before the world fails; zero means for ever.
/// - read(peer, inbox, strays): passes available data to the inbox, up to a bounded number of bytes, and returns whether anything moved.
///   Calls inbox.closed() once the peer has ended the stream and everything in it has been read.
/// - write(peer, parts): writes as much of the two parts as the stream takes at once. Returns the number of bytes, or `gone` if the stream
///   will never take any.
/// - wait(interests, until): sleeps until one of the events occurs, and marks the streams that are ready. Returns false if none is ready,
///   at the given time or earlier.
/// - leave(until): called after the last frames are written. Ends the streams such that everything written still arrives. Never throws.
template <class L>
concept Links = Movable<L> && requires(L& links, const L& observed, int peer, Inbox& inbox, Strays& strays, std::span<iovec, 2> parts,
                                       std::span<Interest> interests, TimePoint until, const Failure& failure, Duration duration) {
  { observed.size() } -> std::same_as<int>;
  { observed.open(peer) } -> std::same_as<bool>;
  links.want(peer);
  { observed.news() } -> std::same_as<bool>;
  { links.take_news() } -> std::same_as<News>;
  links.tell(failure);
  links.heartbeat(duration);
  { links.read(peer, inbox, strays) } -> std::same_as<bool>;
  { links.write(peer, parts) } -> std::same_as<std::size_t>;
  { links.wait(interests, until) } -> std::same_as<bool>;
  { links.leave(until) }
  noexcept;
};

/// Links of ranks that share memory and carry out some collectives there. meetings() holds the rendezvous in flight (see
/// together::Meeting). wait() also returns if one of them can advance. unread(peer): returns whether the peer's stream may hold new data.
template <class L>
concept GroupLinks = Links<L> && requires(L& links, const L& observed, GroupRequest& request, int peer) {
  { observed.unread(peer) } -> std::same_as<bool>;
  links.meetings().begin(request);
  { links.meetings().active().front()->request() } -> std::same_as<GroupRequest*>;
  { links.meetings().active().front()->advance() } -> std::same_as<bool>;
  { links.meetings().active().front()->missing() } -> std::same_as<int>;
  links.meetings().active().front()->fault();
  links.meetings().remove_ended();
  links.meetings().drop();
};

}  // namespace pdp::comm::stream
