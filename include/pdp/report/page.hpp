#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/report/record.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp::report {

/// The figures of one rank.
struct RankFigures {
  std::int64_t process = 0;
  std::int64_t memory = 0;                             // bytes: the most that its process had in memory at a time
  double mean = 0, median = 0, slow = 0, longest = 0;  // times of steps in seconds; slow: longer than 95 % of them
  std::string host{};
};

/// Everything that a page shows.
struct Figures {
  std::string title = "Training report";
  std::string warning{};  // such as: the training ended early
  std::string date{};     // of the page
  double seconds = 0;     // from the beginning of the report
  std::string rate_name = "Learning rate";
  bool has_accuracy = true;
  std::optional<plan::Description> plan{};
  std::vector<std::string> instructions{};  // of rank 0 in a step
  engine::Timeline timeline{};
  std::vector<RankFigures> ranks{};                                // those that are known, from rank 0 on
  std::vector<std::pair<std::string, std::string>> environment{};  // names and values
};

/// Returns a page in HTML that needs no other file, no network and no script. All words in the figures are escaped. Its size is bounded: it
/// does not grow with the number of steps or ranks beyond some hundreds.
[[nodiscard]] std::string page_of(const Figures& figures, const Record& record);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/page.hpp>
#endif
