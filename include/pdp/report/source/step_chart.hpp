#pragma once

/// Definitions for pdp/report/step_chart.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/operation.hpp>
#include <pdp/report/activity.hpp>
#include <pdp/report/axis.hpp>
#include <pdp/report/html.hpp>
#include <pdp/report/step_chart.hpp>

namespace pdp::report {

namespace detail {

/// A bar of a row: its activity, its ends in seconds, and its texts.
struct StepBar {
  std::size_t activity = 0;
  double begin = 0, end = 0;
  std::string title{}, label{};
};

using ActivityTimes = std::array<double, activities.size()>;

/// Returns a bar for each instruction of a rank.
PDP_INLINE std::vector<StepBar> bars_of(const plan::Instructions& list, std::span<const engine::Timed> times) {
  std::vector<StepBar> bars;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const bool is_compute = list[at].op == plan::Op::forward || list[at].op == plan::Op::backward_input;
    bars.push_back({activity_of(list[at].op), times[at].begin, times[at].end, describe(list[at]),
                    is_compute ? fmt::format("{}", as_int(list[at].micro_batch)) : std::string{}});
  }
  return bars;
}

/// Returns `count` bars of equal length in place of more, each with the activity that takes most of its time. Leaves out idle parts.
PDP_INLINE std::vector<StepBar> merged(const std::vector<StepBar>& bars, std::size_t count, double seconds) {
  std::vector<ActivityTimes> parts(count);
  const double length = seconds / as_double(count);
  for (const StepBar& bar : bars) {
    const auto first = std::min(static_cast<std::size_t>(std::max(bar.begin, 0.0) / length), count - 1);
    for (std::size_t part = first; part < count && length * as_double(part) < bar.end; ++part) {
      const double begin = length * as_double(part);
      parts[part][bar.activity] += std::max(0.0, std::min(bar.end, begin + length) - std::max(bar.begin, begin));
    }
  }
  std::vector<StepBar> few;
  for (std::size_t part = 0; part < count; ++part) {
    const auto most = std::ranges::max_element(parts[part]);
    if (*most <= 0) continue;
    const auto activity = as_size(most - parts[part].begin());
    const double begin = length * as_double(part);
    few.push_back({activity, begin, begin + length, fmt::format("mostly {}", activities[activity].name)});
  }
  return few;
}

PDP_INLINE std::string row_of(const std::vector<StepBar>& bars, double y, double seconds) {
  std::string svg;
  for (const StepBar& bar : bars) {
    const double length = 100 * (bar.end - bar.begin) / seconds, from = 100 * bar.begin / seconds;
    svg += fmt::format("<rect class=\"a{}\" x=\"{:.3f}%\" y=\"{}\" width=\"{:.3f}%\" height=\"22\"><title>{}: {}</title></rect>\n",
                       bar.activity, from, y, std::max(length, 0.02), escaped(bar.title), time_text(bar.end - bar.begin));
    if (!bar.label.empty() && length >= 6)  // otherwise the label does not fit on a narrow page
      svg +=
          fmt::format("<text class=\"on\" x=\"{:.3f}%\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", from + length / 2, y + 15, bar.label);
  }
  return svg;
}

}  // namespace detail

PDP_INLINE std::string html_of(const engine::Timeline& timeline) {
  constexpr std::size_t most_ranks = 32, most_bars = 300;
  constexpr double row = 28;
  const std::size_t ranks = timeline.times.size(), drawn = std::min(ranks, most_ranks);
  std::string html = "<section class=\"card wide\" id=\"timeline\"><h2>Timeline of one step</h2>\n";
  if (ranks == 0 || timeline.seconds() <= 0) return html + "<p class=\"note\">No step was traced.</p></section>\n";
  const double seconds = timeline.seconds();

  html += "<p class=\"legend\">";
  for (std::size_t at = 0; at < activities.size(); ++at)
    html += fmt::format("<span><i class=\"a{}\"></i>{}</span> ", at, activities[at].name);
  html += "</p>\n<div class=\"rows\"><div class=\"names\" aria-hidden=\"true\">";
  for (std::size_t rank = 0; rank < drawn; ++rank) html += fmt::format("<span>rank {}</span>", rank);
  const double height = row * as_double(drawn);
  html += fmt::format(
      "</div>\n<svg width=\"100%\" height=\"{}\" role=\"img\" aria-labelledby=\"timeline-title timeline-text\">"
      "<title id=\"timeline-title\">Timeline of one step</title><desc id=\"timeline-text\">{} in {}. The table below has the time of each "
      "activity.</desc>\n",
      height + 26, counted(static_cast<std::int64_t>(ranks), "rank"), time_text(seconds));

  Table table{"Time of each activity of each rank in this step, in ms", [] {
                std::vector<std::string> heads{"rank"};
                for (const Activity& each : activities) heads.emplace_back(each.name);
                return heads;
              }()};
  const TimeUnit unit = unit_of(seconds);
  const Axis axis = axis_of(0, seconds / unit.seconds, {.most_ticks = 4, .has_margin = false});
  for (const Axis::Tick& tick : axis.ticks) {
    const double at = 100 * axis.place(tick.value);
    const char* anchor = at < 5 ? "start" : at > 92 ? "end" : "middle";
    html += fmt::format(
        "<line class=\"grid\" x1=\"{0:.2f}%\" y1=\"0\" x2=\"{0:.2f}%\" y2=\"{1}\"/><text x=\"{0:.2f}%\" y=\"{2}\" text-anchor=\"{3}\">{4} "
        "{5}</text>\n",
        at, height, height + 18, anchor, tick.label, unit.name);
  }
  for (std::size_t rank = 0; rank < ranks && rank < 256; ++rank) {
    std::vector<detail::StepBar> bars = detail::bars_of(timeline.lists[rank], timeline.times[rank]);
    detail::ActivityTimes sums{};
    for (const detail::StepBar& bar : bars) sums[bar.activity] += bar.end - bar.begin;
    std::vector<std::string> cells{fmt::format("{}", rank)};
    for (const double sum : sums) cells.push_back(fmt::format("{:.3f}", 1e3 * sum));
    table.row(cells);
    if (rank >= drawn) continue;
    if (bars.size() > most_bars) bars = detail::merged(bars, most_bars, seconds);
    html += detail::row_of(bars, row * as_double(rank) + 3, seconds);
  }
  html += "</svg></div>\n";
  if (ranks > drawn)
    html += fmt::format("<p class=\"note\">The first {} of {} ranks.</p>\n", drawn, whole(static_cast<std::int64_t>(ranks)));
  return html + details("Time of each activity", table.html()) + "</section>\n";
}

}  // namespace pdp::report
