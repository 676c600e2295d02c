// The program that the tests of comm::Mpi start as ranks. The first argument is its mode. Ranks print what they find wrong, and the program
// returns 1.
#include <pdp/comm/any.hpp>
#include <pdp/comm/checked.hpp>
#include <pdp/comm/mpi.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "comm/behaviour.hpp"
#include "comm/conformance.hpp"
#include "strategy/tasks.hpp"

namespace comm = pdp::comm;
using pdp::text;
using namespace std::chrono_literals;

namespace {

std::atomic<long> allocations{0};

}  // namespace

// Counts the allocations of pdp. MPI libraries are C and do not call operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

int tell(const comm::Mpi& world, const Findings& findings) {
  for (const std::string& each : findings.found()) std::fprintf(stderr, "rank %d of %d: %s\n", world.rank(), world.size(), each.c_str());
  return findings.found().empty() ? 0 : 1;
}

/// Calls f(part) on the first `ranks` ranks, which form a group.
template <class F>
void on_first(comm::Mpi& world, int ranks, F&& f) {
  comm::Mpi part = world.split(world.rank() < ranks ? 0 : 1, 0);
  if (world.rank() < ranks) f(part);
}

int conformance_on_all_sizes(comm::Mpi& world) {
  Findings findings;
  for (int ranks = 1; ranks <= world.size(); ++ranks)
    on_first(world, ranks, [&](comm::Mpi& part) { conformance::every_call(part, findings); });
  return tell(world, findings);
}

/// Runs the conformance tests through Any, through Checked, and with at most 100 elements in each call of an MPI function.
int conformance_of_wrapped(comm::Mpi& world) {
  Findings findings;
  comm::Any any{world.split(0, 0)};
  conformance::every_verb<float>(any, findings);
  conformance::uneven_shards<std::int32_t>(any, findings, 3);
  findings.expect(any.name() == "mpi", "its name");
  comm::Checked checked{world.split(0, 0)};
  conformance::every_verb<float>(checked, findings);
  conformance::uneven_shards<std::int64_t>(checked, findings, 2);
  comm::BasicCommunicator<comm::MpiCalls> pieces{comm::MpiCalls{comm::mpi::Session::adopt(), MPI_COMM_WORLD, 100}};
  conformance::every_verb<float>(pieces, findings);
  conformance::every_verb<std::byte>(pieces, findings);
  conformance::sums_of<pdp::BFloat16, comm::Sum, comm::Max, comm::Average>(pieces, findings);
  for (const std::size_t base : {std::size_t{0}, std::size_t{60}, std::size_t{500}})
    conformance::uneven_shards<float>(pieces, findings, base);
  return tell(world, findings);
}

int behaviour_on_all_sizes(comm::Mpi& world) {
  Findings findings;
  for (int ranks = 1; ranks <= world.size(); ++ranks)
    on_first(world, ranks, [&](comm::Mpi& part) {
      behaviour::split_groups(part, findings);
      behaviour::memory(part, findings);
      if (ranks >= 2) behaviour::works_in_any_order(part, findings);
      if (ranks == 2) {
        behaviour::two_groups(part, findings);
        behaviour::progress(part, findings);
        behaviour::moves_in_flight(part, findings);
      }
      if (ranks == 3) {
        behaviour::looks(part, findings, 1);
        behaviour::looks(part, findings, 300'007);
        behaviour::started_together(part, findings);
        behaviour::tags(part, findings);
        behaviour::late_ranks(part, findings);
      }
    });
  return tell(world, findings);
}

template <class T>
void same_bits(comm::Mpi& world, Findings& findings) {
  for (const std::size_t count :
       {std::size_t{255}, std::size_t{4096}, std::size_t{4097}, std::size_t{PDP_TEST_SANITIZED ? 70'007 : 300'007}}) {
    const auto brought = pdp::testing::normal(count, /*seed*/ world.rank());
    std::vector<T> values;
    for (const float each : brought) values.push_back(static_cast<T>(each));
    world.all_reduce(values, comm::Sum{});
    std::vector<T> first = values;
    world.broadcast(first, 0);
    findings.expect(std::memcmp(first.data(), values.data(), count * sizeof(T)) == 0,
                    text("the bits of rank 0, all_reduce of ", count, " ", pdp::name(pdp::dtype_of<T>)));
    if constexpr (std::same_as<T, float>)
      findings.expect(pdp::testing::relative_difference(values, pdp::testing::serial_sum(world.size(), count)) < 1e-6, "the sum");
  }
}

/// Makes calls of each kind once, then counts the allocations of further rounds.
int count_allocations(comm::Mpi& world) {
  std::vector<float> values(1000), whole(1000 * static_cast<std::size_t>(world.size()));
  std::vector<std::size_t> counts(static_cast<std::size_t>(world.size()), 1000);
  const int right = (world.rank() + 1) % world.size(), left = (world.rank() + world.size() - 1) % world.size();
  std::vector<float> other(whole.size()), halves(1000);
  std::vector<pdp::BFloat16> half(1000);
  const auto calls = [&] {
    world.all_reduce(values, comm::Sum{});
    world.all_reduce(half, comm::Average{});
    auto one = world.all_reduce_async(values, comm::Average{}), two = world.all_reduce_async(half, comm::Max{});
    two.wait();
    one.wait();
    world.barrier();
    world.reduce(values, comm::Sum{}, 0);
    world.broadcast_async(values, 0).wait();
    world.reduce_scatter(whole, values, comm::Sum{});
    world.reduce_scatter_async(whole, std::span{whole}.subspan(1000 * static_cast<std::size_t>(world.rank()), 1000), counts, comm::Sum{})
        .wait();
    world.all_gather_async(values, whole, counts).wait();
    world.gather(values, whole, counts, 0);
    world.scatter(whole, values, 0);
    world.all_to_all(whole, counts, other, counts);
    world.send_recv(values, right, halves, left);
    world.progress();
  };
  calls();
  const long before = allocations;
  for (int i = 0; i < 10; ++i) calls();
  const long after = allocations;
  Findings findings;
  findings.expect(after == before, text(after - before, " allocations in calls like earlier ones"));
  return tell(world, findings);
}

/// Invalid arguments throw, and the world remains usable. Tests of other backends check this case by case (arguments.hpp).
int refusals(comm::Mpi& world) {
  Findings findings;
  std::vector<float> values(4);
  std::vector<int> whole_numbers(4);
  const int other = (world.rank() + 1) % world.size();
  const auto refuses = [&]<class E>(std::type_identity<E>, const std::string& words, auto&& call) {
    try {
      call();
      findings.expect(false, "nothing was thrown instead of: " + words);
    } catch (const E& error) {
      findings.expect(std::string{error.what()}.find(words) != std::string::npos, text(error.what(), " instead of: ", words));
    }
  };
  constexpr std::type_identity<pdp::ConfigError> config;
  constexpr std::type_identity<pdp::ShapeError> shape;
  refuses(config, text("broadcast on rank ", world.rank(), " names root ", world.size()), [&] { world.broadcast(values, world.size()); });
  refuses(config, "gather on rank", [&] { world.gather(values, values, -1); });
  refuses(config, "itself; copy the values", [&] { world.send(values, world.rank()); });
  refuses(config, "tags are 0 or more", [&] { world.send(values, other, -1); });
  refuses(config, text("tag ", std::numeric_limits<int>::max(), ": this MPI library has tags 0 to"),
          [&] { world.send(values, other, std::numeric_limits<int>::max()); });
  refuses(config, "reads and writes the same memory", [&] { world.all_to_all(whole_numbers, whole_numbers); });
  refuses(shape, "and receives int32; both must be of one type", [&] { world.send_recv(values, other, whole_numbers, other); });
  refuses(shape, " shards of 4), but it has 3", [&] { world.all_gather(values, std::span{values}.first(3)); });
  refuses(shape, text("was given 9 counts for ", world.size(), " ranks"),
          [&] { world.all_gather(values, values, std::vector<std::size_t>(9, 1)); });
  values.assign(4, 1);
  world.all_reduce(values, comm::Sum{});
  findings.expect(values[3] == static_cast<float>(world.size()), "the world goes on");

  comm::Checked checked{world.split(0, 0)};
  for (const char* call : {"this one", "every one after it"}) try {
      std::vector<float> brought(world.rank() == 1 ? 9 : 8);
      checked.all_reduce(brought, comm::Sum{});
      findings.expect(false, text("all_reduce of different sizes threw nothing: ", call));
    } catch (const pdp::MismatchedCollective& error) {
      const std::string what = error.what();
      findings.expect(what.find("all_reduce of 8 float32 on rank 0") != std::string::npos &&
                          what.find("all_reduce of 9 float32 on rank 1") != std::string::npos,
                      what);
    }
  return tell(world, findings);
}

/// The loss of each step of a fit.
template <class Comm, class Strategy>
std::vector<double> losses(Comm& world, const Strategy& strategy) {
  std::vector<double> found;
  pdp::Trainer trainer{world, strategy, tasks::classifier, {.global_batch = 30, .seed = 1}};
  trainer.fit(
      tasks::samples(100), {.epochs = 3}, [](const pdp::Epoch&) {},
      [&](std::int64_t, const auto& totals) { found.push_back(totals.mean_loss()); });
  return found;
}
int training(comm::Mpi& world) {
  Findings findings;
  comm::Self alone;
  const std::vector<double> single = losses(alone, pdp::strategy::Single{}), parallel = losses(world, pdp::strategy::DataParallel{});
  findings.expect(single.size() == parallel.size() && single.size() == 12, "steps");
  for (std::size_t step = 0; step < std::min(single.size(), parallel.size()); ++step)
    findings.expect(std::abs(parallel[step] - single[step]) <= 1e-5 * single[step],
                    text("step ", step, ": the loss is ", parallel[step], ", but that of one rank is ", single[step]));
  return tell(world, findings);
}

/// Transfers more elements than an int can count.
int large_counts(comm::Mpi& world) {
  Findings findings;
  const std::size_t count = (std::size_t{1} << 31) + 11;
  world.deadline(5min);
  std::vector<std::int8_t> values(count, static_cast<std::int8_t>(world.rank() + 1));
  world.all_reduce(values, comm::Sum{});
  const auto sum = static_cast<std::int8_t>(world.size() * (world.size() + 1) / 2);
  findings.expect(values.front() == sum && values.back() == sum && std::ranges::count(values, sum) == static_cast<std::ptrdiff_t>(count),
                  "all_reduce");
  values.back() = static_cast<std::int8_t>(40 + world.rank());
  values.front() = 3;
  if (world.rank() == 0) world.send(values, 1);
  if (world.rank() == 1) world.recv(values, 0);
  findings.expect(world.rank() > 1 || (values.back() == 40 && values.front() == 3 && values[count / 2] == sum), "a message");
  return tell(world, findings);
}

/// Fails on rank 1 as `mode` says. The failure must end the job.
int go_wrong(const std::string& mode, comm::Mpi& world) {
  const int rank = world.rank();
  std::vector<float> values(9);
  world.barrier();
  if (mode == "long message" || mode == "short message") {
    if (rank == 0) world.send(std::span{values}.first(mode == "long message" ? 9 : 7), 1, 4);
    if (rank == 1) world.recv(std::span{values}.first(8), 0, 4);
  }
  if (rank == 1) {
    if (mode == "throw") throw pdp::FileError{"the file cannot be read"};
    if (mode == "throw usage") throw pdp::UsageError{"the flag is unknown"};
    if (mode == "exit") std::exit(7);
    if (mode == "return") return 9;
    if (mode == "kill") std::abort();
    if (mode == "abort") world.abort("that is enough");
    if (mode == "let go") static_cast<void>(world.all_reduce_async(values, comm::Sum{}));
    if (mode == "let go and throw") {
      const auto work = world.all_reduce_async(values, comm::Sum{});
      throw pdp::FileError{"the file cannot be read"};
    }
    world.deadline(300ms);
    if (mode == "wait for a message") world.recv(values, 0, 3);
    if (mode == "wait for a collective") world.all_reduce_async(values, comm::Sum{}).wait();
    if (mode == "use after a timeout") {
      std::string first;
      try {
        world.recv(values, 0);
      } catch (const pdp::Timeout& error) {
        first = error.what();
      }
      try {
        world.barrier();
      } catch (const pdp::Timeout& error) {
        throw pdp::FileError{text(first == error.what() ? "again: " : "something else: ", error.what())};
      }
    }
  } else if (mode == "return") {
    return 0;
  }
  std::this_thread::sleep_for(1min);  // much longer than the job may live
  throw pdp::Error{text("the job goes on after '", mode, "'")};
}

/// A program with a main of its own, which prints the error of rank 1 itself.
int join() try {
  auto world = pdp::launch::join<comm::Mpi>();
  world.barrier();
  if (world.rank() == 1) throw pdp::FileError{"the file cannot be read"};
  world.barrier();
  return 0;
} catch (const std::exception& error) {
  std::this_thread::sleep_for(100ms);
  std::fprintf(stderr, "main says: %s\n", error.what());
  return 3;
}

/// A program that initialises MPI itself and lends pdp its communicator.
int adopt(int argc, char** argv) {
  std::vector<std::string> wrong;
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds) wrong.push_back(what);
  };
  const auto refused = [](MPI_Comm communicator) -> std::string {
    try {
      comm::Mpi{communicator};
    } catch (const pdp::ConfigError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  expect(refused(MPI_COMM_WORLD).find("needs MPI to be running in this process") != std::string::npos, "adopted before MPI runs");
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  expect(refused(MPI_COMM_NULL).find("MPI_COMM_NULL") != std::string::npos, "adopted no communicator");
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Errhandler handler_before = MPI_ERRHANDLER_NULL, handler_after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(half, &handler_before);
  std::optional<comm::Mpi> outlives;
  comm::Registered<float> memory;
  {
    comm::Mpi world{half};
    memory = world.allocate<float>(10);
    int theirs = -1;
    MPI_Comm_rank(half, &theirs);
    expect(world.rank() == theirs && world.size() == (size + 1 - rank % 2) / 2, "ranks of the half");
    Findings findings;
    conformance::every_verb<float>(world, findings);
    for (const std::string& each : findings.found()) wrong.push_back(each);
    // A message of the program is not mistaken for one of pdp.
    if (world.size() >= 2) {
      int own = 5, got = 0;
      const int tag = 3;
      if (theirs == 0) {
        MPI_Request sending = MPI_REQUEST_NULL;
        MPI_Isend(&own, 1, MPI_INT, 1, tag, half, &sending);
        world.send(std::vector{7}, 1, tag);
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
      } else if (theirs == 1) {
        std::vector<int> received(1);
        world.recv(received, 0, tag);
        MPI_Recv(&got, 1, MPI_INT, 0, tag, half, MPI_STATUS_IGNORE);
        expect(received[0] == 7 && got == 5, "two communicators");
      }
    }
    outlives.emplace(half);
  }
  // join() also works if the program has initialised MPI itself.
  {
    auto world = pdp::launch::join<comm::Mpi>();
    expect(world.size() == size && world.rank() == rank, "the world that was joined");
    world.barrier();
  }
  int ended = 0;
  MPI_Finalized(&ended);
  expect(ended == 0, "MPI still runs");
  MPI_Comm_get_errhandler(half, &handler_after);
  expect(handler_before == handler_after, "the program's error handler");
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Finalize();
  outlives.reset();
  memory = {};
  for (const std::string& each : wrong) std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, each.c_str());
  return wrong.empty() ? 0 : 1;
}

template <class World>
int sum(World& world, std::string_view name) {
  std::vector<int> ranks{world.rank() + 1};
  world.all_reduce(ranks, comm::Sum{});
  if (world.rank() == 0) std::printf("%.*s: %d ranks, sum %d\n", static_cast<int>(name.size()), name.data(), world.size(), ranks[0]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "sum";
  if (mode == "adopt") return adopt(argc, argv);
  if (mode == "join") return join();
  if (mode == "several")
    return pdp::launch::run<comm::Tcp, comm::Mpi>(argc, argv, [](comm::Any& world) { return sum(world, world.name()); });
  return pdp::launch::run<comm::Mpi>(argc, argv, [&](comm::Mpi& world) {
    world.deadline(20s);
    if (mode == "sum") return sum(world, "mpi");
    if (mode == "conformance") return conformance_on_all_sizes(world);
    if (mode == "wrapped") return conformance_of_wrapped(world);
    if (mode == "behaviour") return behaviour_on_all_sizes(world);
    if (mode == "allocations") return count_allocations(world);
    if (mode == "refusals") return refusals(world);
    if (mode == "training") return training(world);
    if (mode == "large") return large_counts(world);
    if (mode == "same bits") {
      Findings findings;
      same_bits<float>(world, findings);
      same_bits<double>(world, findings);
      same_bits<pdp::Float16>(world, findings);
      same_bits<pdp::BFloat16>(world, findings);
      return tell(world, findings);
    }
    return go_wrong(mode, world);
  });
}
