#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/join/store.hpp>
#include <pdp/core/error.hpp>

namespace pdp::comm {

/// The start of a world: every rank publishes a string about itself, its word, in the store. Rank 0 reads all words, combines them and
/// publishes the result. So each other rank reads one value only. If ranks are missing, rank 0 publishes their numbers. So other ranks
/// report those ranks as missing, and not rank 0, which has only given up earlier. Borrows the store.
class RollCall {
 public:
  /// `each`: the prefix of the keys of the words. `all`: the key of the result, which must not begin with an exclamation mark.
  RollCall(const StoreView& store, std::string each, std::string all, int rank, int size, TimePoint deadline)
      : store_{store}, each_{std::move(each)}, all_{std::move(all)}, rank_{rank}, size_{size}, deadline_{deadline} {}

  /// Publishes the word of this rank.
  void say(const std::string& word) const { store_.set(key(rank_), word); }

  /// Returns put_together(words), which rank 0 computes from the words of all ranks. Throws Timeout, which names the missing ranks.
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

  /// Throws Timeout, which names the missing ranks. Call it when the deadline has passed.
  [[noreturn]] void give_up() const {
    std::string missing;
    for (int each = 0; each < size_; ++each)
      if (!store_.get(key(each))) missing += text(missing.empty() ? "rank " : ", rank ", each);
    if (missing.empty()) missing = "the last rank to arrive";
    if (rank_ == 0) store_.set(all_, given_up + missing);
    late(missing);
  }

 private:
  static constexpr char given_up = '!';

  [[nodiscard]] std::string key(int rank) const { return text(each_, rank); }
  [[noreturn]] void late(const std::string& missing) const {
    throw Timeout{text("rank ", rank_, " has not heard from ", missing, " (of ", size_,
                       " ranks) before the deadline for the start (PDP_TIMEOUT); a missing rank was not started, has failed, or cannot "
                       "reach the job's store")};
  }

  const StoreView& store_;
  std::string each_, all_;
  int rank_, size_;
  TimePoint deadline_;
};

}  // namespace pdp::comm
