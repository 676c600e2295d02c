#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "inside.hpp"

namespace stand_in {

Settings& settings() {
  static Settings all;
  return all;
}
void reset() {
  settings().devices = 8;
  settings().driver = 13000;
  settings().nccl = NCCL_VERSION_CODE;
  settings().looks_until_launched = 0;
  settings().frees_together = false;
  settings().splits_hang = false;
  settings().room = std::size_t{1} << 40;
  settings().graphs_fit = true;
  settings().host_room = std::size_t{1} << 40;
  settings().use = settings().kernels = cudaSuccess;
  settings().reach = true;
  settings().epilogues = true;
  settings().epilogues_run = true;
  settings().product_milliseconds = 0;
  settings().products_to_meet = 0;
  {
    const std::lock_guard lock{everything().mutex};
    everything().products.clear();
    everything().products_met = false;
    everything().graphs_launched = 0;
    everything().in_use.clear();
  }
  for (auto* const each : {&settings().full, &settings().refuses_registration}) std::ranges::fill(*each, false);
  for (auto& each : settings().error) each = ncclSuccess;
}

[[noreturn]] void misuse(const std::string& what) {
  std::fprintf(stderr, "stand-in for CUDA and NCCL: %s\n", what.c_str());
  std::abort();
}

Everything& everything() {
  static Everything& all = *new Everything;  // never destroyed, since streams may outlive main
  return all;
}
int live() {
  const std::lock_guard lock{everything().mutex};
  return everything().live + static_cast<int>(everything().blocks.size());
}

std::size_t bytes(int device) {
  const std::lock_guard lock{everything().mutex};
  std::size_t sum = 0;
  for (const auto& [begin, block] : everything().blocks)
    if (!block.pinned && block.device == device) sum += block.bytes;
  return sum;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

bool is_in_use(int device) {
  const std::lock_guard lock{everything().mutex};
  return everything().in_use.contains(device);
}
bool products_have_met() {
  const std::lock_guard lock{everything().mutex};
  return everything().products_met;
}
int products(int epilogue) {
  const std::lock_guard lock{everything().mutex};
  const auto found = everything().products.find(epilogue);
  return found == everything().products.end() ? 0 : found->second;
}
int graphs_launched() {
  const std::lock_guard lock{everything().mutex};
  return everything().graphs_launched;
}
void refuse_captured(const Stream& stream, const char* what) {
  if (stream.captured != nullptr) misuse(std::string{what} + " on a stream that is being captured");
}

void Stream::enqueue(Task task) {
  if (captured != nullptr) {
    Capture::Branch& own = captured->branches[this];
    own.tasks.push_back(std::move(task));
    own.past[this] = own.tasks.size();
    return;
  }
  tasks.push_back(std::move(task));
  given_work.notify_one();
}

cudaStream_t make_stream(int device) {
  everything().in_use.insert(device);
  auto stream = std::make_shared<Stream>();
  stream->device = device;
  everything().running.insert(stream);
  std::thread{[stream] {
    Lock lock{everything().mutex};
    while (true) {
      stream->given_work.wait(lock, [&] { return !stream->tasks.empty() || stream->destroyed; });
      if (stream->tasks.empty()) {
        everything().running.erase(stream);
        return;
      }
      const auto task = stream->tasks.front();  // stays in the queue until it is done
      task(lock);
      stream->tasks.pop_front();
      everything().changed.notify_all();
    }
  }}.detach();
  return new CUstream_st{stream};
}

Stream& stream_of(cudaStream_t stream) {
  if (stream != nullptr) {
    if (!everything().streams.contains(stream)) misuse("a stream that was destroyed, or never made");
    return *stream->state;
  }
  cudaStream_t& own = everything().default_streams[current_device()];
  if (own == nullptr) own = make_stream(current_device());
  return *own->state;
}

Stream& stream_here(cudaStream_t stream, const char* what) {
  Stream& own = stream_of(stream);
  if (own.device != current_device()) misuse(std::string{what} + " for a stream of another device than the thread's current one");
  return own;
}

const Block* block_of(const void* memory, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(memory);
  auto after = everything().blocks.upper_bound(first);
  if (after == everything().blocks.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(after);
  return first + bytes <= begin + block.bytes ? &block : nullptr;
}

namespace {

int& captures_here() {
  thread_local int captures = 0;
  return captures;
}

}  // namespace

void refuse_in_capture(const char* what) {
  if (captures_here() > 0) misuse(std::string{what} + " while this thread captures a stream");
}

namespace {

/// Records that CUDA has initialised a device.
void use(int device) {
  const std::lock_guard lock{everything().mutex};
  everything().in_use.insert(device);
}

/// How much of new memory is filled with a value that tests notice. To fill the workspaces of cuBLASLt, which are larger, takes long.
constexpr std::size_t most_marked = 4 << 20;

cudaError_t allocate(void** memory, std::size_t bytes, bool pinned) {
  use(current_device());
  refuse_in_capture("memory is asked for");
  if (bytes > (pinned ? settings().host_room : settings().room)) return cudaErrorMemoryAllocation;
  const std::lock_guard lock{everything().mutex};
  auto* const made = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
  std::memset(made, 0xcd, std::min(bytes, most_marked));
  everything().blocks.emplace(made, Block{bytes, current_device(), pinned});
  *memory = made;
  return cudaSuccess;
}

/// Frees memory. Waits for all work of its device first, as CUDA does, unless `waits` is false.
cudaError_t release(void* memory, bool pinned, bool waits = true) {
  refuse_in_capture("memory is freed");
  Lock lock{everything().mutex};
  const auto* const begin = static_cast<std::byte*>(memory);
  const auto found = everything().blocks.find(begin);
  if (found == everything().blocks.end()) misuse("memory that was freed before, or never allocated");
  const Block block = found->second;
  if (block.pinned != pinned) misuse("host memory freed as device memory, or the reverse");
  everything().changed.wait(lock, [&] {
    return !waits || std::ranges::all_of(everything().running,
                                         [&](const auto& stream) { return stream->device != block.device || stream->tasks.empty(); });
  });
  everything().blocks.erase(begin);
  ::operator delete (memory, std::align_val_t{256});
  return cudaSuccess;
}

/// Lets the streams run. A thread that polls in a loop would otherwise keep the mutex from them.
void give_way(Lock& lock) { everything().changed.wait_for(lock, std::chrono::microseconds{100}); }

void check_ready(const Stream& stream, const char* what) {
  if (stream.coming > 0) misuse(std::string{what} + " on a stream on which NCCL has not launched its call yet");
}

/// Executes one launch of a graph, each branch in a thread.
void run(Capture& capture, Lock& own) {
  ++capture.launches;
  const auto carry_out = [](const std::vector<Task>& tasks, Lock& lock) {
    for (const Task& task : tasks) {
      task(lock);
      everything().changed.notify_all();
    }
  };
  std::vector<std::thread> others;
  for (const auto& [stream, branch] : capture.branches)
    if (stream != capture.origin)
      others.emplace_back([&carry_out, &tasks = branch.tasks] {
        Lock lock{everything().mutex};
        carry_out(tasks, lock);
      });
  carry_out(capture.branches[capture.origin].tasks, own);
  own.unlock();
  for (std::thread& each : others) each.join();
  own.lock();
}

}  // namespace

Hold::Hold(cudaStream_t stream) : held_{new std::atomic<bool>{true}} {
  const std::lock_guard lock{everything().mutex};
  stream_of(stream).enqueue([held = held_](Lock& own) {
    everything().changed.wait(own, [&] { return !held->load(); });
    delete held;
  });
}
Hold::~Hold() {
  const std::lock_guard lock{everything().mutex};
  held_->store(false);
  everything().changed.notify_all();
}

}  // namespace stand_in

using namespace stand_in;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    default:
      return "an error of the stand-in";
  }
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = settings().driver;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (settings().driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  if (settings().devices == 0) return cudaErrorNoDevice;
  *count = settings().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= settings().devices) return cudaErrorInvalidDevice;
  if (device > 0 && settings().use != cudaSuccess) return settings().use;
  use(device);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (std::string_view{symbol} != "cuDevicePrimaryCtxGetState") misuse("a driver function that the stand-in lacks");
  constexpr auto state = [](int device, unsigned*, int* active) {
    const std::lock_guard lock{everything().mutex};
    *active = everything().in_use.contains(device) ? 1 : 0;
    return 0;
  };
  *function = reinterpret_cast<void*>(static_cast<int (*)(int, unsigned*, int*)>(state));
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Stand-in");
  properties->totalGlobalMem = settings().room;
  properties->major = 5;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) { return settings().kernels; }
cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device) {
  std::snprintf(address, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocate(memory, bytes, false); }
cudaError_t cudaFree(void* memory) { return release(memory, false); }
void stand_in::free_at_once(void* memory) { release(memory, false, /*waits*/ false); }
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (device < 0 || peer < 0 || device >= settings().devices || peer >= settings().devices || device == peer)
    misuse("cudaDeviceCanAccessPeer of a missing device, or of a device and itself");
  *can = settings().reach ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const std::lock_guard lock{everything().mutex};
  if (flags != 0 || peer == current_device() || peer < 0 || peer >= settings().devices || !settings().reach)
    misuse("access to a device that is not there, is the own one, or cannot be reached");
  return everything().peers.emplace(current_device(), peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  const std::lock_guard lock{everything().mutex};
  everything().in_use.insert(current_device());
  *pool = new CUmemPoolHandle_st{properties->location.id};
  ++everything().live;
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const std::lock_guard lock{everything().mutex};
  everything().in_use.insert(current_device());
  delete pool;
  --everything().live;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (access[i].location.id == pool->device) misuse("a pool's own device needs no access to it");
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  {
    const std::lock_guard lock{everything().mutex};
    refuse_captured(stream_of(stream), "memory is asked for");
    if (stream_of(stream).device != pool->device) misuse("memory of a pool on a stream of another device");
  }
  return allocate(memory, bytes, false);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  const auto* const begin = static_cast<std::byte*>(memory);
  const auto found = everything().blocks.find(begin);
  if (found == everything().blocks.end() || found->second.pinned) misuse("memory that was freed before, or is not of a device");
  Stream& state = stream_of(stream);
  refuse_captured(state, "memory is freed");
  state.enqueue([=](Lock&) {
    everything().blocks.erase(begin);
    ::operator delete (memory, std::align_val_t{256});
  });
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = settings().room;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return allocate(memory, bytes, true); }
cudaError_t cudaFreeHost(void* memory) { return release(memory, true); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const std::lock_guard lock{everything().mutex};
  const Block* const block = block_of(memory, 1);
  *attributes = {};
  if (block == nullptr) return cudaSuccess;
  attributes->type = block->pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = block->device;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  refuse_in_capture("a copy that waits");
  cudaStreamSynchronize(nullptr);
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  check_ready(state, "a copy");
  if (block_of(to, bytes) == nullptr || block_of(from, bytes) == nullptr)
    misuse("an asynchronous copy of memory that CUDA did not allocate: it would block its caller");
  state.enqueue([=](Lock&) {
    if (block_of(to, bytes) == nullptr || block_of(from, bytes) == nullptr)
      misuse("memory was given back while a copy of it was still on a stream");
    std::memmove(to, from, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  if (block_of(memory, bytes) == nullptr) misuse("cudaMemsetAsync of memory that is not device memory");
  stream_of(stream).enqueue([=](Lock&) { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const std::lock_guard lock{everything().mutex};
  if (flags != cudaStreamNonBlocking) misuse("a stream that waits for the default stream");
  *stream = make_stream(current_device());
  everything().streams.insert(*stream);
  ++everything().live;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  state.destroyed = true;
  state.given_work.notify_one();
  everything().streams.erase(stream);
  delete stream;
  --everything().live;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Lock lock{everything().mutex};
  refuse_in_capture("a wait");
  Stream& state = stream_of(stream);
  refuse_captured(state, "a wait");
  everything().changed.wait(lock, [&] { return state.tasks.empty(); });
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Lock lock{everything().mutex};
  refuse_in_capture("a look at a stream");
  const Stream& state = stream_of(stream);
  refuse_captured(state, "a look");
  if (!state.tasks.empty()) give_way(lock);
  return state.tasks.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  check_ready(state, "a wait for an event");
  const Event& seen = *event->state;
  if (!seen.is_captured) {
    refuse_captured(state, "a wait for an event from outside");
    state.enqueue([reached = seen.reached](Lock& held) { everything().changed.wait(held, [&] { return *reached; }); });
    return cudaSuccess;
  }
  const auto capture = seen.capture.lock();
  if (capture == nullptr || capture->origin->captured != capture) misuse("a wait for an event of a capture that has ended");
  if (state.captured == nullptr) state.captured = capture;
  if (state.captured != capture) misuse("a wait for an event of another capture");
  state.enqueue([launch = seen.launch, launches = &capture->launches](Lock& held) {
    everything().changed.wait(held, [&] { return *launch == *launches; });
  });
  for (const auto& [of, tasks] : seen.past) {
    std::size_t& known = capture->branches[&state].past[of];
    known = std::max(known, tasks);
  }
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const std::lock_guard lock{everything().mutex};
  *event = new CUevent_st{std::make_shared<Event>()};
  (*event)->state->device = current_device();
  ++everything().live;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock{everything().mutex};
  delete event;
  --everything().live;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  check_ready(state, "an event");
  if (event->state->device != state.device) misuse("an event is recorded on a stream of another device");
  Event& own = *event->state;
  own.is_captured = state.captured != nullptr;
  own.capture = state.captured;
  if (own.is_captured) {
    own.launch = std::make_shared<std::uint64_t>(0);
    state.enqueue([launch = own.launch, launches = &state.captured->launches](Lock&) { *launch = *launches; });
    own.past = state.captured->branches[&state].past;
    return cudaSuccess;
  }
  own.reached = std::make_shared<bool>(false);
  state.enqueue([reached = own.reached, time = own.time](Lock&) {
    *reached = true;
    *time = Event::Clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard lock{everything().mutex};
  if (!*begin->state->reached || !*end->state->reached) misuse("the time between events that were not reached");
  *milliseconds = std::chrono::duration<float, std::milli>(*end->state->time - *begin->state->time).count();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Lock lock{everything().mutex};
  refuse_in_capture("a look at an event");
  if (event->state->is_captured) return cudaErrorCapturedEvent;
  const auto reached = event->state->reached;
  if (!*reached) give_way(lock);
  return *reached ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  refuse_in_capture("a wait of the host for an event");
  Lock lock{everything().mutex};
  if (event->state->is_captured) return cudaErrorCapturedEvent;
  everything().changed.wait(lock, [reached = event->state->reached] { return *reached; });
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock{everything().mutex};
  *status = stream_of(stream).captured == nullptr ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock{everything().mutex};
  if (stream == nullptr) misuse("the default stream cannot be captured");
  Stream& state = stream_of(stream);
  refuse_captured(state, "a capture");
  state.captured = std::make_shared<Capture>();
  state.captured->origin = &state;
  state.captured->branches[&state];
  ++captures_here();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  const auto capture = state.captured;
  if (capture == nullptr || capture->origin != &state) misuse("the end of a capture that has not begun on this stream");
  if (captures_here()-- <= 0) misuse("the end of a capture that another thread has begun");
  Capture::Past& past = capture->branches[&state].past;
  const bool is_joined =
      std::ranges::all_of(capture->branches, [&](const auto& each) { return past[each.first] == each.second.tasks.size(); });
  for (const auto& [branch, tasks] : capture->branches) {
    check_ready(*branch, "the end of a capture");
    branch->captured.reset();
  }
  if (!is_joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{capture};
  ++everything().live;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard lock{everything().mutex};
  if (!settings().graphs_fit) return cudaErrorMemoryAllocation;
  *made = new CUgraphExec_st{graph->capture};
  ++everything().live;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock{everything().mutex};
  delete graph;
  --everything().live;
  everything().changed.notify_all();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const std::lock_guard lock{everything().mutex};
  Stream& state = stream_of(stream);
  refuse_captured(state, "a graph");
  ++everything().graphs_launched;
  for (const auto& begin : graph->capture->at_launch) begin();
  state.enqueue([capture = graph->capture](Lock& own) { run(*capture, own); });
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const std::lock_guard lock{everything().mutex};
  delete graph;
  --everything().live;
  everything().changed.notify_all();
  return cudaSuccess;
}
