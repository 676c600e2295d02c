// What the two halves of the stand-in share. One mutex guards all of it, and one condition tells that something has changed.
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

/// What the streams are given that are captured together. A graph carries out what it has of each of them as a stream would.
struct Capture {
  /// How much of each stream something comes after.
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
  std::deque<Task> tasks;             // the first one is being carried out
  std::shared_ptr<Capture> captured;  // where they go instead, while the stream is captured
  int device = 0;
  int coming = 0;  // what NCCL was told, and has not put here yet
  bool destroyed = false;

  void enqueue(Task task);
};
struct Event {
  int device = 0;
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  // as it was recorded last, on whichever stream
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();  // at which that was
  // Of one that was recorded last in a capture.
  bool is_captured = false;
  std::weak_ptr<Capture> capture;
  std::shared_ptr<std::uint64_t> launch;  // in which it was reached
  Capture::Past past;
};
struct Block {
  std::size_t bytes = 0;
  int device = 0;
  bool pinned = false;  // of the host
};

struct Everything {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const std::byte*, Block> blocks;
  std::set<cudaStream_t> streams;
  std::set<std::shared_ptr<Stream>> running;  // those that were destroyed with something left to do, too
  std::map<int, cudaStream_t> default_streams;
  std::set<std::pair<int, int>> peers;  // devices, and those whose memory they have been given
  std::map<int, int> products;          // of cuBLASLt, by their epilogue
  int products_at_work = 0;
  bool products_met = false;  // as many as are to
  int graphs_launched = 0;
  std::set<int> in_use;  // devices
  int live = 0;
};
Everything& everything();

[[noreturn]] void misuse(const std::string& what);
/// Of what cannot be done while the calling thread captures any stream.
void refuse_in_capture(const char* what);
/// Of what cannot be done with a stream that is captured, or while the calling thread captures one.
void refuse_captured(const Stream& stream, const char* what);
Stream& stream_of(cudaStream_t stream);
/// The same, for work that a stream of another device than the thread's current one does not take.
Stream& stream_here(cudaStream_t stream, const char* what);
/// The block that all of the memory lies in, or null.
const Block* block_of(const void* memory, std::size_t bytes);
/// Memory of a device, whatever its streams still do with it.
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
