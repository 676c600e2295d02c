#pragma once

/// Definitions for pdp/launch/store/in_process_store.hpp; see pdp/core/separate_compilation.hpp.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/failure.hpp>
#include <pdp/comm/wait_until.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/store/in_process_store.hpp>
#include <pdp/launch/store/store_protocol.hpp>

namespace pdp::launch {

struct InProcessStore::Table {
  void check() const {
    if (failure) failure->raise();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string, std::less<>> values;
  std::optional<comm::Failure> failure;
};

PDP_INLINE InProcessStore::InProcessStore() : table_{std::make_unique<Table>()} {}
PDP_INLINE InProcessStore::~InProcessStore() = default;

PDP_INLINE void InProcessStore::set(std::string_view key, std::string_view value) {
  const std::lock_guard lock{table_->mutex};
  table_->check();
  const auto [entry, fresh] = table_->values.emplace(key, value);
  if (!fresh && entry->second != value)
    throw ConfigError{text("'", key, "' is in the job's store already, with another value; two ranks have the same number")};
  table_->changed.notify_all();
}

PDP_INLINE std::string InProcessStore::wait(std::string_view key, comm::TimePoint deadline) {
  std::unique_lock lock{table_->mutex};
  const auto& values = table_->values;
  auto entry = values.find(key);
  if (!comm::wait_until(table_->changed, lock, deadline, [&] { return table_->failure || (entry = values.find(key)) != values.end(); }))
    throw Timeout{text("'", key, "' was not set in the job's store before the deadline for the start (PDP_TIMEOUT)")};
  table_->check();
  return entry->second;
}

PDP_INLINE std::optional<std::string> InProcessStore::get(std::string_view key) {
  const std::lock_guard lock{table_->mutex};
  table_->check();
  const auto entry = table_->values.find(key);
  return entry == table_->values.end() ? std::nullopt : std::optional{entry->second};
}

PDP_INLINE std::int64_t InProcessStore::add(std::string_view key, std::int64_t amount) {
  const std::lock_guard lock{table_->mutex};
  table_->check();
  const auto entry = table_->values.try_emplace(std::string{key}, "0").first;
  const std::int64_t sum = added(key, entry->second, amount);
  entry->second = std::to_string(sum);
  table_->changed.notify_all();
  return sum;
}

PDP_INLINE void InProcessStore::fail(const comm::Failure& failure) {
  const std::lock_guard lock{table_->mutex};
  if (!table_->failure) table_->failure = failure;
  table_->changed.notify_all();
}

}  // namespace pdp::launch
