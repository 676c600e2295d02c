// A communicator of NCCL for tests that keep their values on the host: they are copied to the device before each call and back after it. So
// the tests of all backends run on it, on the stand-in as on GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <pdp/comm/nccl.hpp>

#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

/// Memory of the current device. Not copied.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) {
    void* made = nullptr;
    if (bytes > 0 && cudaMalloc(&made, bytes) != cudaSuccess) throw std::bad_alloc{};
    memory_.reset(static_cast<std::byte*>(made));
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { cudaFree(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

/// Memory of one device that is used again: to free it waits for all that the device does, which may be for other ranks.
class DevicePool {
 public:
  /// What is borrowed goes back by itself.
  class Loan {
   public:
    Loan(DevicePool& pool, std::size_t bytes) : pool_{pool}, bytes_{std::bit_ceil(bytes)} {
      auto& idle = pool_.idle_[bytes_];
      if (idle.empty()) idle.emplace_back(bytes_);
      memory_ = std::move(idle.back());
      idle.pop_back();
    }
    Loan(Loan&&) = delete;
    ~Loan() { pool_.idle_[bytes_].push_back(std::move(memory_)); }
    [[nodiscard]] std::byte* data() const { return memory_.data(); }

   private:
    DevicePool& pool_;
    std::size_t bytes_;
    DeviceMemory memory_;
  };

 private:
  std::map<std::size_t, std::vector<DeviceMemory>> idle_;  // by size
};

class StagedCalls {
  using Memory = pdp::comm::Memory;
  using Counts = pdp::comm::Counts;
  using Verb = pdp::comm::Verb;
  using Reducer = pdp::comm::Reducer;

  /// What a call reads and writes, on the device. The second memory may lie within the first one.
  struct Stage {
    Memory host_first, host_second, first, second;
    DevicePool::Loan block, second_block;

    Stage(DevicePool& pool, const Memory& one, const Memory& two)
        : host_first{one}, host_second{two}, first{one}, second{two}, block{pool, one.bytes()}, second_block{pool, two.bytes()} {
      first.data = block.data();
      const bool within = two.data >= one.data && two.data + two.bytes() <= one.data + one.bytes() && one.data != nullptr;
      if (within) {
        second.data = block.data() + (two.data - one.data);
      } else {
        second.data = second_block.data();
      }
      copy(first, host_first);
      copy(second, host_second);
    }
    void bring_back() const {
      copy(host_first, first);
      copy(host_second, second);
    }
    static void copy(const Memory& to, const Memory& from) {
      if (from.bytes() > 0) cudaMemcpy(to.data, from.data, from.bytes(), cudaMemcpyDefault);
    }
  };

 public:
  class [[nodiscard]] Work {
   public:
    Work() = default;
    Work(Work&&) noexcept = default;
    Work& operator=(Work&& other) noexcept {
      inner_ = std::move(other.inner_);  // before the memory that it may write to
      stage_ = std::move(other.stage_);
      return *this;
    }
    [[nodiscard]] bool pending() const { return inner_.pending(); }
    [[nodiscard]] bool done() { return inner_.done(); }
    void wait() {
      if (!pending()) return;
      inner_.wait();
      stage_->bring_back();
    }

   private:
    friend class StagedCalls;
    Work(std::unique_ptr<Stage> stage, pdp::comm::NcclCalls::Work inner) : stage_{std::move(stage)}, inner_{std::move(inner)} {}
    std::unique_ptr<Stage> stage_;
    pdp::comm::NcclCalls::Work inner_;
  };

  explicit StagedCalls(pdp::comm::NcclCalls inner, std::shared_ptr<DevicePool> pool = std::make_shared<DevicePool>())
      : pool_{std::move(pool)}, inner_{std::move(inner)} {}
  StagedCalls(StagedCalls&&) noexcept = default;
  StagedCalls& operator=(StagedCalls&& other) noexcept {
    inner_ = std::move(other.inner_);  // before the memory that it may write to
    pool_ = std::move(other.pool_);
    return *this;
  }

  [[nodiscard]] int rank() const { return inner_.rank(); }
  [[nodiscard]] int size() const { return inner_.size(); }
  [[nodiscard]] pdp::comm::Duration deadline() const { return inner_.deadline(); }
  void deadline(pdp::comm::Duration duration) { inner_.deadline(duration); }
  void progress() { inner_.progress(); }
  void abort(const std::string& reason) { inner_.abort(reason); }
  void begin_group() { inner_.begin_group(); }
  void end_group() { inner_.end_group(); }

  Work collective(Verb verb, Memory in, Memory out, int root, Reducer reducer = {}) {
    return staged(in, out, [&](const Memory& one, const Memory& two) { return inner_.collective(verb, one, two, root, reducer); });
  }
  Work collective(Verb verb, Memory whole, Memory shard, Counts counts, int root, Reducer reducer = {}) {
    return staged(whole, shard,
                  [&](const Memory& one, const Memory& two) { return inner_.collective(verb, one, two, counts, root, reducer); });
  }
  Work all_to_all(Memory in, Counts sent, Memory out, Counts received) {
    return staged(in, out, [&](const Memory& one, const Memory& two) { return inner_.all_to_all(one, sent, two, received); });
  }
  Work exchange(Memory out, int to, Memory in, int from, int tag) {
    return staged(out, in, [&](const Memory& one, const Memory& two) { return inner_.exchange(one, to, two, from, tag); });
  }
  [[nodiscard]] StagedCalls split(int color, int key) { return StagedCalls{inner_.split(color, key), pool_}; }

 private:
  /// What is only read comes back as it went.
  template <class Call>
  Work staged(const Memory& one, const Memory& two, const Call& call) {
    auto stage = std::make_unique<Stage>(*pool_, one, two);
    auto work = call(stage->first, stage->second);
    return Work{std::move(stage), std::move(work)};
  }

  std::shared_ptr<DevicePool> pool_;
  pdp::comm::NcclCalls inner_;
};

class Staged : public pdp::comm::BasicCommunicator<StagedCalls> {
 public:
  static Staged connect(pdp::comm::StoreView store, int rank, int size, pdp::comm::TimePoint deadline) {
    return BasicCommunicator{StagedCalls{pdp::comm::Nccl::connect(store, rank, size, deadline).release()}};
  }
  Staged(BasicCommunicator&& group) : BasicCommunicator{std::move(group)} {}
  [[nodiscard]] Staged split(int color, int key) { return BasicCommunicator::split(color, key); }
};
static_assert(pdp::comm::Communicator<Staged> && pdp::comm::HasReduceScatter<Staged>);
