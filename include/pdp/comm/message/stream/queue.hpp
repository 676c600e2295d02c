#pragma once

#include <utility>

#include <pdp/comm/envelope.hpp>

namespace pdp::comm::stream {

/// An intrusive queue: items are linked through their own `next`. It allocates nothing and does not own its items.
template <class Item>
class Queue {
 public:
  [[nodiscard]] Item* front() const { return first_; }

  void push_back(Item& item) noexcept {
    item.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &item;
    last_ = &item;
  }
  void pop_front() noexcept { first_ = first_->next; }
  void clear() noexcept { first_ = last_ = nullptr; }

  /// Removes and returns the first item with the channel and tag of `wanted`, or null.
  Item* take_matching(const Envelope& wanted) noexcept {
    Item* before = nullptr;
    for (Item* item = first_; item != nullptr; before = std::exchange(item, item->next)) {
      if (item->envelope.channel != wanted.channel || item->envelope.tag != wanted.tag) continue;
      (before == nullptr ? first_ : before->next) = item->next;
      if (last_ == item) last_ = before;
      return item;
    }
    return nullptr;
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
};

}  // namespace pdp::comm::stream
