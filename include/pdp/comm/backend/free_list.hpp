#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <vector>

#include <pdp/core/requirements.hpp>

namespace pdp::comm {

/// A pool of objects that are reused and keep their memory. So an object that is reused for the same purpose allocates nothing. Objects
/// never move, and live as long as the pool.
template <class T>
class FreeList {
 public:
  /// Returns an object that is not in use and satisfies `is_free`. If there is none, makes a new object and calls prepare(object).
  template <class Prepare, class IsFree>
  [[nodiscard]] T& take(const Prepare& prepare, const IsFree& is_free) {
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const T* each) { return is_free(*each); });
    if (found == idle_.rend()) {
      T& made = all_.emplace_back();
      idle_.reserve(all_.size());  // so that give_back() never allocates
      prepare(made);
      return made;
    }
    T& each = **found;
    idle_.erase(std::next(found).base());
    return each;
  }
  template <class Prepare>
  [[nodiscard]] T& take(const Prepare& prepare) {
    return take(prepare, [](const T&) { return true; });
  }
  [[nodiscard]] T& take() {
    return take([](T&) {});
  }
  void give_back(T& each) noexcept { idle_.push_back(&each); }

  /// Returns all objects, including those in use.
  [[nodiscard]] const std::deque<T>& all() const { return all_; }

 private:
  std::deque<T> all_;  // a deque: the objects may not move
  std::vector<T*> idle_;
};

}  // namespace pdp::comm
