#pragma once

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/comm/nccl/library.hpp>
#include <pdp/cuda/devices.hpp>

namespace pdp::comm::nccl {

/// What a rank tells rank 0 of itself: its host, the device that its user has chosen, or -1, and the GPUs that it may use, by their
/// addresses on the host's bus. Or what is wrong with it.
struct Report {
  std::string host{};
  int chosen = -1;
  std::vector<std::string> gpus{};
  std::string problem{};

  static Report of(int rank, int chosen);
  [[nodiscard]] std::string encode() const;
  static Report decode(std::string_view words);
};

/// The device of each rank. Throws ConfigError where that cannot be: the problem of the first rank that has one, or two ranks on one GPU.
inline std::vector<int> place(const std::vector<Report>& ranks, bool shared_gpus) {
  std::vector<int> devices;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Report& own = ranks[rank];
    if (!own.problem.empty()) throw ConfigError{own.problem};
    const auto on_host = [&](const Report& other) { return other.host == own.host; };
    const auto before = std::count_if(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(rank), on_host);
    const auto gpus = static_cast<int>(own.gpus.size());
    devices.push_back(own.chosen >= 0 ? own.chosen : static_cast<int>(before % gpus));
    if (shared_gpus) continue;
    for (std::size_t other = 0; other < rank; ++other) {
      const std::string& gpu = own.gpus[static_cast<std::size_t>(devices[rank])];
      if (!on_host(ranks[other]) || ranks[other].gpus[static_cast<std::size_t>(devices[other])] != gpu) continue;
      const auto together = std::ranges::count_if(ranks, on_host);
      throw ConfigError{text("NCCL needs a GPU for each rank, but ranks ", other, " and ", rank, " would share GPU ", gpu, ": ", together,
                             " ranks are on this host, and rank ", rank, " may use ", gpus, gpus == 1 ? " GPU" : " GPUs",
                             "; start at most as many ranks on a host as it has GPUs")};
    }
  }
  return devices;
}

inline Report Report::of(int rank, int chosen) {
  Report report;
  report.chosen = chosen;
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, report.host);
  try {
    const int count = cuda::count_devices(text("rank ", rank, " cannot use NCCL"), "choose another communicator");
    if (chosen >= count)
      throw ConfigError{text("rank ", rank, " was told to use device ", chosen, ", but has ", count, count == 1 ? " GPU" : " GPUs",
                             "; devices count from 0")};
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

/// Lines: the problem, the host, the chosen device, the GPUs.
inline std::string Report::encode() const {
  std::string words = text(problem, '\n', host, '\n', chosen);
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
  if (lines.size() >= 4) {
    report.host = lines[1];
    const char* const end = lines[2].data() + lines[2].size();
    const auto [after, error] = std::from_chars(lines[2].data(), end, report.chosen);
    report.gpus.assign(lines.begin() + 3, lines.end());
    if (error == std::errc{} && after == end && report.chosen >= -1 && report.chosen < static_cast<int>(report.gpus.size())) return report;
  }
  throw ConfigError{"what the job's store says of a rank's GPUs makes no sense; do all ranks run the same build?"};
}

}  // namespace pdp::comm::nccl
