// Measures each algorithm for all-reduce over TCP, and makes the table by which pdp chooses among them.
//
//   tune [--ranks N] [--calls N] [--write include/pdp/comm/message/algorithm/table.hpp]
//   srun -N 4 -n 16 tune ...      on the network and with the ranks that the table is for
//
// Measures groups of the first 2, 3, 4, 6, 8, 12, 16, ... ranks, up to all of them. Prints one JSON object for each group and size: ranks,
// bytes, and the median in us of each algorithm; then the rows of the table. --write replaces the rows in the header and leaves its other
// lines unchanged. Afterwards, everything that runs together must be rebuilt: ranks with different tables refuse each other.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <pdp/comm/message/algorithm/table.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/timing.hpp"

namespace {

namespace comm = pdp::comm;
using comm::algorithm::AllReduce;
using comm::algorithm::Choice;
using pdp::launch::parse_number;

constexpr std::array algorithms{AllReduce::one_shot, AllReduce::recursive_doubling, AllReduce::rabenseifner, AllReduce::ring};
constexpr std::string_view name(AllReduce algorithm) { return comm::algorithm::all_reduce_names[static_cast<std::size_t>(algorithm)]; }

/// A communicator with a given all-reduce algorithm.
class Group : public comm::Tcp {
 public:
  explicit Group(comm::Tcp&& ranks) : Tcp{std::move(ranks)} {}
  void always(AllReduce algorithm) { erased().always(algorithm); }
};

struct Settings {
  int ranks = 2;
  int calls = 400;  // limit for each size and algorithm
  std::string file;
};

/// Returns the median of each algorithm in us, on rank 0 of the group. The algorithms take turns, so that other load on the machine affects
/// all of them. One-shot is left out if it would need much memory.
std::array<double, algorithms.size()> measure(Group& group, std::size_t bytes, int most_calls) {
  std::vector<float> values(bytes / sizeof(float));
  const int calls = std::clamp(static_cast<int>((std::size_t{256} << 20) / (bytes + 1)), 9, most_calls), block = std::max(1, calls / 9);
  std::array<std::vector<double>, algorithms.size()> times;
  for (int done = -block; done < calls; done += block)
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      if (algorithms[i] == AllReduce::one_shot && bytes * static_cast<std::size_t>(group.size()) > (std::size_t{64} << 20)) continue;
      group.always(algorithms[i]);
      for (int call = 0; call < block; ++call) {
        std::ranges::fill(values, static_cast<float>(group.rank() + call));
        group.barrier();
        const double begin = bench::now_us();
        group.all_reduce(values, comm::Sum{});
        if (done >= 0) times[i].push_back(bench::now_us() - begin);
      }
    }
  std::array<double, algorithms.size()> medians{};
  for (std::size_t i = 0; i < algorithms.size(); ++i) medians[i] = times[i].empty() ? INFINITY : bench::median(times[i]);
  return medians;
}

/// The medians of all algorithms for one size.
struct Measured {
  std::size_t bytes;
  std::array<double, algorithms.size()> medians;
};
/// Returns the rows for groups of `ranks` ranks. `measured` is sorted by bytes. From one size to the next, a row keeps its algorithm until
/// another is clearly faster, so that the table has no needless rows.
std::vector<Choice> rows_of(int ranks, const std::vector<Measured>& measured) {
  constexpr double clearly = 0.95;
  std::vector<Choice> rows;
  for (const auto& [bytes, medians] : measured) {
    const auto best = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
    if (!rows.empty() && medians[best] > clearly * medians[static_cast<std::size_t>(rows.back().algorithm)])
      rows.back().bytes = bytes;
    else if (!rows.empty() && rows.back().algorithm == algorithms[best])
      rows.back().bytes = bytes;
    else
      rows.push_back({ranks, bytes, algorithms[best]});
  }
  rows.back().bytes = comm::algorithm::any_bytes;
  return rows;
}

std::string text_of(const std::vector<Choice>& rows) {
  std::string lines;
  for (const Choice& row : rows) {
    const std::string ranks = row.ranks == comm::algorithm::any_ranks ? "any_ranks" : std::to_string(row.ranks);
    const std::string bytes = row.bytes == comm::algorithm::any_bytes ? "any_bytes"
                              : row.bytes >= 1024 && row.bytes % 1024 == 0
                                  ? (row.bytes == 1024 ? "1024" : std::to_string(row.bytes / 1024) + " * 1024")
                                  : std::to_string(row.bytes);
    lines += pdp::text("    Choice{", ranks, ", ", bytes, ", AllReduce::", name(row.algorithm), "},\n");
  }
  return lines;
}

/// Replaces the rows in the header: writes a new file beside it and renames that. Throws ConfigError if that fails.
void write(const std::string& file, const std::string& rows) {
  std::ifstream in{file, std::ios::binary};
  std::string header{std::istreambuf_iterator<char>{in}, {}};
  constexpr std::string_view first = "all_reduce_choices{\n", last = "};\n";
  const std::size_t begin = header.find(first), end = begin == std::string::npos ? begin : header.find(last, begin);
  if (!in || end == std::string::npos)
    throw pdp::ConfigError{pdp::text("--write ", file, ": this file is not the header with the table (comm/message/algorithm/table.hpp)")};
  header.replace(begin + first.size(), end - begin - first.size(), rows);
  const std::string beside = file + ".new";
  std::ofstream out{beside, std::ios::binary};
  out << header;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, file, error);
  if (!out || error) {
    std::filesystem::remove(beside, error);
    throw pdp::ConfigError{pdp::text("--write ", file, ": cannot write this file; it is unchanged")};
  }
}

void tune(comm::Tcp& world, const Settings& settings) {
  std::vector<int> sizes;
  for (int size = 2; size < world.size(); size = size % 3 == 0 ? size / 3 * 4 : size == 2 ? 3 : size / 2 * 3) sizes.push_back(size);
  sizes.push_back(world.size());
  std::vector<Choice> rows;
  for (const int size : sizes) {
    Group group{world.split(world.rank() < size ? 0 : 1, 0)};
    if (world.rank() < size) {
      bench::pin(group.rank(), group.size());
      std::vector<Measured> measured;
      for (std::size_t bytes = 64; bytes <= std::size_t{16} << 20; bytes *= 4) {
        measured.push_back({bytes, measure(group, bytes, settings.calls)});
        std::string times;
        for (std::size_t i = 0; i < algorithms.size(); ++i)
          if (std::isfinite(measured.back().medians[i]))
            times += fmt::format(", \"{}\": {:.3f}", name(algorithms[i]), measured.back().medians[i]);
        pdp::print(group, "{{\"ranks\": {}, \"bytes\": {}{}}}", size, bytes, times);
      }
      for (const Choice& row : rows_of(size == sizes.back() ? comm::algorithm::any_ranks : size, measured)) rows.push_back(row);
    }
    world.barrier();
  }
  pdp::print(world, "{}", text_of(rows));
  if (world.rank() == 0 && !settings.file.empty()) write(settings.file, text_of(rows));
  world.barrier();
}

Settings parse(int argc, char** argv) {
  constexpr const char* usage = "; usage: tune [--ranks N] [--calls N] [--write FILE]";
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word != "--ranks" && word != "--calls" && word != "--write") throw pdp::UsageError{pdp::text("unknown argument ", word, usage)};
    if (++i == argc || *argv[i] == '\0') throw pdp::UsageError{pdp::text(word, " must be followed by its value", usage)};
    if (word == "--ranks") settings.ranks = parse_number(word, argv[i], 2, pdp::launch::most_local_ranks);
    if (word == "--calls") settings.calls = parse_number(word, argv[i], 9, 1'000'000'000);
    if (word == "--write") settings.file = argv[i];
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
  pdp::launch::Options options;
  options.ranks = settings.ranks;
  return pdp::launch::run<comm::Tcp>(options, [&](comm::Tcp& world) { tune(world, settings); });
}
