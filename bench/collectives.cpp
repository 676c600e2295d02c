// Measures how long a collective takes on one backend, if the ranks do nothing else.
//
//   collectives --backend shm|tcp|thread|gloo|gloo-direct [--op all_reduce|...] [--ranks N] [--bytes N[,N...]] [--calls N] [--allocated]
//   mpirun -n N collectives --backend mpi|mpi-direct ...    if MPI was found
//
// A "-direct" backend calls the library's own functions directly, without pdp.
//
// Times 2000 calls of small sizes, fewer of larger sizes (at least 9), but at most --calls. Prints one JSON object for each size: backend,
// op, ranks, bytes (of the whole buffer on each rank, all shards together), allocated (whether the communicator allocated the buffers), and
// median_us on rank 0. Buffers are filled anew before each call, so that values must travel from core to core. Results are checked.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "backends.hpp"
#include "common/timing.hpp"

namespace {

namespace comm = pdp::comm;
using pdp::launch::parse_number;

struct Settings {
  std::string backend = "shm", op = "all_reduce";
  int ranks = 2;
  int calls = 2000;                // limit for each size
  std::vector<std::size_t> bytes;  // empty: all_sizes
  bool allocated = false;
};

constexpr std::size_t all_sizes[] = {4, 1024, 16 * 1024, 256 * 1024, 1792 * 1024, 4 << 20, 16 << 20, 64 << 20};
constexpr std::string_view all_ops[] = {"all_reduce", "reduce",  "broadcast",  "reduce_scatter", "all_gather",
                                        "gather",     "scatter", "all_to_all", "send_recv",      "barrier"};

/// Returns an element of a rank's values. They differ between ranks, and their sum over ranks is exact.
float value(std::size_t element, int rank) { return static_cast<float>((element % 1000 + 1) * static_cast<std::size_t>(rank + 1)); }

/// One op and its buffers. For ops with shards, `whole` has one shard for each rank, and `part` is one shard. For all_to_all and send_recv,
/// `part` has the size of `whole`.
template <class Comm>
class Trial {
 public:
  Trial(Comm& world, std::string_view op, std::size_t bytes, bool allocated) : world_{world}, op_{op} {
    const auto ranks = static_cast<std::size_t>(world.size());
    const bool sharded = op == "reduce_scatter" || op == "all_gather" || op == "gather" || op == "scatter" || op == "all_to_all";
    const std::size_t elements = op == "barrier" ? 0 : bytes / sizeof(float);
    const std::size_t whole = sharded ? std::max(ranks, elements / ranks * ranks) : elements;
    const std::size_t part = op == "all_to_all" || op == "send_recv" ? whole : whole / ranks;
    if (allocated)
      allocated_ = world.template allocate<float>(whole + part);
    else
      own_.resize(whole + part);
    const std::span<float> both = allocated ? allocated_.span() : std::span{own_};
    whole_ = both.first(whole);
    part_ = both.subspan(whole);
  }

  [[nodiscard]] std::size_t bytes() const { return whole_.size() * sizeof(float); }

  void fill() {
    const int rank = world_.rank();
    for (std::size_t i = 0; i < whole_.size(); ++i) whole_[i] = value(i, rank);
    for (std::size_t i = 0; i < part_.size(); ++i) part_[i] = value(i, rank);
  }

  void run() {
    constexpr int root = 0;
    if (op_ == "all_reduce") return world_.all_reduce(whole_, comm::Sum{});
    if (op_ == "reduce") return world_.reduce(whole_, comm::Sum{}, root);
    if (op_ == "broadcast") return world_.broadcast(whole_, root);
    if (op_ == "reduce_scatter") return world_.reduce_scatter(whole_, part_, comm::Sum{});
    if (op_ == "all_gather") return world_.all_gather(part_, whole_);
    if (op_ == "gather") return world_.gather(part_, whole_, root);
    if (op_ == "scatter") return world_.scatter(whole_, part_, root);
    if (op_ == "all_to_all") return world_.all_to_all(whole_, part_);
    if (op_ == "barrier") return world_.barrier();
    if (world_.size() == 1) return;
    world_.send_recv(whole_, (world_.rank() + 1) % world_.size(), part_, (world_.rank() + world_.size() - 1) % world_.size());
  }

  /// Checks the results after fill() and run().
  void check() const {
    const int rank = world_.rank(), size = world_.size();
    const auto sum = [size](std::size_t i) { return value(i, 0) * static_cast<float>(size * (size + 1) / 2); };
    const std::size_t shard = part_.size(), begin = shard * static_cast<std::size_t>(rank);
    if (op_ == "all_reduce" || (op_ == "reduce" && rank == 0)) return expect(whole_, sum);
    if (op_ == "broadcast") return expect(whole_, [](std::size_t i) { return value(i, 0); });
    if (op_ == "reduce_scatter") return expect(part_, [&](std::size_t i) { return sum(begin + i); });
    if (op_ == "all_gather" || (op_ == "gather" && rank == 0))
      return expect(whole_, [&](std::size_t i) { return value(i % shard, static_cast<int>(i / shard)); });
    if (op_ == "scatter") return expect(part_, [&](std::size_t i) { return value(begin + i, 0); });
    if (op_ == "send_recv" && size > 1) return expect(part_, [&](std::size_t i) { return value(i, (rank + size - 1) % size); });
    const std::size_t cut = whole_.size() / static_cast<std::size_t>(size);
    if (op_ == "all_to_all")
      return expect(part_, [&](std::size_t i) { return value(cut * static_cast<std::size_t>(rank) + i % cut, static_cast<int>(i / cut)); });
  }

 private:
  template <class F>
  void expect(std::span<const float> found, const F& expected) const {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] != expected(i))
        throw pdp::Error{pdp::text(op_, " of ", bytes(), " bytes on rank ", world_.rank(), ": element ", i, " should be ", expected(i),
                                   ", but it is ", found[i])};
  }

  Comm& world_;
  std::string_view op_;
  std::vector<float> own_;
  comm::Registered<float> allocated_;
  std::span<float> whole_, part_;
};

template <class Comm>
void measure(Comm& world, const Settings& settings) {
  if (settings.backend.starts_with("gloo")) bench::pin_others(world.rank(), world.size());
  bench::pin(world.rank(), world.size());
  std::vector<std::size_t> sizes(std::begin(all_sizes), std::end(all_sizes));
  if (!settings.bytes.empty()) sizes = settings.bytes;
  if (settings.op == "barrier") sizes = {0};
  for (const std::size_t size : sizes) {
    Trial trial{world, settings.op, size, settings.allocated};
    const int warm_up = 3;
    const int count = std::min(settings.calls, static_cast<int>(std::clamp<std::size_t>((std::size_t{64} << 20) / (size + 1), 9, 2000)));
    std::vector<double> times;
    for (int i = -warm_up; i < count; ++i) {
      trial.fill();
      if (size >= 256 * 1024) world.barrier();  // smaller calls synchronise the ranks well enough themselves
      const double begin = bench::now_us();
      trial.run();
      times.push_back(bench::now_us() - begin);
      if (i < 0 || i + 1 == count) trial.check();
      if (i == -1) times.clear();
    }
    pdp::print(world, "{{\"backend\": \"{}\", \"op\": \"{}\", \"ranks\": {}, \"bytes\": {}, \"allocated\": {}, \"median_us\": {:.3f}}}",
               settings.backend, settings.op, world.size(), trial.bytes(), settings.allocated, bench::median(times));
  }
}

template <class... Comms>
constexpr auto names_of(bench::List<Comms...>) {
  return std::array<std::string_view, sizeof...(Comms)>{Comms::name...};
}

/// Runs the program on the backend that the settings name, on as many ranks as they say, or as the backend's own launcher has started.
template <class... Comms, class F>
int run_on(bench::List<Comms...>, const Settings& settings, F& program) {
  int code = 2;
  const auto run_if_meant = [&]<class Comm>(std::type_identity<Comm>) {
    if (settings.backend != Comm::name) return;
    pdp::launch::Options options;
    if constexpr (!pdp::launch::HasLauncher<Comm>) options.ranks = settings.ranks;
    code = pdp::launch::run<Comm>(options, program);
  };
  (run_if_meant(std::type_identity<Comms>{}), ...);
  return code;
}

Settings parse(int argc, char** argv) {
  constexpr const char* usage =
      "; usage: collectives --backend shm|tcp|thread|gloo|mpi|... [--op all_reduce|...] [--ranks N] [--bytes N[,N...]] [--calls N] "
      "[--allocated]";
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--allocated") {
      settings.allocated = true;
      continue;
    }
    if (word != "--backend" && word != "--op" && word != "--ranks" && word != "--bytes" && word != "--calls")
      throw pdp::UsageError{pdp::text("unknown argument ", word, usage)};
    if (++i == argc || *argv[i] == '\0') throw pdp::UsageError{pdp::text(word, " must be followed by its value", usage)};
    if (word == "--backend") settings.backend = argv[i];
    if (word == "--op") settings.op = argv[i];
    if (word == "--ranks") settings.ranks = parse_number(word, argv[i], 1, pdp::launch::most_local_ranks);
    if (word == "--calls") settings.calls = parse_number(word, argv[i], 1, 1'000'000'000);
    if (word == "--bytes")
      for (const auto size : std::views::split(std::string_view{argv[i]}, ','))
        settings.bytes.push_back(parse_number<std::size_t>(word, std::string_view{size.begin(), size.end()}, 4, std::size_t{1} << 36));
  }
  if (std::ranges::find(all_ops, settings.op) == std::end(all_ops)) {
    std::string names;
    for (const std::string_view op : all_ops) names += pdp::text(names.empty() ? "" : ", ", op);
    throw pdp::UsageError{pdp::text("--op ", settings.op, " is unknown; use one of ", names)};
  }
  constexpr auto known = names_of(bench::Backends{});
  if (settings.backend != "thread" && std::ranges::find(known, settings.backend) == known.end()) {
    std::string names;
    for (const std::string_view name : known) names += pdp::text(name, ", ");
    throw pdp::UsageError{pdp::text("--backend ", settings.backend, " is unknown, or not in this build; use ", names, "or thread")};
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  try {
    settings = parse(argc, argv);
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  const auto program = [&](auto& world) { measure(world, settings); };
  if (settings.backend == "thread") return pdp::launch::run<comm::Shm>({.threads = settings.ranks}, program);
  return run_on(bench::Backends{}, settings, program);
}
