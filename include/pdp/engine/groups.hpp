#pragma once

#include <cstddef>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// The groups of a plan, by their numbers: the world, which is borrowed, and those that are split from it.
template <comm::Communicator C>
class Groups {
 public:
  /// Every rank of the world makes this call.
  Groups(C& world, const plan::Plan& plan) {
    owned_.reserve(plan.groups.size());
    all_.push_back(&world);
    for (const plan::GroupSpec& group : plan.groups) all_.push_back(&owned_.emplace_back(world.split(group.color, group.key)));
  }

  [[nodiscard]] int size() const { return as_int(all_.size()); }
  [[nodiscard]] C& world() const { return *all_.front(); }
  [[nodiscard]] C& operator[](int number) const { return *all_[as_size(number)]; }

 private:
  std::vector<C> owned_;
  std::vector<C*> all_;
};

}  // namespace pdp::engine
