#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/failure.hpp>
#include <pdp/comm/join/store.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::launch {

/// The store of ranks that are threads of one process. The calls are those of comm::Store. Threads may share it.
class InProcessStore {
 public:
  InProcessStore();
  InProcessStore(InProcessStore&&) = delete;
  ~InProcessStore();

  void set(std::string_view key, std::string_view value);
  std::string wait(std::string_view key, comm::TimePoint deadline);
  std::optional<std::string> get(std::string_view key);
  std::int64_t add(std::string_view key, std::int64_t amount);
  void fail(const comm::Failure& failure);

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

static_assert(comm::Store<InProcessStore>);

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/store/source/in_process_store.hpp>
#endif
