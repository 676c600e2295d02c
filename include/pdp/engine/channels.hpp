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
#include <pdp/core/hash.hpp>
#include <pdp/engine/groups.hpp>

namespace pdp::engine {

/// The messages of steps that carry the same kind of values from one rank of a group to another.
struct Channel {
  int from = 0, to = 0;
  plan::Tensor tensor = plan::Tensor::activation;

  friend constexpr bool operator==(const Channel&, const Channel&) = default;
};

/// The channels of a group on which a rank sends or receives.
constexpr std::vector<Channel> channels_of(const plan::Plan& plan, int rank, int group) {
  std::vector<Channel> channels;
  for (const plan::Instruction& i : plan.step) {
    if (i.group != group || (i.op != plan::Op::send_start && i.op != plan::Op::receive_start)) continue;
    const Channel channel = i.op == plan::Op::send_start ? Channel{rank, i.peer, i.tensor} : Channel{i.peer, rank, i.tensor};
    if (std::find(channels.begin(), channels.end(), channel) == channels.end()) channels.push_back(channel);
  }
  return channels;
}

/// The messages that one end of a channel starts in a step, in their order: the micro-batch and the boundary of each.
constexpr std::vector<std::int32_t> messages_on(const Channel& channel, const plan::Plan& plan, int rank, int group) {
  const bool sends = channel.from == rank;
  std::vector<std::int32_t> order;
  for (const plan::Instruction& i : plan.step)
    if (i.op == (sends ? plan::Op::send_start : plan::Op::receive_start) && i.group == group && i.tensor == channel.tensor &&
        i.peer == (sends ? channel.to : channel.from))
      order.insert(order.end(), {i.micro_batch, i.first});
  return order;
}

/// The channels in few rounds, in each of which a rank has one channel at most: what one split can make groups of. Neighbours in a chain
/// need four, as a rank has two of them and messages go both ways.
constexpr std::vector<std::vector<Channel>> rounds_of(std::vector<Channel> channels) {
  std::sort(channels.begin(), channels.end(), [](const Channel& a, const Channel& b) {
    const auto key = [](const Channel& channel) {
      return std::array{std::min(channel.from, channel.to), std::max(channel.from, channel.to), channel.from, as_int(channel.tensor)};
    };
    return key(a) < key(b);
  });
  std::vector<std::vector<Channel>> rounds;
  for (const Channel& channel : channels) {
    const auto is_free = [&channel](const std::vector<Channel>& round) {
      return std::none_of(round.begin(), round.end(), [&channel](const Channel& other) {
        return other.from == channel.from || other.from == channel.to || other.to == channel.from || other.to == channel.to;
      });
    };
    auto round = std::find_if(rounds.begin(), rounds.end(), is_free);
    if (round == rounds.end()) round = rounds.insert(rounds.end(), std::vector<Channel>{});
    round->push_back(channel);
  }
  return rounds;
}

/// Where a message goes: a group, and the other rank there.
template <class C>
struct Way {
  C& group;
  int peer;
};

/// The groups in which the messages of a plan travel: those that it names.
template <comm::Communicator C>
class Channels {
 public:
  template <class D>
  Channels(const Groups<C>& groups, const plan::Plan&, const D&) : groups_{groups} {}

  [[nodiscard]] Way<C> way(const plan::Instruction& i) const { return {groups_[i.group], i.peer}; }
  /// Whether no message goes in a group of its own.
  [[nodiscard]] static bool empty() { return true; }

 private:
  const Groups<C>& groups_;
};

/// Where a group carries out its messages one after another, a message that is asked for early would keep back all those that the rank
/// starts after it. So those of steps go in a group of two ranks for each channel, in which they have one order on both ends. What is on no
/// channel, such as a message of an evaluation, is waited for as soon as it is started, and goes in the group that the plan names.
template <comm::Communicator C>
requires comm::QueuesMessages<C>
class Channels<C> {
 public:
  /// Every rank of the world makes this call. Throws PlanError where the two ends of a channel have its messages in another order.
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
  /// One end of a channel: from, to, tensor, and the order of its messages.
  using End = std::array<std::int64_t, 4>;
  static constexpr End nothing{-1, -1, -1, -1};

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

  /// The channels of a group, as all its ranks know them.
  template <class D>
  static std::vector<Channel> collect(C& group, int number, const plan::Plan& plan, const D& device) {
    std::vector<End> own;
    for (const Channel& channel : channels_of(plan, group.rank(), number))
      own.push_back({channel.from, channel.to, static_cast<std::int64_t>(channel.tensor),
                     random::hash_of(std::span<const std::int32_t>{messages_on(channel, plan, group.rank(), number)})});
    HostCalls calls{group, device};
    auto most = static_cast<std::int64_t>(own.size());
    calls.all_reduce(std::span{&most, 1}, comm::Max{});
    if (most == 0) return {};
    own.resize(as_size(most), nothing);
    std::vector<End> all(own.size() * as_size(group.size()));
    const auto numbers = [](auto& ends) { return std::span{ends.front().data(), ends.size() * ends.front().size()}; };
    calls.all_gather(numbers(std::as_const(own)), numbers(all));
    std::erase(all, nothing);
    std::vector<Channel> channels;
    for (const End& end : all) {  // the first one of a channel, which the other one has to be the same as
      const Channel channel{as_int(end[0]), as_int(end[1]), static_cast<plan::Tensor>(end[2])};
      if (std::ranges::find(channels, channel) == channels.end()) channels.push_back(channel);
      if (std::ranges::count(all, end) != 2)
        throw PlanError{text("rank ", channel.to, " of group ", number, " asks for its ", name(channel.tensor), "s of rank ", channel.from,
                             " in another order than that one sends them in; a communicator whose messages are one queue gives it the ",
                             "wrong ones, so let both ranks of the plan start them in one order")};
    }
    return channels;
  }

  /// A first message, so that what a library does when two ranks first need each other is done before a step.
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
