#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// A channel: the messages of a step that carry one kind of tensor from one rank of a group to another.
struct Channel {
  int from = 0, to = 0;
  plan::Tensor tensor = plan::Tensor::activation;

  friend constexpr bool operator==(const Channel&, const Channel&) = default;
};

/// Returns the channels of a group on which a rank sends or receives.
[[nodiscard]] std::vector<Channel> channels_of(const plan::Plan& plan, int rank, int group);

/// Returns the messages that one end of a channel starts in a step, in their order: the micro-batch and the boundary of each.
[[nodiscard]] std::vector<std::int32_t> messages_on(const Channel& channel, const plan::Plan& plan, int rank, int group);

/// Distributes channels over few rounds. In each round a rank has at most one channel, so one split of the group makes the pairs of all
/// channels of the round. A chain of ranks needs four rounds, since a rank has two neighbours and messages go both ways.
[[nodiscard]] std::vector<std::vector<Channel>> rounds_of(std::vector<Channel> channels);

/// One end of a channel: from, to, tensor, and a hash of the order of its messages. All are -1 if there is no channel.
using ChannelEnd = std::array<std::int64_t, 4>;

/// Returns the ends of channels that a rank has in a group.
[[nodiscard]] std::vector<ChannelEnd> channel_ends_of(const plan::Plan& plan, int rank, int group);

/// Returns the channels of a group. `ends`: the ends that all its ranks have. Throws PlanError if the two ends of a channel have its
/// messages in different orders.
[[nodiscard]] std::vector<Channel> channels_with(std::vector<ChannelEnd> ends, int group);

/// The route of a message: a group, and the other rank in it.
template <class C>
struct Way {
  C& group;
  int peer;
};

/// The groups that carry the messages of a plan. Messages use the groups that the plan names.
template <comm::Communicator C>
class Channels {
 public:
  template <class D>
  Channels(const Groups<C>& groups, const plan::Plan&, const D&) : groups_{groups} {}

  [[nodiscard]] Way<C> way(const plan::Instruction& i) const { return {groups_[i.group], i.peer}; }
  /// Returns whether no message has a group of its own.
  [[nodiscard]] static bool empty() { return true; }

 private:
  const Groups<C>& groups_;
};

/// The same for communicators that run the messages of a group one after another. There, a receive that is started early would hold back
/// all messages that the rank starts after it. So each channel has a group of its own, with two ranks that start its messages in the same
/// order. Messages outside of steps, such as those of an evaluation, have no channel and use the group that the plan names. They are waited
/// for as soon as they are started.
template <comm::Communicator C>
requires comm::QueuesMessages<C>
class Channels<C> {
 public:
  /// Every rank of the world makes this call. Throws PlanError if the two ends of a channel have its messages in different orders.
  template <class D>
  Channels(const Groups<C>& groups, const plan::Plan& plan, const D& device) : groups_{groups} {
    for (int group = 0; group < groups.size(); ++group)
      if (groups[group].size() > 1) make(group, plan, device);
  }

  [[nodiscard]] Way<C> way(const plan::Instruction& i) {
    const int rank = groups_[i.group].rank();
    const bool sends = i.op == plan::Op::send_start;
    const Channel channel{sends ? rank : i.peer, sends ? i.peer : rank, i.tensor};
    for (Own& own : own_)
      if (own.group == i.group && own.channel == channel) return {own.pair, 1 - own.pair.rank()};
    return {groups_[i.group], i.peer};
  }
  [[nodiscard]] bool empty() const { return own_.empty(); }

 private:
  struct Own {
    int group;
    Channel channel;
    C pair;
  };

  template <class D>
  void make(int number, const plan::Plan& plan, const D& device) {
    C& group = groups_[number];
    for (const std::vector<Channel>& round : rounds_of(collect(group, number, plan, device))) {
      const auto own =
          std::ranges::find_if(round, [&](const Channel& channel) { return channel.from == group.rank() || channel.to == group.rank(); });
      const int color = own != round.end() ? as_int(own - round.begin()) : as_int(round.size()) + group.rank();
      C pair = group.split(color, group.rank());
      if (own == round.end()) continue;
      own_.push_back({number, *own, std::move(pair)});
      connect(own_.back().pair, own->from == group.rank(), device);
    }
  }

  /// Collects the channels of a group from all its ranks.
  template <class D>
  static std::vector<Channel> collect(C& group, int number, const plan::Plan& plan, const D& device) {
    std::vector<ChannelEnd> own = channel_ends_of(plan, group.rank(), number);
    HostCalls calls{group, device};
    auto most = static_cast<std::int64_t>(own.size());
    calls.all_reduce(std::span{&most, 1}, comm::Max{});
    if (most == 0) return {};
    own.resize(as_size(most), ChannelEnd{-1, -1, -1, -1});
    std::vector<ChannelEnd> all(own.size() * as_size(group.size()));
    const auto numbers = [](auto& ends) { return std::span{ends.front().data(), ends.size() * ends.front().size()}; };
    calls.all_gather(numbers(std::as_const(own)), numbers(all));
    return channels_with(std::move(all), number);
  }

  /// Sends a first message, so that the library connects the two ranks before the first step.
  template <class D>
  static void connect(C& pair, bool sends, const D& device) {
    auto value = allocate<std::int64_t>(device, 1);
    const AfterDevice after{pair, device};
    sends ? pair.send(value.span(), 1 - pair.rank()) : pair.recv(value.span(), 1 - pair.rank());
  }

  const Groups<C>& groups_;
  std::deque<Own> own_;
};

}  // namespace pdp::engine

#ifndef PDP_SEPARATE_CORE
#include <pdp/engine/source/channels.hpp>
#endif
