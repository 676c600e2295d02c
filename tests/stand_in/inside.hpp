// State that the sources of the stand-in share. One mutex guards all of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stand_in.hpp"

namespace stand_in {

using Lock = std::unique_lock<std::mutex>;

using Task = std::function<void(Lock&)>;

struct Stream;

/// The tasks of streams that are captured together. A graph executes the tasks of each stream in order.
struct Capture {
  /// For each stream, how many of its tasks come before a task or event.
  using Past = std::map<const Stream*, std::size_t>;
  struct Branch {
    std::vector<Task> tasks;
    Past past;
  };
  Stream* origin = nullptr;
  std::map<Stream*, Branch> branches;
  std::vector<std::function<void()>> at_launch;
  std::uint64_t launches = 0;
};

struct Stream {
  std::deque<Task> tasks;             // the first one is running
  std::shared_ptr<Capture> captured;  // takes the tasks while the stream is captured
  int device = 0;
  int coming = 0;  // NCCL calls that are not launched yet
  bool destroyed = false;
  std::condition_variable given_work;  // notified of a new task, and when the stream is destroyed

  void enqueue(Task task);
};
struct Event {
  int device = 0;
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  // whether its last recording was reached
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();  // when it was reached
  // Set if its last recording was in a capture.
  bool is_captured = false;
  std::weak_ptr<Capture> capture;
  std::shared_ptr<std::uint64_t> launch;  // the launch in which it was reached
  Capture::Past past;
};
struct Block {
  std::size_t bytes = 0;
  int device = 0;
  bool pinned = false;  // host memory
};

struct Everything {
  std::mutex mutex;
  std::condition_variable changed;  // notified of all other changes
  std::map<const std::byte*, Block> blocks;
  std::set<cudaStream_t> streams;
  std::set<std::shared_ptr<Stream>> running;  // includes destroyed streams with tasks left
  std::map<int, cudaStream_t> default_streams;
  std::set<std::pair<int, int>> peers;  // pairs of a device and a device whose memory it can access
  std::map<int, int> products;          // cuBLASLt products by epilogue
  int products_at_work = 0;
  bool products_met = false;  // whether `products_to_meet` ran at the same time
  int graphs_launched = 0;
  std::set<int> in_use;  // devices
  int live = 0;
};
Everything& everything();

[[noreturn]] void misuse(const std::string& what);
/// Aborts if the calling thread captures any stream.
void refuse_in_capture(const char* what);
/// Aborts if the stream is being captured.
void refuse_captured(const Stream& stream, const char* what);
Stream& stream_of(cudaStream_t stream);
/// As stream_of(), but aborts if the stream is of another device than the thread's current one.
Stream& stream_here(cudaStream_t stream, const char* what);
/// The block that contains all of the memory, or null.
const Block* block_of(const void* memory, std::size_t bytes);
/// Frees memory of a device without waiting for its streams.
void free_at_once(void* memory);
int& current_device();

}  // namespace stand_in

struct CUstream_st {
  std::shared_ptr<stand_in::Stream> state;
};
struct CUmemPoolHandle_st {
  int device;
};
struct CUgraph_st {
  std::shared_ptr<stand_in::Capture> capture;
};
struct CUgraphExec_st {
  std::shared_ptr<stand_in::Capture> capture;
};
struct CUevent_st {
  std::shared_ptr<stand_in::Event> state;
};
