// Wraps a communicator of device memory for tests that keep their values on the host. Each call copies the values to the device and back.
// So the tests of all backends run on it, both on the stand-in and on GPUs.
#pragma once

#include <cuda_runtime_api.h>

#include <pdp/comm/basic_communicator.hpp>
#include <pdp/comm/join/store.hpp>

#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

/// Owns memory of the current device. Cannot be copied.
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

/// Reuses memory of one device. Freeing it would wait for all work of the device, which may itself wait for other ranks.
class DevicePool {
 public:
  explicit DevicePool(int device) : device_{device} {}

  /// Memory borrowed from the pool. The destructor returns it.
  class Loan {
   public:
    Loan(DevicePool& pool, std::size_t bytes) : pool_{pool}, bytes_{std::bit_ceil(bytes)} {
      auto& idle = pool_.idle_[bytes_];
      if (idle.empty()) {
        int before = 0;
        cudaGetDevice(&before);
        cudaSetDevice(pool_.device_);
        idle.emplace_back(bytes_);
        cudaSetDevice(before);
      }
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
  int device_;
  std::map<std::size_t, std::vector<DeviceMemory>> idle_;  // by size
};

template <pdp::comm::Calls C>
class StagedCalls {
  using ErasedSpan = pdp::comm::ErasedSpan;

  /// Device copies of the memory that a call reads and writes. The second may lie within the first.
  struct Stage {
    ErasedSpan host_first, host_second, first, second;
    DevicePool::Loan block, second_block;

    Stage(DevicePool& pool, const ErasedSpan& one, const ErasedSpan& two)
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
    static void copy(const ErasedSpan& to, const ErasedSpan& from) {
      if (from.bytes() > 0) cudaMemcpy(to.data, from.data, from.bytes(), cudaMemcpyDefault);
    }
  };

 public:
  static constexpr bool queues_messages = requires { requires C::queues_messages; };

  class [[nodiscard]] Work {
   public:
    Work() = default;
    Work(Work&&) noexcept = default;
    Work& operator=(Work&& other) noexcept {
      inner_ = std::move(other.inner_);  // assigned first, since the old call may still write to the memory of the old stage_
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
    Work(std::unique_ptr<Stage> stage, typename C::Work inner) : stage_{std::move(stage)}, inner_{std::move(inner)} {}
    std::unique_ptr<Stage> stage_;
    typename C::Work inner_;
  };

  explicit StagedCalls(C inner) : StagedCalls{std::move(inner), nullptr} { pool_ = std::make_shared<DevicePool>(inner_.device()); }
  StagedCalls(C inner, std::shared_ptr<DevicePool> pool) : pool_{std::move(pool)}, inner_{std::move(inner)} {}
  StagedCalls(StagedCalls&&) noexcept = default;
  StagedCalls& operator=(StagedCalls&& other) noexcept {
    inner_ = std::move(other.inner_);  // assigned first, since old calls may still write to memory of the old pool_
    pool_ = std::move(other.pool_);
    return *this;
  }

  [[nodiscard]] int rank() const { return inner_.rank(); }
  [[nodiscard]] int size() const { return inner_.size(); }
  [[nodiscard]] pdp::comm::Duration deadline() const { return inner_.deadline(); }
  void deadline(pdp::comm::Duration duration) { inner_.deadline(duration); }
  void progress() { inner_.progress(); }
  void abort(const std::string& reason) { inner_.abort(reason); }
  void begin_group() requires pdp::comm::GroupsCalls<C> { inner_.begin_group(); }
  void end_group() requires pdp::comm::GroupsCalls<C> { inner_.end_group(); }

  Work start(const pdp::comm::Request& request) {
    // If there are shards, the whole comes first, since the shard may lie within it. Memory that is only read comes back unchanged.
    const bool spreads = pdp::comm::spreads(request.verb) || !pdp::comm::has_shards(request.verb);
    auto stage = std::make_unique<Stage>(*pool_, spreads ? request.in : request.out, spreads ? request.out : request.in);
    pdp::comm::Request on_device = request;
    on_device.waits_at_once = false;  // Work::wait() copies the results to the host
    on_device.in = spreads ? stage->first : stage->second;
    on_device.out = spreads ? stage->second : stage->first;
    auto work = inner_.start(on_device);
    return Work{std::move(stage), std::move(work)};
  }
  [[nodiscard]] StagedCalls split(int color, int key) { return StagedCalls{inner_.split(color, key), pool_}; }

 private:
  std::shared_ptr<DevicePool> pool_;
  C inner_;
};

template <class Comm>
class StagedOver : public pdp::comm::BasicCommunicator<StagedCalls<typename Comm::Erased>> {
  using Base = pdp::comm::BasicCommunicator<StagedCalls<typename Comm::Erased>>;

 public:
  static StagedOver connect(pdp::comm::StoreView store, int rank, int size, pdp::comm::TimePoint deadline) requires requires {
    Comm::connect(store, rank, size, deadline);
  }
  { return StagedOver{Comm::connect(store, rank, size, deadline)}; }
  static std::vector<StagedOver> world(int size) requires requires { Comm::world(size); }
  {
    std::vector<StagedOver> ranks;
    for (Comm& each : Comm::world(size)) ranks.push_back(StagedOver{std::move(each)});
    return ranks;
  }
  StagedOver(Base&& group) : Base{std::move(group)} {}
  [[nodiscard]] StagedOver split(int color, int key) { return Base::split(color, key); }

 private:
  explicit StagedOver(Comm world) : Base{StagedCalls{world.release()}} {}
};
