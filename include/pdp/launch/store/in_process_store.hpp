#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/join/store.hpp>
#include <pdp/comm/wait_until.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

/// The store of ranks that are threads of one process.
class InProcessStore {
 public:
  void set(std::string_view key, std::string_view value) {
    const std::lock_guard lock{mutex_};
    check();
    const auto [entry, fresh] = values_.emplace(key, value);
    if (!fresh && entry->second != value)
      throw ConfigError{text("'", key, "' is in the job's store already, with another value; two ranks have the same number")};
    changed_.notify_all();
  }

  std::string wait(std::string_view key, comm::TimePoint deadline) {
    std::unique_lock lock{mutex_};
    auto entry = values_.find(key);
    if (!comm::wait_until(changed_, lock, deadline, [&] { return failure_ || (entry = values_.find(key)) != values_.end(); }))
      throw Timeout{text("'", key, "' was not set in the job's store before the deadline for the start (PDP_TIMEOUT)")};
    check();
    return entry->second;
  }

  std::optional<std::string> get(std::string_view key) {
    const std::lock_guard lock{mutex_};
    check();
    const auto entry = values_.find(key);
    return entry == values_.end() ? std::nullopt : std::optional{entry->second};
  }

  std::int64_t add(std::string_view key, std::int64_t amount) {
    const std::lock_guard lock{mutex_};
    check();
    const auto entry = values_.try_emplace(std::string{key}, "0").first;
    const std::int64_t sum = added(key, entry->second, amount);
    entry->second = std::to_string(sum);
    changed_.notify_all();
    return sum;
  }

  void fail(const comm::Failure& failure) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = failure;
    changed_.notify_all();
  }

 private:
  void check() const {
    if (failure_) failure_->raise();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
  std::optional<comm::Failure> failure_;
};

static_assert(comm::Store<InProcessStore>);

}  // namespace pdp::launch
