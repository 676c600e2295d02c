#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/report/page.hpp>
#include <pdp/report/record.hpp>

namespace pdp {

/// The options of a Report.
struct ReportOptions {
  std::string title = "Training report";
  Index traced_step = 4;  // of the steps after the report was made, counted from 0: the timeline shows it
};

/// Throws ConfigError unless the name of the file ends in .html or .htm.
void check_report_file(const std::filesystem::path& file);

namespace detail {

/// The part of a Report that does not depend on the type of the trainer.
class ReportPage {
 public:
  ReportPage(std::filesystem::path file, const ReportOptions& options, bool is_root);

  [[nodiscard]] bool is_root() const { return is_root_; }
  /// The number of integers in which a rank describes itself, and those of this rank.
  static constexpr std::size_t rank_numbers = 14;
  [[nodiscard]] std::array<std::int64_t, rank_numbers> of_rank() const;
  /// Takes the numbers of all ranks.
  void set_ranks(std::span<const std::int64_t> numbers);
  /// Fills in the environment of the process. `world`: the name of the communicator.
  void describe_environment(std::string_view world, int ranks, const std::string& device);
  /// Writes the file. Throws FileError if that fails.
  void write();
  /// Writes the file if the training has ended before write(). If that fails, says so on standard error.
  void write_after_failure() noexcept;

  report::Figures figures{};
  report::Record record;

 private:
  std::filesystem::path file_;
  bool is_root_;
  std::int64_t begin_;  // nanoseconds of the steady clock
};

}  // namespace detail

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/report_page.hpp>
#endif
