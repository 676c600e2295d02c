// Measures how long a collective of Gloo takes over TCP, with the values, barriers, statistic and output of bench/collectives.
// run_collectives compiles and starts it.
//
//   gloo_collectives pinned|free RANKS OP CALLS BYTES...
//
// Starts its own ranks. Times at most CALLS calls of each size. A rank of Gloo has two threads, the caller's and the device's. "pinned"
// pins the caller's thread to the rank's core, and the device's thread to that of the next rank, if there are enough cores. With "free",
// the kernel chooses their cores. Either may be faster. OP is any of bench/collectives' but reduce_scatter, for which Gloo has another
// interface.

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/timing.hpp"

namespace {

using World = std::shared_ptr<gloo::Context>;

float value(std::size_t element, int rank) { return static_cast<float>((element % 1000 + 1) * static_cast<std::size_t>(rank + 1)); }

void sum(void* to, const void* left, const void* right, std::size_t count) {
  const auto *a = static_cast<const float*>(left), *b = static_cast<const float*>(right);
  auto* out = static_cast<float*>(to);
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

/// One op and its buffers: `whole` and `part` are as in bench/collectives.
class Trial {
 public:
  Trial(World world, std::string op, std::size_t bytes) : world_{std::move(world)}, op_{std::move(op)} {
    const auto ranks = static_cast<std::size_t>(world_->size);
    const bool sharded = op_ == "all_gather" || op_ == "gather" || op_ == "scatter" || op_ == "all_to_all";
    const std::size_t elements = op_ == "barrier" ? 0 : bytes / sizeof(float);
    whole_.resize(sharded ? std::max(ranks, elements / ranks * ranks) : elements);
    part_.resize(op_ == "all_to_all" || op_ == "send_recv" ? whole_.size() : whole_.size() / ranks);
  }

  [[nodiscard]] std::size_t bytes() const { return whole_.size() * sizeof(float); }

  void fill() {
    for (std::size_t i = 0; i < whole_.size(); ++i) whole_[i] = value(i, world_->rank);
    for (std::size_t i = 0; i < part_.size(); ++i) part_[i] = value(i, world_->rank);
  }

  void run() {
    constexpr int root = 0;
    const bool at_root = world_->rank == root;
    if (op_ == "all_reduce") {
      gloo::AllreduceOptions options{world_};
      options.setOutput(whole_.data(), whole_.size());
      options.setReduceFunction(&sum);
      gloo::allreduce(options);
    } else if (op_ == "reduce") {
      gloo::ReduceOptions options{world_};
      options.setOutput(whole_.data(), whole_.size());
      options.setReduceFunction(&sum);
      options.setRoot(root);
      gloo::reduce(options);
    } else if (op_ == "broadcast") {
      gloo::BroadcastOptions options{world_};
      options.setOutput(whole_.data(), whole_.size());
      options.setRoot(root);
      gloo::broadcast(options);
    } else if (op_ == "all_gather") {
      gloo::AllgatherOptions options{world_};
      options.setInput(part_.data(), part_.size());
      options.setOutput(whole_.data(), whole_.size());
      gloo::allgather(options);
    } else if (op_ == "gather") {
      gloo::GatherOptions options{world_};
      options.setInput(part_.data(), part_.size());
      if (at_root) options.setOutput(whole_.data(), whole_.size());
      options.setRoot(root);
      gloo::gather(options);
    } else if (op_ == "scatter") {
      gloo::ScatterOptions options{world_};
      std::vector<float*> shards;
      for (std::size_t begin = 0; at_root && begin < whole_.size(); begin += part_.size()) shards.push_back(whole_.data() + begin);
      if (at_root) options.setInputs(shards, part_.size());
      options.setOutput(part_.data(), part_.size());
      options.setRoot(root);
      gloo::scatter(options);
    } else if (op_ == "all_to_all") {
      gloo::AlltoallOptions options{world_};
      options.setInput(whole_.data(), whole_.size());
      options.setOutput(part_.data(), part_.size());
      gloo::alltoall(options);
    } else if (op_ == "send_recv") {
      constexpr std::uint64_t slot = 1 << 20;
      const auto out = world_->createUnboundBuffer(whole_.data(), bytes()), in = world_->createUnboundBuffer(part_.data(), bytes());
      out->send((world_->rank + 1) % world_->size, slot);
      in->recv((world_->rank + world_->size - 1) % world_->size, slot);
      out->waitSend(world_->getTimeout());
      in->waitRecv(world_->getTimeout());
    } else {
      barrier();
    }
  }

  void barrier() {
    gloo::BarrierOptions options{world_};
    gloo::barrier(options);
  }

  /// Checks the results after fill() and run().
  void check() const {
    const int rank = world_->rank, size = world_->size;
    const std::size_t shard = part_.size(), begin = shard * static_cast<std::size_t>(rank),
                      cut = whole_.size() / static_cast<std::size_t>(size);
    if (op_ == "all_reduce" || (op_ == "reduce" && rank == 0))
      expect(whole_, [&](std::size_t i) { return value(i, 0) * static_cast<float>(size * (size + 1) / 2); });
    if (op_ == "broadcast") expect(whole_, [](std::size_t i) { return value(i, 0); });
    if (op_ == "all_gather" || (op_ == "gather" && rank == 0))
      expect(whole_, [&](std::size_t i) { return value(i % shard, static_cast<int>(i / shard)); });
    if (op_ == "scatter") expect(part_, [&](std::size_t i) { return value(begin + i, 0); });
    if (op_ == "send_recv") expect(part_, [&](std::size_t i) { return value(i, (rank + size - 1) % size); });
    if (op_ == "all_to_all")
      expect(part_, [&](std::size_t i) { return value(cut * static_cast<std::size_t>(rank) + i % cut, static_cast<int>(i / cut)); });
  }

 private:
  template <class F>
  void expect(const std::vector<float>& found, const F& expected) const {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] != expected(i))
        throw std::runtime_error{op_ + " of " + std::to_string(bytes()) + " bytes on rank " + std::to_string(world_->rank) + ": element " +
                                 std::to_string(i) + " should be " + std::to_string(expected(i)) + ", but it is " +
                                 std::to_string(found[i])};
  }

  World world_;
  std::string op_;
  std::vector<float> whole_, part_;
};

void measure(const World& world, const std::string& op, int most, std::size_t size) {
  Trial trial{world, op, size};
  const int warm_up = 3, count = std::min(most, static_cast<int>(std::clamp<std::size_t>((std::size_t{64} << 20) / (size + 1), 9, 2000)));
  std::vector<double> times;
  for (int i = -warm_up; i < count; ++i) {
    trial.fill();
    if (size >= 256 * 1024) trial.barrier();  // smaller calls synchronise the ranks well enough themselves
    const double begin = bench::now_us();
    trial.run();
    times.push_back(bench::now_us() - begin);
    if (i < 0 || i + 1 == count) trial.check();
    if (i == -1) times.clear();
  }
  if (world->rank == 0) {
    std::printf("{\"backend\": \"gloo\", \"op\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"allocated\": false, \"median_us\": %.3f}\n",
                op.c_str(), world->size, trial.bytes(), bench::median(times));
    std::fflush(stdout);
  }
}

/// Runs one rank. Returns 0 on success, else 1.
int run_rank(int rank, int ranks, bool pinned, const std::string& folder, const std::string& op, int calls,
             const std::vector<std::size_t>& sizes) {
  try {
    gloo::rendezvous::FileStore store{folder};
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(where);
    const auto world = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    world->connectFullMesh(store, device);
    if (pinned) {
      bench::pin_others(rank, ranks);
      bench::pin(rank, ranks);
    }
    for (const std::size_t size : sizes) measure(world, op, calls, size);
    Trial{world, "barrier", 0}.barrier();  // so that no rank closes its sockets while another still reads
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_collectives: %s\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> known = {"all_reduce", "reduce",     "broadcast", "all_gather", "gather",
                                          "scatter",    "all_to_all", "send_recv", "barrier"};
  const std::string where = argc > 1 ? argv[1] : "";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 0, calls = argc > 4 ? std::atoi(argv[4]) : 0;
  if (argc < 6 || (where != "pinned" && where != "free") || ranks < 1 || calls < 1 || std::ranges::find(known, argv[3]) == known.end()) {
    std::fprintf(
        stderr,
        "usage: gloo_collectives pinned|free RANKS OP CALLS BYTES...; OP is any operation of bench/collectives except reduce_scatter\n");
    return 2;
  }
  std::vector<std::size_t> sizes;
  for (int i = 5; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));

  std::string folder = (std::filesystem::temp_directory_path() / "gloo_collectives_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("gloo_collectives: mkdtemp");
    return 1;
  }
  std::vector<pid_t> children;
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) std::perror("gloo_collectives: fork");
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a rank that outlives its parent would distort all later measurements
    if (getppid() != parent) _exit(1);
    _exit(run_rank(rank, ranks, where == "pinned", folder, argv[3], calls, sizes));
  }
  bool failed = std::ranges::find(children, -1) != children.end();
  while (!children.empty()) {
    if (failed)
      for (const pid_t child : children)
        if (child > 0) kill(child, SIGKILL);
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) break;
    if (status != 0) failed = true;
    std::erase(children, ended);
  }
  std::filesystem::remove_all(folder);
  return failed ? 1 : 0;
}
