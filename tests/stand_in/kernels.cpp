#include <cuda_runtime.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "inside.hpp"

#if defined(__SANITIZE_THREAD__)
#define PDP_TEST_THREADS
#elif defined(__SANITIZE_ADDRESS__)
#define PDP_TEST_ADDRESSES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PDP_TEST_THREADS
#elif __has_feature(address_sanitizer)
#define PDP_TEST_ADDRESSES
#endif
#endif
#ifdef PDP_TEST_THREADS
#include <sanitizer/tsan_interface.h>
#endif
#ifdef PDP_TEST_ADDRESSES
#include <sanitizer/common_interface_defs.h>
#endif

namespace stand_in {

namespace {

constexpr std::size_t stack_bytes = 32 * 1024;
constexpr unsigned warp = 32;

/// The point at which a stack has stopped to let another one run. _setjmp saves it. swapcontext would also save the signal mask, which
/// takes a system call each time.
struct Place {
  jmp_buf registers{};
  ucontext_t beginning{};  // starts a stack that has not begun
  bool has_begun = true;
  void* fiber = nullptr;         // for ThreadSanitizer
  const void* bottom = nullptr;  // for AddressSanitizer
  std::size_t size = 0;
  void* frames = nullptr;
};

/// Tell the sanitizer about a switch of stacks: leave() before the switch, arrive() after it.
#if defined(PDP_TEST_THREADS)
void* new_fiber() { return __tsan_create_fiber(0); }
void* current_fiber() { return __tsan_get_current_fiber(); }
void leave(Place&, const Place& there) { __tsan_switch_to_fiber(there.fiber, 0); }
void arrive(const Place&, Place&) {}
#else
void* new_fiber() { return nullptr; }
void* current_fiber() { return nullptr; }
#ifdef PDP_TEST_ADDRESSES
void leave(Place& here, const Place& there) { __sanitizer_start_switch_fiber(&here.frames, there.bottom, there.size); }
void arrive(const Place& here, Place& left) { __sanitizer_finish_switch_fiber(here.frames, &left.bottom, &left.size); }
#else
void leave(Place&, const Place&) {}
void arrive(const Place&, Place&) {}
#endif
#endif

#ifdef PDP_TEST_ADDRESSES
void jump(Place& there) {
  // AddressSanitizer's own _longjmp unpoisons the stack that is left, which takes a system call each time.
  static const auto longjmp_of_c = reinterpret_cast<void (*)(jmp_buf, int)>(::dlsym(RTLD_NEXT, "_longjmp"));
  longjmp_of_c(there.registers, 1);
}
#else
void jump(Place& there) { _longjmp(there.registers, 1); }
#endif

void start_threads();

/// A stack for the simulated threads of a block. It waits in start_threads() when it is not in use.
struct Stack : Place {
  std::unique_ptr<char[]> bytes = std::make_unique<char[]>(stack_bytes);

  Stack() {
    fiber = new_fiber();
    bottom = bytes.get();
    size = stack_bytes;
    has_begun = false;
    getcontext(&beginning);
    beginning.uc_stack = {.ss_sp = bytes.get(), .ss_flags = 0, .ss_size = stack_bytes};
    beginning.uc_link = nullptr;
    makecontext(&beginning, start_threads, 0);
  }
};

struct Thread {
  enum class State { ready, at_block, at_warp, finished };
  State state = State::ready;
  Stack* stack = nullptr;
  std::array<std::uint64_t, 2> given{};  // used alternately, so that no value is overwritten before others have read it
  unsigned turn = 0;
};

/// The running block. Only one runs at a time, since streams execute their tasks under one mutex.
struct RunningBlock {
  Place scheduler;
  Place* left = nullptr;                       // the stack or scheduler that ran before the current one
  std::vector<std::unique_ptr<Stack>> stacks;  // kept for the next block
  Stack* stack = nullptr;                      // the one in use
  std::vector<Thread> threads;
  unsigned started = 0;
  unsigned current = 0;
  const std::function<void()>* body = nullptr;
};
RunningBlock& block_that_runs() {
  static RunningBlock& all = *new RunningBlock;
  return all;
}

void become(unsigned number) {
  block_that_runs().current = number;
  threadIdx = {number % blockDim.x, number / blockDim.x % blockDim.y, number / (blockDim.x * blockDim.y)};
}

/// Switches from one stack to another. Returns when `here` is resumed.
void go(Place& here, Place& there) {
  if (_setjmp(here.registers) == 0) {
    block_that_runs().left = &here;
    leave(here, there);
    if (there.has_begun) jump(there);
    there.has_begun = true;
    setcontext(&there.beginning);
  }
  arrive(here, *block_that_runs().left);
}

/// Resumes the next ready thread of the block, or the scheduler if there is none.
void give_turn() {
  RunningBlock& block = block_that_runs();
  Stack& own = *block.stack;
  for (unsigned number = block.current + 1; number < block.started; ++number)
    if (block.threads[number].state == Thread::State::ready) {
      become(number);
      block.stack = block.threads[number].stack;
      return go(own, *block.stack);
    }
  go(own, block.scheduler);
}

/// Runs threads that have not started, one after another, until one of them waits. That one keeps the stack, and the next ones run on
/// another. Never returns: restarting a stack would make ThreadSanitizer's call stack one call deeper each time.
void start_threads() {
  RunningBlock& block = block_that_runs();
  arrive(*block.stack, *block.left);
  for (;;) {
    while (block.started < block.threads.size()) {
      const unsigned number = block.started++;
      block.threads[number].stack = block.stack;
      become(number);
      (*block.body)();
      block.threads[number].state = Thread::State::finished;
    }
    give_turn();
  }
}

/// Lets other threads run until this thread may continue.
void wait_as(Thread::State state) {
  RunningBlock& block = block_that_runs();
  block.threads[block.current].state = state;
  give_turn();
}

void go_on(Stack& stack) {
  RunningBlock& block = block_that_runs();
  block.stack = &stack;
  go(block.scheduler, stack);
}

void run_block(unsigned threads) {
  RunningBlock& block = block_that_runs();
  block.scheduler.fiber = current_fiber();
  block.threads.assign(threads, {});
  block.started = 0;
  for (std::size_t used = 0; block.started < threads; ++used) {
    if (used == block.stacks.size()) block.stacks.push_back(std::make_unique<Stack>());
    go_on(*block.stacks[used]);
  }
  const auto all = [&](unsigned first, unsigned last, Thread::State state, bool or_finished) {
    for (unsigned number = first; number < last; ++number)
      if (const Thread::State own = block.threads[number].state; own != state && !(or_finished && own == Thread::State::finished))
        return false;
    return true;
  };
  while (!all(0, threads, Thread::State::finished, false)) {
    bool moved = false;
    const auto release = [&](unsigned first, unsigned last, Thread::State state) {
      for (unsigned number = first; number < last; ++number)
        if (block.threads[number].state == state) {
          block.threads[number].state = Thread::State::ready;
          moved = true;
        }
    };
    if (all(0, threads, Thread::State::at_block, true)) release(0, threads, Thread::State::at_block);
    for (unsigned first = 0; first + warp <= threads; first += warp)
      if (all(first, first + warp, Thread::State::at_warp, false)) release(first, first + warp, Thread::State::at_warp);
    if (!moved) misuse("threads of a block wait for each other at different places");
    for (unsigned number = 0; number < threads; ++number)
      if (block.threads[number].state == Thread::State::ready) {
        become(number);
        go_on(*block.threads[number].stack);
      }
  }
}

}  // namespace

unsigned lane() { return block_that_runs().current % warp; }

void wait_for_block() { wait_as(Thread::State::at_block); }

std::uint64_t exchange_in_warp(std::uint64_t value, unsigned from_lane) {
  RunningBlock& block = block_that_runs();
  const unsigned own = block.current, turn = block.threads[own].turn++ % 2;
  block.threads[own].given[turn] = value;
  wait_as(Thread::State::at_warp);
  return block.threads[own / warp * warp + from_lane].given[turn];
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
