#pragma once

/// Definitions for pdp/train/report_page.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/core/version.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/report/html.hpp>
#include <pdp/report/page.hpp>
#include <pdp/report/sample.hpp>
#include <pdp/train/report_page.hpp>

namespace pdp {

namespace detail {

/// The part of a rank's numbers that holds the name of its host.
constexpr std::size_t host_numbers = 8, host_length = host_numbers * sizeof(std::int64_t);
static_assert(6 + host_numbers == ReportPage::rank_numbers);

PDP_INLINE std::array<char, host_length> host_of_rank() {
  std::array<char, host_length> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host;
}

/// Returns the first bytes of a file, or an empty string if it cannot be read.
PDP_INLINE std::string beginning_of(const char* path) {
  constexpr std::size_t most = 1 << 16;
  std::ifstream file{path, std::ios::binary};
  std::string words(most, '\0');
  file.read(words.data(), static_cast<std::streamsize>(words.size()));
  words.resize(static_cast<std::size_t>(file.gcount()));
  return words;
}

/// Returns the name of the processor, or an empty string if the system does not say it.
PDP_INLINE std::string processor() {
  const std::string words = beginning_of("/proc/cpuinfo");
  const std::size_t begin = words.find("model name"), colon = words.find(": ", begin);
  if (begin == std::string::npos || colon == std::string::npos) return {};
  return words.substr(colon + 2, words.find('\n', colon) - colon - 2);
}

/// Returns the command line of this process, with spaces between its words.
PDP_INLINE std::string command_line() {
  std::string words = beginning_of("/proc/self/cmdline");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::ranges::replace(words, '\0', ' ');
  return words;
}

PDP_INLINE std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min);
}

PDP_INLINE std::int64_t report_time() { return std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count(); }

PDP_INLINE ReportPage::ReportPage(std::filesystem::path file, const ReportOptions& options, bool is_root)
    : record{options.traced_step + 1}, file_{std::move(file)}, is_root_{is_root}, begin_{report_time()} {
  figures.title = options.title;
  if (!is_root_) return;
  check_report_file(file_);
  data::check_writable(file_);
}

PDP_INLINE std::array<std::int64_t, ReportPage::rank_numbers> ReportPage::of_rank() const {
  struct rusage use {};
  ::getrusage(RUSAGE_SELF, &use);
  const std::vector<double> times = record.times().sorted();
  std::array<std::int64_t, rank_numbers> numbers{::getpid(), std::int64_t{use.ru_maxrss} * 1024};
  std::size_t at = 2;
  for (const double seconds : {record.times().mean(), report::quantile(times, 0.5), report::quantile(times, 0.95), record.times().high()})
    numbers[at++] = std::bit_cast<std::int64_t>(seconds);
  const auto host = host_of_rank();
  std::memcpy(&numbers[at], host.data(), host.size());
  return numbers;
}

PDP_INLINE void ReportPage::set_ranks(std::span<const std::int64_t> numbers) {
  figures.ranks.clear();
  for (; numbers.size() >= rank_numbers; numbers = numbers.subspan(rank_numbers)) {
    const auto real = [&](std::size_t at) { return std::bit_cast<double>(numbers[at]); };
    std::array<char, host_length> host{};
    std::memcpy(host.data(), &numbers[6], host.size());
    host.back() = '\0';
    figures.ranks.push_back({numbers[0], numbers[1], real(2), real(3), real(4), real(5), host.data()});
  }
}

PDP_INLINE void ReportPage::describe_environment(std::string_view world, int ranks, const std::string& device) {
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) figures.environment.emplace_back(name, std::move(value));
  };
  add("program", command_line());
  add("ranks", fmt::format("{}, communicator {}", ranks, world));
  add("device", device);
  add("processor", processor());
  if (const int cores = cpu::usable_cores(); cores > 0) add("cores of rank 0", fmt::format("{}", cores));
  add("host of rank 0", host_of_rank().data());
  struct utsname system {};
  if (::uname(&system) == 0) add("system", text(system.sysname, ' ', system.release, ", ", system.machine));
  add("pdp", version);
#if defined(__clang__)
  add("compiler", text("clang ", __clang_major__, '.', __clang_minor__, '.', __clang_patchlevel__));
#elif defined(__GNUC__)
  add("compiler", text("gcc ", __GNUC__, '.', __GNUC_MINOR__, '.', __GNUC_PATCHLEVEL__));
#endif
  for (const char* name : {"PDP_DEADLINE", "PDP_HEARTBEAT", "PDP_INTERFACE", "PDP_STOP_AFTER", "OMP_NUM_THREADS", "DNNL_MAX_CPU_ISA",
                           "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"})
    if (const char* value = std::getenv(name); value != nullptr) add(name, value);
}

PDP_INLINE void ReportPage::write() {
  figures.date = date_now();
  figures.seconds = static_cast<double>(report_time() - begin_) * 1e-9;
  const std::string page = report::page_of(figures, record);
  data::ReplaceFile to{file_};
  to.write(std::as_bytes(std::span{page}));
  to.commit();
}

PDP_INLINE void ReportPage::write_after_failure() noexcept {
  try {
    figures.warning = "The training ended before the report was complete. The figures of the other ranks and the timeline are missing.";
    set_ranks(of_rank());
    write();
  } catch (const std::exception& error) {
    clear_terminal_line();
    std::fputs(text("pdp: the report is not written: ", error.what(), '\n').c_str(), stderr);
  }
}

}  // namespace detail

PDP_INLINE void check_report_file(const std::filesystem::path& file) {
  if (file.extension() != ".html" && file.extension() != ".htm")
    throw ConfigError{text(file.string(), ": a report is a page; give a name that ends in .html")};
}

}  // namespace pdp
