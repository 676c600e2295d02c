#include <cuda_runtime.h>
#include <ucontext.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "inside.hpp"

#if defined(__SANITIZE_THREAD__)
#define PDP_TEST_FIBERS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PDP_TEST_FIBERS
#endif
#endif
#ifdef PDP_TEST_FIBERS
#include <sanitizer/tsan_interface.h>
#endif

namespace stand_in {

namespace {

/// What ThreadSanitizer has to know of a stack that takes turns with others.
#ifdef PDP_TEST_FIBERS
void* new_fiber() { return __tsan_create_fiber(0); }
void* current_fiber() { return __tsan_get_current_fiber(); }
void announce(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
void* new_fiber() { return nullptr; }
void* current_fiber() { return nullptr; }
void announce(void*) {}
#endif

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr unsigned warp = 32;

struct Fiber {
  enum class State { ready, at_block, at_warp, finished };
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
  State state = State::ready;
  unsigned number = 0;
  std::uint64_t given = 0;
  void* known_as = new_fiber();
};

/// The block that runs. One at a time, as streams carry out what they have under the one mutex.
struct Block_ {
  ucontext_t scheduler{};
  void* scheduler_known_as = nullptr;
  std::vector<Fiber> fibers;  // kept for the next block
  Fiber* current = nullptr;
  const std::function<void()>* body = nullptr;
};
Block_& block_that_runs() {
  static Block_& all = *new Block_;
  return all;
}

void enter() {
  Block_& block = block_that_runs();
  (*block.body)();
  block.current->state = Fiber::State::finished;
  announce(block.scheduler_known_as);
  swapcontext(&block.current->context, &block.scheduler);
}

void set_thread(unsigned number) {
  threadIdx = {number % blockDim.x, number / blockDim.x % blockDim.y, number / (blockDim.x * blockDim.y)};
}

/// Gives the turn to others until this thread may go on.
void wait_as(Fiber::State state) {
  Block_& block = block_that_runs();
  Fiber& own = *block.current;
  own.state = state;
  announce(block.scheduler_known_as);
  swapcontext(&own.context, &block.scheduler);
  set_thread(own.number);
}

void run_block(unsigned threads) {
  Block_& block = block_that_runs();
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  block.scheduler_known_as = current_fiber();
  for (unsigned number = 0; number < threads; ++number) {
    Fiber& fiber = block.fibers[number];
    fiber.state = Fiber::State::ready;
    fiber.number = number;
    getcontext(&fiber.context);
    fiber.context.uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = stack_bytes};
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
  }
  const auto all = [&](unsigned first, unsigned last, Fiber::State state, bool or_finished) {
    for (unsigned number = first; number < last; ++number)
      if (const Fiber::State own = block.fibers[number].state; own != state && !(or_finished && own == Fiber::State::finished))
        return false;
    return true;
  };
  while (!all(0, threads, Fiber::State::finished, false)) {
    bool moved = false;
    for (unsigned number = 0; number < threads; ++number) {
      Fiber& fiber = block.fibers[number];
      if (fiber.state != Fiber::State::ready) continue;
      block.current = &fiber;
      set_thread(number);
      announce(fiber.known_as);
      swapcontext(&block.scheduler, &fiber.context);
      moved = true;
    }
    const auto release = [&](unsigned first, unsigned last, Fiber::State state) {
      for (unsigned number = first; number < last; ++number)
        if (block.fibers[number].state == state) {
          block.fibers[number].state = Fiber::State::ready;
          moved = true;
        }
    };
    if (all(0, threads, Fiber::State::at_block, true)) release(0, threads, Fiber::State::at_block);
    for (unsigned first = 0; first + warp <= threads; first += warp)
      if (all(first, first + warp, Fiber::State::at_warp, false)) release(first, first + warp, Fiber::State::at_warp);
    if (!moved) misuse("threads of a block wait for each other at different places");
  }
}

}  // namespace

unsigned lane() { return block_that_runs().current->number % warp; }

void wait_for_block() { wait_as(Fiber::State::at_block); }

std::uint64_t exchange_in_warp(std::uint64_t value, unsigned from_lane) {
  Block_& block = block_that_runs();
  Fiber& own = *block.current;
  own.given = value;
  wait_as(Fiber::State::at_warp);
  const std::uint64_t taken = block.fibers[own.number / warp * warp + from_lane].given;
  wait_as(Fiber::State::at_warp);  // nobody gives anything new before all have taken
  return taken;
}

void run_grid(const dim3& grid, const dim3& block, const std::function<void()>& body) {
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.x > 0x7fffffffU || grid.y == 0 || grid.y > 65535 || grid.z == 0 ||
      grid.z > 65535)
    misuse("a launch of a grid that no GPU takes");
  block_that_runs().body = &body;
  gridDim = grid;
  blockDim = block;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        run_block(threads);
      }
}

void enqueue_grid(cudaStream_t stream, const dim3& grid, const dim3& block, std::function<void()> body) {
  const std::lock_guard lock{everything().mutex};
  stream_here(stream, "a kernel").enqueue([=](Lock&) { run_grid(grid, block, body); });
}

}  // namespace stand_in
