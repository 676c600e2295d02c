#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

/// The entries of a store: values, which are set once, and counters. Their total memory is bounded.
class StoreEntries {
 public:
  /// The result of a request.
  struct Outcome {
    StoreMessage::Kind kind = StoreMessage::Kind::ok;
    std::string value{};
    bool is_new = false;  // the key had no entry before
  };

  /// Returns null if there is no entry of that key.
  [[nodiscard]] const std::string* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  /// Sets a value. Returns the kind `taken` if the key has another value, and `full` if the memory of the store is used up.
  Outcome set(const std::string& key, const std::string& value) {
    if (const std::string* const found = find(key)) return {.kind = *found == value ? StoreMessage::Kind::ok : StoreMessage::Kind::taken};
    return make(key, value) ? Outcome{.is_new = true} : Outcome{.kind = StoreMessage::Kind::full};
  }

  /// Adds to a counter, which begins at 0. Returns its new value. If the entry is not a counter, returns the kind `taken` and the value of
  /// the entry.
  Outcome add(const std::string& key, const std::string& amount) {
    const auto found = values_.find(key);
    const bool is_new = found == values_.end();
    try {
      std::string sum = std::to_string(added(key, is_new ? "0" : found->second, added("amount", amount, 0)));
      if (!is_new)
        found->second = sum;
      else if (!make(key, sum))
        return {.kind = StoreMessage::Kind::full};
      return {.value = std::move(sum), .is_new = is_new};
    } catch (const ConfigError&) {
      return {.kind = StoreMessage::Kind::taken, .value = is_new ? amount : found->second};
    }
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;
  static constexpr std::size_t entry_bytes = 128;   // overhead of an entry beyond its key and value
  static constexpr std::size_t counter_bytes = 20;  // length of the longest number that a counter may reach

  /// Makes a new entry. Returns false if all entries would then take more than most_bytes.
  bool make(const std::string& key, const std::string& value) {
    const std::size_t bytes = key.size() + std::max(value.size(), counter_bytes) + entry_bytes;
    if (bytes_ + bytes > most_bytes) return false;
    bytes_ += bytes;
    values_.emplace(key, value);
    return true;
  }

  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;
};

}  // namespace pdp::launch
