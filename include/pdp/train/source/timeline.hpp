#pragma once

/// Definitions for pdp/train/timeline.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/engine/timeline.hpp>
#include <pdp/plan/operation.hpp>
#include <pdp/report/activity.hpp>
#include <pdp/train/timeline.hpp>

namespace pdp {

namespace detail {

/// Returns the distance between ticks, in seconds: the largest of 1, 2, 5, 10, 20, ... microseconds that fits into `seconds` six times.
PDP_INLINE double tick(double seconds) {
  double best = 1e-6, power = 1e-6;
  while (power < seconds) {
    for (const double each : {power, 2 * power, 5 * power})
      if (6 * each <= seconds) best = each;
    power *= 10;
  }
  return best;
}

}  // namespace detail

PDP_INLINE std::string svg_of(const engine::Timeline& timeline) {
  constexpr double left = 70, width = 1130, top = 40, row = 36, bar = 28;
  const double seconds = std::max(timeline.seconds(), 1e-9), scale = width / seconds;
  const double bottom = top + row * as_double(timeline.times.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:g}\" height=\"{:g}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      left + width + 20, bottom + 40);
  double at = left;
  for (const auto& [name, colour] : report::activities) {
    svg += fmt::format("<rect x=\"{:g}\" y=\"10\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:g}\" y=\"20\">{}</text>\n", at,
                       colour, at + 16, name);
    at += 50 + 7 * as_double(std::string_view{name}.size());
  }
  for (std::size_t rank = 0; rank < timeline.times.size(); ++rank) {
    const double y = top + row * as_double(rank);
    svg += fmt::format("<text x=\"8\" y=\"{:g}\">rank {}</text>\n", y + 19, rank);
    for (std::size_t i = 0; i < timeline.times[rank].size(); ++i) {
      const auto [begin, end] = timeline.times[rank][i];
      const plan::Instruction& instruction = timeline.lists[rank][i];
      const double x = left + begin * scale, length = std::max((end - begin) * scale, 0.2);
      svg += fmt::format(R"(<rect x="{:.2f}" y="{:g}" width="{:.2f}" height="{:g}" fill="{}"><title>)", x, y, length, bar,
                         report::activities[report::activity_of(instruction.op)].colour);
      svg += describe(instruction) + fmt::format(": {:.1f} us</title></rect>\n", 1e6 * (end - begin));
      const bool is_compute = instruction.op == plan::Op::forward || instruction.op == plan::Op::backward_input;
      if (is_compute && length > 14)
        svg += fmt::format("<text x=\"{:.2f}\" y=\"{:g}\" fill=\"white\" text-anchor=\"middle\" pointer-events=\"none\">{}</text>\n",
                           x + length / 2, y + 18, as_int(instruction.micro_batch));
    }
  }
  for (int number = 0; number * detail::tick(seconds) <= seconds * (1 + 1e-9); ++number) {
    const double t = number * detail::tick(seconds);
    svg += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:g}\" x2=\"{:.2f}\" y2=\"{:g}\" stroke=\"black\" stroke-opacity=\"0.2\"/>"
        "<text x=\"{:.2f}\" y=\"{:g}\" text-anchor=\"middle\">{:g} us</text>\n",
        left + t * scale, top - 4, left + t * scale, bottom, left + t * scale, bottom + 16, std::round(1e6 * t));
  }
  return svg + "</svg>\n";
}

PDP_INLINE std::string chrome_trace_of(const engine::Timeline& timeline) {
  std::string json = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const char* comma = "\n";
  for (std::size_t rank = 0; rank < timeline.times.size(); ++rank) {
    json += fmt::format(R"({}{{"name":"thread_name","ph":"M","pid":0,"tid":{},"args":{{"name":"rank {}"}}}})", comma, rank, rank);
    comma = ",\n";
    for (std::size_t i = 0; i < timeline.times[rank].size(); ++i) {
      const auto [begin, end] = timeline.times[rank][i];
      const plan::Instruction& instruction = timeline.lists[rank][i];
      json += fmt::format(",\n{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},",
                          name(instruction.op), report::activities[report::activity_of(instruction.op)].name, rank, 1e6 * begin,
                          1e6 * (end - begin));
      json += R"("args":{"instruction":")" + describe(instruction) + "\"}}";
    }
  }
  return json + "\n]}\n";
}

PDP_INLINE void check_timeline_file(const std::filesystem::path& file) {
  if (file.extension() != ".svg" && file.extension() != ".json")
    throw ConfigError{text(file.string(), ": a timeline is a picture or a trace; give a name that ends in .svg or .json")};
}

PDP_INLINE void write_timeline(const std::filesystem::path& file, const engine::Timeline& timeline) {
  check_timeline_file(file);
  const std::string words = file.extension() == ".svg" ? svg_of(timeline) : chrome_trace_of(timeline);
  data::ReplaceFile to{file};
  to.write(std::as_bytes(std::span{words}));
  to.commit();
}

}  // namespace pdp
