// What the two halves of the stand-in share. One mutex guards all of it, and one condition tells that something has changed.
#pragma once

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

#include "stand_in.hpp"

namespace stand_in {

using Lock = std::unique_lock<std::mutex>;

struct Stream {
  std::deque<std::function<void(Lock&)>> tasks;  // the first one is being carried out
  int device = 0;
  int coming = 0;  // what NCCL was told, and has not put here yet
  bool destroyed = false;

  void enqueue(std::function<void(Lock&)> task);
};
struct Event {
  int device = 0;
  std::uint64_t recorded = 0, reached = 0;
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
  int live = 0;
};
Everything& everything();

[[noreturn]] void misuse(const std::string& what);
Stream& stream_of(cudaStream_t stream);
/// The block that all of the memory lies in, or null.
const Block* block_of(const void* memory, std::size_t bytes);
int& current_device();

}  // namespace stand_in

struct CUstream_st {
  std::shared_ptr<stand_in::Stream> state;
};
struct CUevent_st {
  std::shared_ptr<stand_in::Event> state;
};
