#pragma once

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pdp/comm/message/stream/inbox.hpp>

namespace pdp::comm::stream {

/// What a rank waits for on its stream with one peer, and whether it has come.
struct Interest {
  bool read = false;   // bytes, or the stream's end
  bool write = false;  // room for more
  bool ready = false;
};

/// What has come from outside the streams.
struct News {
  std::optional<Failure> failure{};  // why the world has failed, where it has
  std::vector<int> left{};           // ranks that were wanted, and have ended their part before
};

/// The streams of bytes between one rank and each of the others, both ways: sockets, or rings in memory that the ranks share. They belong
/// to the thread that reads and writes them.
///
/// - open(peer): whether there is one; not to this rank itself. want(peer): asks for one where there is not.
/// - news(): a look at whether something has come from outside the streams; then only, take_news() opens those that have been made since,
///   and gives the rest. tell(failure): has all ranks hear of it, those without a stream from here included.
/// - heartbeat(duration): how long a rank may show no sign of life before the world fails; zero: for ever.
/// - read(peer, inbox, strays): brings what is there to the inbox, up to a bounded number of bytes, and says whether anything moved. Calls
///   inbox.closed() once everything has been read of a stream that its peer has ended.
/// - write(peer, parts): the bytes that the stream takes of the two parts at once; `gone` where it will never take any.
/// - wait(interests, until): sleeps until something of it is ready, and marks that; false when nothing was, at the given time or some
///   time before it.
/// - leave(until): after the last words. Ends the streams, so that what has been written still arrives, and never throws.
template <class L>
concept Links = std::movable<L> && requires(L& links, const L& observed, int peer, Inbox& inbox, Strays& strays, std::span<iovec, 2> parts,
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

/// Links whose ranks have memory in common, and carry out some collectives there: meetings() holds those that are under way (see
/// together::Meeting), and wait() returns when one of them can be moved, too. unread(peer): whether its stream holds anything new.
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
