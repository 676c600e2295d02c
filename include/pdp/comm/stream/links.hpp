#pragma once

#include <sys/uio.h>

#include <concepts>
#include <cstddef>
#include <span>

#include <pdp/comm/stream/inbox.hpp>

namespace pdp::comm::stream {

/// What a rank waits for on its stream with one peer, and whether it has come.
struct Interest {
  bool read = false;   // bytes, or the stream's end
  bool write = false;  // room for more
  bool ready = false;
};

/// The streams of bytes between one rank and each of the others, both ways: sockets, or rings in memory that the ranks share. They belong
/// to the thread that reads and writes them.
///
/// - open(peer): whether there is one; not to this rank itself.
/// - read(peer, inbox, strays): brings what is there to the inbox, up to a bounded number of bytes, and says whether anything moved. Calls
///   inbox.closed() once everything has been read of a stream that its peer has ended.
/// - write(peer, parts): the bytes that the stream takes of the two parts at once; `gone` where it will never take any.
/// - wait(interests, until): sleeps until something of it is ready, and marks that; false when nothing was, at the given time or some
///   time before it.
/// - leave(until): after the last words. Ends the streams, so that what has been written still arrives, and never throws.
template <class L>
concept Links = std::movable<L> && requires(L& links, const L& observed, int peer, Inbox& inbox, Strays& strays, std::span<iovec, 2> parts,
                                            std::span<Interest> interests, TimePoint until) {
  { observed.size() } -> std::same_as<int>;
  { observed.open(peer) } -> std::same_as<bool>;
  { links.read(peer, inbox, strays) } -> std::same_as<bool>;
  { links.write(peer, parts) } -> std::same_as<std::size_t>;
  { links.wait(interests, until) } -> std::same_as<bool>;
  { links.leave(until) }
  noexcept;
};

/// Links whose ranks have memory in common, and carry out some collectives there: together() moves the one that is under way (see
/// shm::Together), and wait() returns when it can be moved, too. unread(peer): whether its stream holds anything new.
template <class L>
concept GroupLinks = Links<L> && requires(L& links, const L& observed, GroupRequest& request, int peer) {
  { observed.unread(peer) } -> std::same_as<bool>;
  { links.together().takes(request.envelope) } -> std::same_as<bool>;
  { links.together().request() } -> std::same_as<GroupRequest*>;
  { links.together().advance() } -> std::same_as<bool>;
  { links.together().missing() } -> std::same_as<int>;
  links.together().begin(request);
  links.together().drop();
  links.together().fault();
};

}  // namespace pdp::comm::stream
