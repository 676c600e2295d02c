#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <pdp/comm/message/together/meeting.hpp>

namespace pdp::comm::together {

/// The groups of one rank that share memory, and their rendezvous in flight. `Memory`: the type of memory that a group keeps for its
/// boards.
template <Sources S, class Bell, class Memory>
class Meetings {
 public:
  using Active = std::vector<Meeting<S, Bell>*>;

  [[nodiscard]] S& sources() { return *sources_; }

  /// `keeps`: memory that the group owns until it is removed.
  void add(std::uint64_t channel, std::vector<Partner<Bell>> partners, int rank, std::vector<Memory> keeps = {}) {
    groups_.push_back(std::make_unique<Group>(std::move(keeps), Meeting<S, Bell>{channel, std::move(partners), rank, *sources_}));
    active_.reserve(groups_.size());
  }
  void remove(std::uint64_t channel) {
    std::erase_if(active_, [channel](const auto* each) { return each->channel() == channel; });
    std::erase_if(groups_, [channel](const auto& each) { return each->meeting.channel() == channel; });
  }

  void begin(GroupRequest& request) {
    auto* const meeting = find(request.meeting);
    meeting->begin(request);
    active_.push_back(meeting);
  }
  /// Returns the rendezvous in flight, including those that have just ended.
  [[nodiscard]] const Active& active() const { return active_; }
  /// Removes the rendezvous that have ended.
  void remove_ended() {
    std::erase_if(active_, [](const auto* each) { return each->request() == nullptr; });
  }
  /// Drops all rendezvous in flight, after a failure.
  void drop() {
    for (auto* each : active_) each->drop();
    active_.clear();
  }
  /// Returns whether a rendezvous in flight can advance.
  [[nodiscard]] bool ready() const {
    return std::ranges::any_of(active_, [](const auto* each) { return each->ready(); });
  }

 private:
  struct Group {
    Group(std::vector<Memory> kept, Meeting<S, Bell> made) : memories{std::move(kept)}, meeting{std::move(made)} {}
    std::vector<Memory> memories;
    Meeting<S, Bell> meeting;
  };

  [[nodiscard]] Meeting<S, Bell>* find(std::uint64_t channel) const {
    for (const auto& each : groups_)
      if (each->meeting.channel() == channel) return &each->meeting;
    return nullptr;
  }

  std::unique_ptr<S> sources_ = std::make_unique<S>();
  std::vector<std::unique_ptr<Group>> groups_;
  Active active_;
};

}  // namespace pdp::comm::together
