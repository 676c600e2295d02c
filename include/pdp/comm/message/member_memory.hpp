#pragma once

/// Memory that ranks of a group have in common: the definitions of what pdp/comm/message/member.hpp, which includes it, declares for that.

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <pdp/comm/message/member.hpp>
#include <pdp/core/cast.hpp>

namespace pdp::comm {

template <Transport T>
void Member<T>::prepare_to_meet() requires GroupTransport<T> {
  T& transport = queue_->transport();
  if (size() < 2) return;
  if (transport.near(group_->ranks)) {
    transport.add_group(place(), share(T::board_bytes, [](auto&) {}));
    meets_ = true;
  } else if constexpr (HostTransport<T>) {
    std::vector<int> hosts, host_of;  // as the group's ranks meet them
    for (const int rank : group_->ranks) {
      const auto found = std::ranges::find(hosts, transport.host_of(rank));
      host_of.push_back(as_int(found - hosts.begin()));
      if (found == hosts.end()) hosts.push_back(transport.host_of(rank));
    }
    if (hosts.size() == host_of.size()) return;  // nobody is near anybody
    const int host = host_of[as_size(rank_)];
    host_part_ = std::make_unique<Member>(split(host, rank_));
    levels_ = algorithm::Levels::of(std::move(host_of), rank_);
  }
}

template <Transport T>
template <class Prepare>
auto Member<T>::share(std::size_t bytes, const Prepare& prepare) requires GroupTransport<T> {
  using Shared = typename T::Shared;
  Shared own = T::share(bytes);
  prepare(own);
  std::vector<SharedAddress> addresses;
  gather_from_all(own.address(), addresses);
  std::vector<Shared> all;
  for (int rank = 0; rank < size(); ++rank) {
    all.push_back(rank == rank_ ? std::move(own) : open_of(addresses[as_size(rank)], bytes));
    if (rank != rank_) prepare(all.back());
  }
  start({.verb = Verb::barrier}).wait();  // after which nobody opens this rank's any more
  all[as_size(rank_)].close();
  return all;
}

template <Transport T>
auto Member<T>::open_of(SharedAddress address, std::size_t bytes) requires GroupTransport<T> {
  try {
    return T::open(address, bytes);
  } catch (const ConfigError&) {
    // A process that has ended shares nothing any more; a little later this rank knows that it has.
    for (const TimePoint until = Clock::now() + std::chrono::milliseconds{200}; Clock::now() < until;) queue_->transport().wait(until);
    throw;
  }
}

template <Transport T>
Region Member<T>::allocate(std::size_t bytes) requires ArenaTransport<T> {
  if (host_part_) {
    const auto region = std::make_shared<Region>(host_part_->allocate(bytes));
    return {region->data(), region->size(), region};  // some of the group do not see it
  }
  if (!meets_) return Region::ordinary(bytes);
  // Before any memory is made: a rank that threw by itself would leave the others to open what is gone.
  std::vector<std::size_t> asked;
  gather_from_all(bytes, asked);
  if (const auto other = std::ranges::find_if(asked, [&](std::size_t each) { return each != asked[0]; }); other != asked.end())
    throw ConfigError{text("rank 0 of a group of ", size(), " asked for ", asked[0], " bytes of memory in common, and rank ",
                           other - asked.begin(), " for ", *other, "; all ranks of a group must ask for as much")};
  if (bytes == 0) return Region::ordinary(bytes);
  const std::uint64_t number = channel_of(group_->channel, group_->calls, /*color*/ -1);
  return queue_->transport().add_arena(place(), number, share(bytes, [](auto& memory) { memory.populate(); }));
}

}  // namespace pdp::comm
