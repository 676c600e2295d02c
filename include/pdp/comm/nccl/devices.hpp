#pragma once

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <pdp/comm/nccl.hpp>
#include <pdp/comm/nccl/library.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/devices.hpp>

namespace pdp::comm::nccl {

/// A rank's report to rank 0: its host, the device and the local rank that its user has chosen, and the PCI bus addresses of the GPUs that
/// it may use. If the rank cannot use NCCL, `problem` says why.
struct Report {
  std::string host{};
  std::optional<int> device{}, local_rank{};
  std::vector<std::string> gpus{};
  std::string problem{};

  static Report of(int rank, const Options& options);
  [[nodiscard]] std::string encode() const;
  static Report decode(std::string_view words);
};

/// Returns the device of each rank: the device that its user has chosen; else its local rank modulo the number of its GPUs; else the GPU
/// that the fewest ranks of its host use. Throws ConfigError if a rank has a problem, or if two ranks share a GPU and `shared_gpus` is
/// false.
inline std::vector<int> place(const std::vector<Report>& ranks, bool shared_gpus) {
  std::vector<int> devices;
  for (const Report& rank : ranks) {
    if (!rank.problem.empty()) throw ConfigError{rank.problem};
    const auto gpus = as_int(rank.gpus.size());
    devices.push_back(rank.device ? *rank.device : rank.local_rank ? *rank.local_rank % gpus : -1);
  }
  const auto gpu_of = [&](std::size_t rank) -> std::string_view {
    return devices[rank] < 0 ? std::string_view{} : ranks[rank].gpus[as_size(devices[rank])];
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Report& own = ranks[rank];
    const auto on_host = [&](const Report& other) { return other.host == own.host; };
    if (devices[rank] < 0) {
      std::vector<int> users(own.gpus.size());
      for (std::size_t gpu = 0; gpu < users.size(); ++gpu)
        for (std::size_t other = 0; other < ranks.size(); ++other) users[gpu] += on_host(ranks[other]) && gpu_of(other) == own.gpus[gpu];
      devices[rank] = as_int(std::ranges::min_element(users) - users.begin());
    }
  }
  if (shared_gpus) return devices;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      if (ranks[other].host != ranks[rank].host || gpu_of(other) != gpu_of(rank)) continue;
      const auto together = std::ranges::count(ranks, ranks[rank].host, &Report::host);
      const auto gpus = std::ssize(ranks[rank].gpus);
      throw ConfigError{text("NCCL needs a GPU for each rank, but ranks ", other, " and ", rank, " would share GPU ", gpu_of(rank), ": ",
                             together, " ranks are on this host, and rank ", rank, " may use ", gpus, gpus == 1 ? " GPU" : " GPUs",
                             together > gpus ? "; start at most as many ranks on a host as it has GPUs"
                                             : "; give each rank on a host its own LOCAL_RANK or device")};
    }
  }
  return devices;
}

inline Report Report::of(int rank, const Options& options) {
  Report report{.device = options.device, .local_rank = options.local_rank};
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, report.host);
  try {
    check_version(rank);
    const int count = cuda::count_devices(text("rank ", rank, " cannot use NCCL"), "choose another communicator");
    if (options.device && (*options.device < 0 || *options.device >= count))
      throw ConfigError{text("rank ", rank, " is set to use device ", *options.device, ", but has ", count, count == 1 ? " GPU" : " GPUs",
                             "; devices count from 0")};
    if (options.local_rank && *options.local_rank < 0)
      throw ConfigError{text("rank ", rank, " has local_rank = ", *options.local_rank, "; local ranks count from 0")};
    for (int device = 0; device < count; ++device) {
      char address[32] = {};
      check_cuda("cudaDeviceGetPCIBusId", cudaDeviceGetPCIBusId(address, sizeof address, device));
      report.gpus.emplace_back(address);
    }
  } catch (const Error& error) {
    report.problem = error.what();
  }
  return report;
}

/// Returns one line each for the problem, the host, the device (-1 if unset), the local rank (-1 if unset) and each GPU.
inline std::string Report::encode() const {
  std::string words = text(problem, '\n', host, '\n', device.value_or(-1), '\n', local_rank.value_or(-1));
  for (const std::string& gpu : gpus) words += text('\n', gpu);
  return words;
}

inline Report Report::decode(std::string_view words) {
  std::vector<std::string> lines{""};
  for (const char letter : words)
    if (letter == '\n')
      lines.emplace_back();
    else
      lines.back() += letter;
  Report report{.problem = lines[0]};
  if (!report.problem.empty()) return report;
  // Reads a number; -1 leaves it unset. Returns whether the line is valid.
  const auto read = [](const std::string& line, std::optional<int>& number) {
    int value = 0;
    const char* const end = line.data() + line.size();
    const auto [after, error] = std::from_chars(line.data(), end, value);
    if (value >= 0) number = value;
    return error == std::errc{} && after == end && value >= -1;
  };
  if (lines.size() >= 5 && read(lines[2], report.device) && read(lines[3], report.local_rank)) {
    report.host = lines[1];
    report.gpus.assign(lines.begin() + 4, lines.end());
    if (report.device.value_or(0) < as_int(report.gpus.size())) return report;
  }
  throw ConfigError{"a rank's list of GPUs in the job's store is malformed; do all ranks run the same build?"};
}

}  // namespace pdp::comm::nccl
