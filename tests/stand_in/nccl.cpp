#include <pdp/comm/operation.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "inside.hpp"

namespace stand_in {
namespace {

namespace pdp_comm = pdp::comm;

enum class Kind { reduce, broadcast, all_reduce, reduce_scatter, all_gather, send, receive };

/// The arguments of an NCCL call.
struct Operation {
  Kind kind{};
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t by = ncclNumOps;
  int peer = -1;                                               // or root
  int capture = -1;                                            // if captured: its number among the captured collectives, or 0 for a message
  std::ptrdiff_t in_at = unregistered, out_at = unregistered;  // offsets in registered memory

  static constexpr std::ptrdiff_t unregistered = -1;

  [[nodiscard]] bool is_message() const { return kind == Kind::send || kind == Kind::receive; }
  [[nodiscard]] bool agrees_with(const Operation& other) const {
    return kind == other.kind && count == other.count && type == other.type && by == other.by && peer == other.peer &&
           capture == other.capture;
  }
  /// For a collective: the offset of the memory that every rank gives, which holds the values or all shards.
  [[nodiscard]] std::ptrdiff_t place() const { return kind == Kind::reduce || kind == Kind::reduce_scatter ? in_at : out_at; }
  /// For a collective: the offset of the other memory, which holds one shard, or the input of all_reduce.
  [[nodiscard]] std::ptrdiff_t other_place() const {
    if (kind == Kind::reduce || kind == Kind::broadcast) return place();  // only the root has other memory
    return kind == Kind::reduce_scatter ? out_at : in_at;
  }
};

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
  }
  misuse("an unknown type");
}

/// Calls f with a value of the C++ type that `type` stands for.
template <class F>
void with_type(ncclDataType_t type, F&& f) {
  switch (type) {
    case ncclInt8:
      return f(std::int8_t{});
    case ncclUint8:
      return f(std::byte{});
    case ncclInt32:
      return f(std::int32_t{});
    case ncclInt64:
      return f(std::int64_t{});
    case ncclFloat16:
      return f(pdp::Float16{});
    case ncclBfloat16:
      return f(pdp::BFloat16{});
    case ncclFloat32:
      return f(float{});
    case ncclFloat64:
      return f(double{});
  }
}

Traffic& traffic_of_all() {
  static Traffic all;
  return all;
}

void combine(std::vector<std::byte>& into, const std::byte* from, ncclDataType_t type, ncclRedOp_t by) {
  with_type(type, [&]<class T>(T) {
    const auto with = [&](auto operation) { pdp_comm::combine<T, decltype(operation)>(into.data(), from, into.size()); };
    if (by == ncclSum || by == ncclAvg) return with(pdp_comm::Sum{});
    if (by == ncclProd) return with(pdp_comm::Product{});
    if (by == ncclMin) return with(pdp_comm::Min{});
    if (by == ncclMax) return with(pdp_comm::Max{});
    misuse("an unknown reduction");
  });
}

/// Executes a collective that all ranks have entered.
void carry_out(const std::vector<const Operation*>& ranks) {
  const Operation& first = *ranks.front();
  const std::size_t size = ranks.size(), bytes = first.count * size_of(first.type);
  for (const Operation* const each : ranks)
    if (!each->agrees_with(first)) misuse("ranks of one communicator have made different calls");
  bool zero_copy = first.place() >= 0 && first.other_place() >= 0;
  for (const Operation* const each : ranks) {
    if ((each->place() < 0) != (first.place() < 0) || (each->other_place() < 0) != (first.other_place() < 0))
      misuse("a call on memory that some ranks have registered, and some have not");
    zero_copy = zero_copy && each->place() == first.place();
  }
  Traffic& all = traffic_of_all();
  (zero_copy ? all.registered : all.other) += bytes;
  const auto sum = [&](std::size_t offset) {
    if (size == 1 && first.by == ncclAvg) misuse("an average of one rank, whose last elements NCCL before 2.29.7 does not write");
    std::vector<std::byte> total{ranks[0]->in + offset, ranks[0]->in + offset + bytes};
    for (std::size_t rank = 1; rank < size; ++rank) combine(total, ranks[rank]->in + offset, first.type, first.by);
    if (first.by == ncclAvg) with_type(first.type, [&]<class T>(T) { pdp_comm::divide<T>(total.data(), bytes, static_cast<int>(size)); });
    return total;
  };
  std::vector<std::vector<std::byte>> results;  // all inputs are read before any output is written
  switch (first.kind) {
    case Kind::all_reduce:
      results.assign(size, sum(0));
      break;
    case Kind::reduce:
      results.resize(size);
      results[static_cast<std::size_t>(first.peer)] = sum(0);
      break;
    case Kind::broadcast: {
      const std::byte* const from = ranks[static_cast<std::size_t>(first.peer)]->in;
      results.assign(size, {from, from + bytes});
      break;
    }
    case Kind::reduce_scatter:
      for (std::size_t rank = 0; rank < size; ++rank) results.push_back(sum(rank * bytes));
      break;
    case Kind::all_gather: {
      std::vector<std::byte> whole;
      for (const Operation* const each : ranks) whole.insert(whole.end(), each->in, each->in + bytes);
      results.assign(size, whole);
      break;
    }
    case Kind::send:
    case Kind::receive:
      misuse("a message is no collective");
  }
  for (std::size_t rank = 0; rank < size; ++rank)
    if (!results[rank].empty()) std::memcpy(ranks[rank]->out, results[rank].data(), results[rank].size());
}

struct Meeting {
  std::vector<const Operation*> ranks;
  std::size_t arrived = 0;
  bool over = false;
};
struct Letter {
  const Operation* operation;
  bool* done;
};
/// The directions in which a rank connects to another when a group call first needs them.
struct Connection {
  bool sends = false, receives = false;
  std::shared_ptr<int> awaited;  // how many connections of the rank wait for their other end
};
struct Split {
  struct Wish {
    int color, key, rank;
  };
  std::vector<Wish> wishes;
};

/// State that the ranks of a communicator share.
struct Clique {
  std::size_t size = 0, given_back = 0;
  std::vector<int> devices;  // of the ranks that have joined; -1 for others
  std::map<std::uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::deque<Letter>> sends, receives;  // from, to
  std::map<std::pair<int, int>, std::deque<Connection>> connecting;   // rank, and the peer that has not connected yet
  std::map<std::uint64_t, Split> splits;
  std::map<std::pair<std::uint64_t, int>, std::shared_ptr<Clique>> parts;  // split, color

  [[nodiscard]] bool complete() const { return std::ranges::count(devices, -1) == 0; }
  void join(int rank, int device) {
    int& place = devices[static_cast<std::size_t>(rank)];
    if (place != -1) misuse("a rank joins a communicator a second time");
    place = device;
    everything().changed.notify_all();
  }
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool blocking = true;
  bool is_part = false;  // made by a split
  bool connected = false, finalizing = false, aborted = false;
  std::uint64_t collectives = 0, splits = 0;
  int running = 0;                        // group calls on streams
  int captures = 0;                       // captured collectives
  int captured = 0;                       // group calls held by graphs
  std::map<int, Connection> connections;  // by peer
  std::shared_ptr<int> awaited = std::make_shared<int>(0);
  std::map<const std::byte*, std::size_t> registrations;  // address to size in bytes

  // While a call is in progress: the polls that are left, and the launches to come or the result of a split.
  int looks = 0;
  std::vector<std::function<void()>> launches;
  ncclComm_t* part = nullptr;

  [[nodiscard]] bool in_progress() const { return !launches.empty() || part != nullptr; }
};

}  // namespace

Traffic traffic() {
  const std::lock_guard lock{everything().mutex};
  return traffic_of_all();
}

}  // namespace stand_in

struct ncclComm {
  std::shared_ptr<stand_in::Comm> state;
};

namespace stand_in {
namespace {

struct Library {
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by unique id
  std::set<ncclComm_t> comms;
  int ids = 0;
};
Library& library() {
  static Library& all = *new Library;
  return all;
}

ncclComm_t make(std::shared_ptr<Clique> clique, int rank, int device, bool blocking) {
  auto state = std::make_shared<Comm>();
  clique->join(rank, device);
  state->clique = std::move(clique);
  state->rank = rank;
  state->device = device;
  state->blocking = blocking;
  auto* const comm = new ncclComm{std::move(state)};
  library().comms.insert(comm);
  ++everything().live;
  return comm;
}

Comm& state_of(ncclComm_t comm) {
  if (comm == nullptr || !library().comms.contains(comm)) misuse("a communicator that was destroyed or aborted, or never made");
  return *comm->state;
}
/// As state_of(), but aborts if another call on the communicator is in progress, or if it was finalized.
Comm& idle_state_of(ncclComm_t comm) {
  Comm& state = state_of(comm);
  if (state.in_progress() || (!state.connected && !state.blocking))
    misuse("a call of NCCL while another one on that communicator is in progress");
  if (state.finalizing) misuse("a call of NCCL on a communicator that was finalized");
  return state;
}
/// Waits, as NCCL does, until no stream and no graph holds a call of the communicator. Then frees it.
void forget(ncclComm_t comm, Lock& lock) {
  Comm& state = state_of(comm);
  ++state.clique->given_back;
  everything().changed.notify_all();
  everything().changed.wait(lock, [&] {
    const bool is_last = !settings().frees_together || state.clique->given_back == state.clique->size;
    return state.captured == 0 && state.running == 0 && is_last;
  });
  everything().live -= 1 + static_cast<int>(state.registrations.size());
  library().comms.erase(comm);
  delete comm;
  everything().changed.notify_all();
}

void post(std::deque<Letter>& own, std::deque<Letter>& others, const Letter& letter) {
  if (others.empty()) return own.push_back(letter);
  const Letter other = others.front();
  others.pop_front();
  const Operation& send = letter.operation->kind == Kind::send ? *letter.operation : *other.operation;
  const Operation& receive = letter.operation->kind == Kind::send ? *other.operation : *letter.operation;
  if (send.count != receive.count || send.type != receive.type) misuse("a receive differs from its message in count or type");
  if ((send.capture < 0) != (receive.capture < 0)) misuse("a message of a graph is for a call that no graph makes");
  std::memmove(receive.out, send.in, send.count * size_of(send.type));
  *letter.done = *other.done = true;
  everything().changed.notify_all();
}

/// The messages of a group call with one peer. The first send and the first receive run together, then the second ones, and so on.
struct Messages {
  std::vector<const Operation*> sends, receives;
  std::size_t begun = 0;
  bool sent = true, received = true;  // whether the started ones are complete

  [[nodiscard]] bool has(const bool* flag) const { return flag == &sent || flag == &received; }
  /// Starts the messages that can start. Returns whether all are complete.
  bool advance(Clique& clique, int rank, int peer) {
    for (; sent && received && begun < std::max(sends.size(), receives.size()); ++begun) {
      const std::pair to{rank, peer}, from{peer, rank};
      sent = begun >= sends.size();
      received = begun >= receives.size();
      if (!sent) post(clique.sends[to], clique.receives[to], {sends[begun], &sent});
      if (!received) post(clique.receives[from], clique.sends[from], {receives[begun], &received});
    }
    return sent && received;
  }
};

/// The task of a group call on its stream. Messages run when they can, collectives in order. Returns when all are complete.
void run(Comm& comm, const std::vector<Operation>& operations, std::uint64_t first, Lock& lock) {
  if (comm.aborted) return;
  Clique& clique = *comm.clique;
  std::map<int, Messages> messages;  // by peer
  for (const Operation& each : operations)
    if (each.is_message()) {
      Messages& own = messages[each.peer];
      (each.kind == Kind::send ? own.sends : own.receives).push_back(&each);
    }
  const auto advance = [&] {
    bool over = true;
    for (auto& [peer, own] : messages) over = own.advance(clique, comm.rank, peer) && over;
    return over;
  };
  advance();
  for (const Operation& each : operations) {
    if (each.is_message() || comm.aborted) continue;
    const std::uint64_t number = first++;
    Meeting& meeting = clique.meetings[number];
    meeting.ranks.resize(clique.size);
    meeting.ranks[static_cast<std::size_t>(comm.rank)] = &each;
    if (++meeting.arrived == clique.size) {
      carry_out(meeting.ranks);
      meeting.over = true;
      everything().changed.notify_all();
    } else {
      everything().changed.wait(lock, [&] { return meeting.over || comm.aborted; });
      if (!meeting.over) --meeting.arrived;
    }
    if (meeting.over && --meeting.arrived == 0) clique.meetings.erase(number);
  }
  everything().changed.wait(lock, [&] { return comm.aborted || advance(); });
  for (auto* const letters : {&clique.sends, &clique.receives})
    for (auto& [way, queue] : *letters)
      std::erase_if(queue, [&](const Letter& letter) {
        return std::ranges::any_of(messages, [&](const auto& own) { return own.second.has(letter.done); });
      });
}

/// Connects two ranks for messages when a group call first needs the connection, as NCCL does. The group calls of both ranks must then need
/// the same connections.
void connect_for(Comm& comm, const std::vector<Operation>& operations) {
  std::map<int, Connection> wanted;
  for (const Operation& each : operations)
    if (each.is_message()) (each.kind == Kind::send ? wanted[each.peer].sends : wanted[each.peer].receives) = true;
  for (auto& [peer, want] : wanted) {
    Connection& have = comm.connections[peer];
    want.sends = want.sends && !std::exchange(have.sends, have.sends || want.sends);
    want.receives = want.receives && !std::exchange(have.receives, have.receives || want.receives);
    if (peer == comm.rank || (!want.sends && !want.receives)) continue;
    std::deque<Connection>& theirs = comm.clique->connecting[{peer, comm.rank}];
    if (theirs.empty()) {
      want.awaited = comm.awaited;
      ++*comm.awaited;
      comm.clique->connecting[{comm.rank, peer}].push_back(want);
      continue;
    }
    if (theirs.front().sends != want.receives || theirs.front().receives != want.sends)
      misuse("the first group calls with messages between two ranks need different connections on the two ranks");
    --*theirs.front().awaited;
    theirs.pop_front();
    everything().changed.notify_all();
  }
}

struct Pending {
  ncclComm_t comm;
  cudaStream_t stream;
  Operation operation;
};
struct Group {
  int depth = 0;
  std::vector<Pending> pending;
};
Group& group() {
  thread_local Group own;
  return own;
}

/// Launches a group call on the streams, at once or after enough polls of its state.
ncclResult_t launch(std::vector<Pending> pending, Lock& calling) {
  bool later = false;
  for (const Pending& each : pending)
    if (state_of(each.comm).blocking != state_of(pending.front().comm).blocking)
      misuse("a group call of communicators that block and of others that do not");
  while (!pending.empty()) {
    const ncclComm_t comm = pending.front().comm;
    Comm& state = idle_state_of(comm);
    const cudaStream_t stream = pending.front().stream;
    std::vector<Operation> operations;
    for (const Pending& each : pending)
      if (each.comm == comm) {
        if (each.stream != stream) misuse("one group call of a communicator on two streams");
        operations.push_back(each.operation);
      }
    std::erase_if(pending, [&](const Pending& each) { return each.comm == comm; });
    Stream& own = stream_of(stream);
    if (own.device != state.device) misuse("a communicator and its stream are of two devices");
    if (own.coming > 0) misuse("two calls in progress on one stream");
    connect_for(state, operations);
    const auto collectives =
        static_cast<std::uint64_t>(std::ranges::count_if(operations, [](const Operation& each) { return !each.is_message(); }));
    const auto begin = [shared = comm->state, collectives] {
      ++shared->running;
      return std::exchange(shared->collectives, shared->collectives + collectives);
    };
    const auto carry_out = [shared = comm->state](const std::vector<Operation>& all, std::uint64_t first, Lock& lock) {
      run(*shared, all, first, lock);
      --shared->running;
    };
    std::function<void()> put;
    if (own.captured != nullptr) {  // one call for each launch of the graph
      for (Operation& each : operations) each.capture = each.is_message() ? 0 : state.captures++;
      ++state.captured;
      const std::shared_ptr<void> held{nullptr, [shared = comm->state](void*) { --shared->captured; }};
      const auto firsts = std::make_shared<std::deque<std::uint64_t>>();
      own.captured->at_launch.push_back([begin, firsts, held] { firsts->push_back(begin()); });
      put = [carry_out, operations = std::move(operations), firsts, &own] {
        own.enqueue([carry_out, operations, firsts](Lock& lock) {
          const std::uint64_t first = firsts->front();
          firsts->pop_front();
          carry_out(operations, first, lock);
        });
      };
    } else {
      put = [carry_out, operations = std::move(operations), first = begin(), &own] {
        own.enqueue([carry_out, operations, first](Lock& lock) { carry_out(operations, first, lock); });
      };
    }
    const int looks = settings().looks_until_launched;
    if (state.blocking) everything().changed.wait(calling, [shared = comm->state] { return *shared->awaited == 0 || shared->aborted; });
    if (state.blocking || (looks == 0 && *state.awaited == 0)) {
      put();
      continue;
    }
    later = true;
    ++own.coming;
    state.looks = looks;
    state.launches.push_back([put, &own] {
      --own.coming;
      put();
    });
  }
  return later ? ncclInProgress : ncclSuccess;
}

/// The offset of the memory in a registration of the communicator, or `unregistered`.
std::ptrdiff_t place_in(const Comm& comm, const std::byte* memory) {
  const auto after = comm.registrations.upper_bound(memory);
  if (memory == nullptr || after == comm.registrations.begin()) return Operation::unregistered;
  const auto& [begin, bytes] = *std::prev(after);
  return memory < begin + bytes ? memory - begin : Operation::unregistered;
}

ncclResult_t call(ncclComm_t comm, cudaStream_t stream, Operation operation, std::size_t reads, std::size_t writes) {
  Lock lock{everything().mutex};
  const Comm& state = idle_state_of(comm);
  operation.in_at = place_in(state, operation.in);
  operation.out_at = place_in(state, operation.out);
  const auto ranks = state.clique->size;
  if (operation.count == 0) misuse("a call without elements");
  const std::size_t bytes = operation.count * size_of(operation.type);
  const auto check = [&](const void* memory, std::size_t shards) {
    const Block* const block = shards > 0 ? block_of(memory, shards * bytes) : nullptr;
    if (shards > 0 && (block == nullptr || block->pinned || block->device != state.device))
      misuse("memory that is not within one allocation of the communicator's device");
  };
  check(operation.in, reads);
  check(operation.out, writes);
  const bool has_peer = operation.is_message() || operation.kind == Kind::reduce || operation.kind == Kind::broadcast;
  if (has_peer && (operation.peer < 0 || operation.peer >= static_cast<int>(ranks)))
    misuse("a root or peer that the communicator does not have");
  const bool reduces = operation.kind == Kind::reduce || operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter;
  if (reduces != (operation.by < ncclNumOps)) misuse("a reduction without an operation");
  if (group().depth > 0) {
    group().pending.push_back({comm, stream, operation});
    return ncclSuccess;
  }
  return launch({{comm, stream, operation}}, lock);
}

template <class Memory>
std::byte* bytes_at(Memory* memory) {
  return static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(memory)));
}

void complete_split(Comm& parent, bool blocking) {
  const std::uint64_t number = parent.splits++;
  const Split& split = parent.clique->splits.at(number);
  const auto own = std::ranges::find(split.wishes, parent.rank, &Split::Wish::rank);
  std::vector<Split::Wish> members;
  for (const Split::Wish& wish : split.wishes)
    if (wish.color == own->color) members.push_back(wish);
  std::ranges::sort(members, {}, [](const Split::Wish& wish) { return std::pair{wish.key, wish.rank}; });
  std::shared_ptr<Clique>& clique = parent.clique->parts[{number, own->color}];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->size = members.size();
    clique->devices.assign(members.size(), -1);
  }
  const auto place = std::ranges::find(members, parent.rank, &Split::Wish::rank) - members.begin();
  *parent.part = make(clique, static_cast<int>(place), parent.device, blocking);
  (*parent.part)->state->is_part = true;
  parent.part = nullptr;
}

ncclResult_t initialise(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, bool blocking) {
  Lock lock{everything().mutex};
  if (rank < 0 || rank >= ranks) misuse("a rank that the communicator does not have");
  std::shared_ptr<Clique>& clique = library().cliques[std::string{id.internal, sizeof id.internal}];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->size = static_cast<std::size_t>(ranks);
    clique->devices.assign(clique->size, -1);
  }
  if (clique->size != static_cast<std::size_t>(ranks)) misuse("ranks join the same unique id with different world sizes");
  *comm = make(clique, rank, current_device(), blocking);
  if (!blocking) return ncclInProgress;
  everything().changed.wait(lock, [&] { return clique->complete(); });
  (*comm)->state->connected = true;
  return ncclSuccess;
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "an error of the stand-in";
  }
}
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetVersion(int* version) {
  *version = settings().nccl;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock{everything().mutex};
  *id = {};
  const std::string number = std::to_string(++library().ids);
  std::memcpy(id->internal, number.data(), number.size());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->magic != 0xcafebeefU) misuse("a configuration that was not initialised");
  return initialise(comm, ranks, id, rank, config->blocking != 0);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) { return initialise(comm, ranks, id, rank, true); }

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  Lock lock{everything().mutex};
  Comm& parent = idle_state_of(comm);
  if (group().depth > 0) misuse("a split within a group call");
  if (color < 0) misuse("a negative colour");
  if (config != nullptr && (config->magic != 0xcafebeefU || config->blocking != 0)) misuse("a split into communicators that block");
  const bool blocks = config == nullptr && parent.blocking;
  Split& split = parent.clique->splits[parent.splits];
  split.wishes.push_back({color, key, parent.rank});
  everything().changed.notify_all();
  *made = nullptr;
  parent.part = made;
  if (!parent.blocking) return ncclInProgress;
  everything().changed.wait(lock, [&] { return split.wishes.size() == parent.clique->size; });
  complete_split(parent, blocks);
  if (blocks) everything().changed.wait(lock, [clique = (*made)->state->clique] { return clique->complete(); });
  if (blocks) (*made)->state->connected = true;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock{everything().mutex};
  Comm& state = state_of(comm);
  *error = settings().error[static_cast<std::size_t>(state.device)];
  if (*error != ncclSuccess) return ncclSuccess;
  if (!state.connected && !state.clique->complete()) *error = ncclInProgress;
  if (!state.connected && state.clique->complete()) {
    state.connected = true;
    std::set<int> devices{state.clique->devices.begin(), state.clique->devices.end()};
    if (devices.size() < state.clique->size && settings().nccl < 23000) *error = ncclInvalidUsage;  // two ranks on one GPU
  }
  if (!state.launches.empty()) {
    *error = ncclInProgress;
    if (--state.looks < 0 && *state.awaited == 0) {
      for (const auto& put : state.launches) put();
      state.launches.clear();
      *error = ncclSuccess;
    }
  }
  if (state.part != nullptr) {
    if (!settings().splits_hang && state.clique->splits.at(state.splits).wishes.size() == state.clique->size)
      complete_split(state, false);
    else
      *error = ncclInProgress;
  }
  if (state.finalizing && (state.running > 0 || state.captured > 0)) *error = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Lock lock{everything().mutex};
  Comm& state = idle_state_of(comm);
  if (state.blocking && !state.is_part) misuse("pdp finalizes a communicator that it did not make");
  if (!state.registrations.empty()) misuse("a communicator is finalized before memory that is registered with it");
  state.finalizing = true;
  if (!state.blocking) return ncclInProgress;
  everything().changed.wait(lock, [&] { return state.running == 0 && state.captured == 0; });
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock{everything().mutex};
  Comm& state = state_of(comm);
  if (!state.blocking && !state.finalizing) misuse("a communicator is destroyed before it is finalized");
  if (state.running > 0) misuse("a communicator is destroyed while a call is on its stream");
  forget(comm, lock);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock{everything().mutex};
  Comm& state = state_of(comm);
  state.aborted = true;
  for (const auto& put : state.launches) put();  // they return at once, since the communicator is aborted
  state.launches.clear();
  if (state.part != nullptr) {  // the caller owns the unfinished group
    auto nobody_else = std::make_shared<Clique>();
    nobody_else->size = 1;
    nobody_else->devices.assign(1, -1);
    *std::exchange(state.part, nullptr) = make(std::move(nobody_else), 0, state.device, false);
  }
  forget(comm, lock);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const std::lock_guard lock{everything().mutex};
  *count = static_cast<int>(state_of(comm).clique->size);
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  const std::lock_guard lock{everything().mutex};
  *device = state_of(comm).device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  const std::lock_guard lock{everything().mutex};
  *rank = state_of(comm).rank;
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes, void** handle) {
  const std::lock_guard lock{everything().mutex};
  Comm& state = idle_state_of(comm);
  if (block_of(memory, bytes) == nullptr) misuse("memory is registered that is not device memory");
  if (settings().refuses_registration[static_cast<std::size_t>(state.device)]) return ncclInvalidUsage;
  if (!state.registrations.emplace(static_cast<std::byte*>(memory), bytes).second) misuse("memory is registered a second time");
  ++everything().live;
  *handle = memory;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  const std::lock_guard lock{everything().mutex};
  if (state_of(comm).registrations.erase(static_cast<std::byte*>(handle)) == 0) misuse("an unknown registration");
  --everything().live;
  return ncclSuccess;
}
ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  if (settings().full[static_cast<std::size_t>(current_device())]) return ncclUnhandledCudaError;
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* memory) {
  free_at_once(memory);
  return ncclSuccess;
}

ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  int rank = 0;
  ncclCommUserRank(comm, &rank);
  return call(comm, stream, {Kind::reduce, bytes_at(in), bytes_at(out), count, type, by, root}, 1, rank == root ? 1 : 0);
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  int rank = 0;
  ncclCommUserRank(comm, &rank);
  return call(comm, stream, {Kind::broadcast, bytes_at(in), bytes_at(out), count, type, ncclNumOps, root}, rank == root ? 1 : 0, 1);
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by, ncclComm_t comm,
                           cudaStream_t stream) {
  return call(comm, stream, {Kind::all_reduce, bytes_at(in), bytes_at(out), count, type, by}, 1, 1);
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by, ncclComm_t comm,
                               cudaStream_t stream) {
  int ranks = 0;
  ncclCommCount(comm, &ranks);
  return call(comm, stream, {Kind::reduce_scatter, bytes_at(in), bytes_at(out), count, type, by}, static_cast<std::size_t>(ranks), 1);
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  int ranks = 0;
  ncclCommCount(comm, &ranks);
  return call(comm, stream, {Kind::all_gather, bytes_at(in), bytes_at(out), count, type}, 1, static_cast<std::size_t>(ranks));
}
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, {Kind::send, bytes_at(in), nullptr, count, type, ncclNumOps, peer}, 1, 0);
}
ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return call(comm, stream, {Kind::receive, nullptr, bytes_at(out), count, type, ncclNumOps, peer}, 0, 1);
}
ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group().depth == 0) misuse("a group call ends that has not begun");
  if (--group().depth > 0) return ncclSuccess;
  Lock lock{everything().mutex};
  return launch(std::exchange(group().pending, {}), lock);
}
