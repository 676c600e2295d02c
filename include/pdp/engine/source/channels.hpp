#pragma once

/// Definitions for pdp/engine/channels.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/channels.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

PDP_INLINE std::vector<Channel> channels_of(const plan::Plan& plan, int rank, int group) {
  std::vector<Channel> channels;
  for (const plan::Instruction& i : plan.step) {
    if (i.group != group || (i.op != plan::Op::send_start && i.op != plan::Op::receive_start)) continue;
    const Channel channel = i.op == plan::Op::send_start ? Channel{rank, i.peer, i.tensor} : Channel{i.peer, rank, i.tensor};
    if (std::find(channels.begin(), channels.end(), channel) == channels.end()) channels.push_back(channel);
  }
  return channels;
}

PDP_INLINE std::vector<std::int32_t> messages_on(const Channel& channel, const plan::Plan& plan, int rank, int group) {
  const bool sends = channel.from == rank;
  std::vector<std::int32_t> order;
  for (const plan::Instruction& i : plan.step)
    if (i.op == (sends ? plan::Op::send_start : plan::Op::receive_start) && i.group == group && i.tensor == channel.tensor &&
        i.peer == (sends ? channel.to : channel.from))
      order.insert(order.end(), {i.micro_batch, i.first});
  return order;
}

PDP_INLINE std::vector<std::vector<Channel>> rounds_of(std::vector<Channel> channels) {
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

PDP_INLINE std::vector<ChannelEnd> channel_ends_of(const plan::Plan& plan, int rank, int group) {
  std::vector<ChannelEnd> ends;
  for (const Channel& channel : channels_of(plan, rank, group))
    ends.push_back({channel.from, channel.to, static_cast<std::int64_t>(channel.tensor),
                    random::hash_of(std::span<const std::int32_t>{messages_on(channel, plan, rank, group)})});
  return ends;
}

PDP_INLINE std::vector<Channel> channels_with(std::vector<ChannelEnd> ends, int group) {
  std::erase(ends, ChannelEnd{-1, -1, -1, -1});
  std::vector<Channel> channels;
  for (const ChannelEnd& end : ends) {  // the two ends of a channel must be equal
    const Channel channel{as_int(end[0]), as_int(end[1]), static_cast<plan::Tensor>(end[2])};
    if (std::ranges::find(channels, channel) == channels.end()) channels.push_back(channel);
    if (std::ranges::count(ends, end) != 2)
      throw PlanError{text("rank ", channel.to, " of group ", group, " receives ", name(channel.tensor), "s from rank ", channel.from,
                           " in another order than that rank sends them; a communicator with one message queue would deliver the ",
                           "wrong messages, so start them in the same order on both ranks")};
  }
  return channels;
}

}  // namespace pdp::engine
