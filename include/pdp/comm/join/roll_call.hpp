#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// The start of a world: every rank says a word of itself in the store, and rank 0 tells all what follows from the words of all, so that
/// each of the others asks for one value only. Where a rank does not come, all others hear from rank 0 which one, so that nobody takes rank
/// 0 for lost that has given up a moment before them. Borrows the store.
class RollCall {
 public:
  /// `each`, `all`: keys for what ranks say, and for what rank 0 tells, which does not begin with an exclamation mark.
  RollCall(const StoreView& store, std::string each, std::string all, int rank, int size, TimePoint deadline)
      : store_{store}, each_{std::move(each)}, all_{std::move(all)}, rank_{rank}, size_{size}, deadline_{deadline} {}

  void say(const std::string& word) const { store_.set(key(rank_), word); }

  /// What rank 0 makes of all words: put_together(words), on rank 0 only. Throws Timeout, which names the missing ranks.
  template <class PutTogether>
  [[nodiscard]] std::string hear(const PutTogether& put_together) const {
    std::string told;
    try {
      if (rank_ == 0) {
        std::vector<std::string> words;
        for (int each = 0; each < size_; ++each) words.push_back(store_.wait(key(each), deadline_));
        store_.set(all_, told = put_together(words));
      } else {
        told = store_.wait(all_, deadline_);
      }
    } catch (const Timeout&) {
      give_up();
    }
    if (told.starts_with(given_up)) late(told.substr(1));
    return told;
  }

  /// The deadline is over. Throws Timeout, which names the missing ranks.
  [[noreturn]] void give_up() const {
    std::string missing;
    for (int each = 0; each < size_; ++each)
      if (!store_.get(key(each))) missing += text(missing.empty() ? "rank " : ", rank ", each);
    if (missing.empty()) missing = "the last one in time";
    if (rank_ == 0) store_.set(all_, given_up + missing);
    late(missing);
  }

 private:
  static constexpr char given_up = '!';

  [[nodiscard]] std::string key(int rank) const { return text(each_, rank); }
  [[noreturn]] void late(const std::string& missing) const {
    throw Timeout{text("rank ", rank_, " has heard nothing of ", missing, " (of ", size_,
                       " ranks) before the deadline for the start (PDP_TIMEOUT); a missing rank was not started, has failed, or cannot "
                       "reach the job's store")};
  }

  const StoreView& store_;
  std::string each_, all_;
  int rank_, size_;
  TimePoint deadline_;
};

}  // namespace pdp::comm
