#pragma once

/// Definitions for pdp/rpc/timeline.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<fmt/format.h>)
#error "pdp needs fmt 9 or newer (Debian: libfmt-dev)"
#include <see the error above>
#endif
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <locale>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/replace_file.hpp>
#include <pdp/rpc/call/method.hpp>
#include <pdp/rpc/timeline.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

namespace detail {

/// A call, and the rank that ran it.
struct Producer {
  const CallSpan* call;
  std::size_t rank;
};
/// Calls visit(producer, consumer, number) for each result that a call has taken from another call.
template <class Visit>
void each_dependency(const CallTimeline& timeline, const Visit& visit) {
  std::unordered_map<SlotId, Producer> producers;
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank)
    for (const CallSpan& call : timeline.calls[rank])
      if (call.result) producers[call.result] = {&call, rank};
  int number = 0;
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank)
    for (const CallSpan& call : timeline.calls[rank])
      for (const SlotId argument : call.arguments)
        if (const auto found = producers.find(argument); found != producers.end()) visit(found->second, Producer{&call, rank}, ++number);
}

/// Returns words as text of an SVG file.
PDP_INLINE std::string in_svg(std::string_view words) {
  std::string safe;
  for (const char letter : words) {
    if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '&')
      safe += "&amp;";
    else
      safe += letter;
  }
  return safe;
}
/// Returns words as part of a JSON string. Names have no control characters.
PDP_INLINE std::string in_json(std::string_view words) {
  std::string safe;
  for (const char letter : words) {
    if (letter == '"' || letter == '\\') safe += '\\';
    safe += letter;
  }
  return safe;
}

PDP_INLINE const char* colour_of(std::string_view name) {
  constexpr std::array colours{"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#8cd17d", "#76b7b2", "#9c755f"};
  return colours[fnv1a(name) % colours.size()];
}

}  // namespace detail

PDP_INLINE std::string svg_of(const CallTimeline& timeline) {
  constexpr double left = 110, width = 1130, top = 16, row = 44, bar = 28;
  double seconds = 1e-9, first = 1e300;
  for (const auto& calls : timeline.calls) {
    for (const CallSpan& call : calls) {
      seconds = std::max(seconds, call.end);
      first = std::min(first, call.begin);
    }
  }
  first = std::min(first, seconds);
  const double scale = width / std::max(seconds - first, 1e-9), bottom = top + row * as_double(timeline.calls.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:g}\" height=\"{:g}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      left + width + 20, bottom + 30);
  const auto x_of = [&](double time) { return left + (time - first) * scale; };
  const auto y_of = [&](std::size_t rank) { return top + row * as_double(rank); };
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank) {
    svg += fmt::format("<text x=\"8\" y=\"{:g}\">{} {}</text>\n", y_of(rank) + 19, rank, detail::in_svg(timeline.names[rank]));
    for (const CallSpan& call : timeline.calls[rank])
      svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" height=\"{:g}\" fill=\"{}\"><title>{}: {:.1f} us</title></rect>\n",
                         x_of(call.begin), y_of(rank), std::max((call.end - call.begin) * scale, 0.2), bar, detail::colour_of(call.name),
                         detail::in_svg(call.name), 1e6 * (call.end - call.begin));
  }
  detail::each_dependency(timeline, [&](const detail::Producer& from, const detail::Producer& to, int) {
    svg += fmt::format("<line x1=\"{:.2f}\" y1=\"{:g}\" x2=\"{:.2f}\" y2=\"{:g}\" stroke=\"black\" stroke-opacity=\"0.5\"/>\n",
                       x_of(from.call->end), y_of(from.rank) + bar / 2, x_of(to.call->begin), y_of(to.rank) + bar / 2);
  });
  svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\">{:.1f} us in all</text>\n", left, bottom + 16, 1e6 * (seconds - first));
  return svg + "</svg>\n";
}

PDP_INLINE std::string chrome_trace_of(const CallTimeline& timeline) {
  std::string json = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const char* comma = "\n";
  for (std::size_t rank = 0; rank < timeline.calls.size(); ++rank) {
    json += fmt::format(R"({}{{"name":"thread_name","ph":"M","pid":0,"tid":{},"args":{{"name":"{} {}"}}}})", comma, rank, rank,
                        detail::in_json(timeline.names[rank]));
    comma = ",\n";
    for (const CallSpan& call : timeline.calls[rank])
      json += fmt::format(",\n{{\"name\":\"{}\",\"cat\":\"call\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
                          detail::in_json(call.name), rank, 1e6 * call.begin, 1e6 * (call.end - call.begin));
  }
  const auto flow = [&](const char* kind, int number, std::size_t rank, double time) {
    json +=
        fmt::format(",\n{{\"name\":\"result\",\"cat\":\"result\",\"ph\":\"{}\",\"bp\":\"e\",\"id\":{},\"pid\":0,\"tid\":{},\"ts\":{:.3f}}}",
                    kind, number, rank, 1e6 * time);
  };
  detail::each_dependency(timeline, [&](const detail::Producer& from, const detail::Producer& to, int number) {
    flow("s", number, from.rank, from.call->end);
    flow("f", number, to.rank, std::max(from.call->end, to.call->begin));
  });
  return json + "\n]}\n";
}

PDP_INLINE void check_timeline_file(const std::filesystem::path& file) {
  if (file.extension() != ".svg" && file.extension() != ".json")
    throw ConfigError{text(file.string(), ": a timeline is a picture or a trace; give a name that ends in .svg or .json")};
}

PDP_INLINE void write_timeline(const std::filesystem::path& file, const CallTimeline& timeline) {
  check_timeline_file(file);
  const std::string words = file.extension() == ".svg" ? svg_of(timeline) : chrome_trace_of(timeline);
  data::ReplaceFile to{file};
  to.write(std::as_bytes(std::span{words}));
  to.commit();
}

PDP_INLINE std::string encode_calls(const std::vector<CallSpan>& calls) {
  std::string words;
  for (const CallSpan& call : calls) {
    words += fmt::format("{:.9f} {:.9f} {} {} {}", call.begin, call.end, call.result.number, call.result.maker, call.arguments.size());
    for (const SlotId argument : call.arguments) words += fmt::format(" {} {}", argument.number, argument.maker);
    words += ' ' + call.name + '\n';
  }
  return words;
}

PDP_INLINE std::vector<CallSpan> decode_calls(const std::string& text) {
  std::vector<CallSpan> calls;
  std::istringstream lines{text};
  lines.imbue(std::locale::classic());
  while (true) {
    CallSpan call;
    std::size_t arguments = 0;
    if (!(lines >> call.begin >> call.end >> call.result.number >> call.result.maker >> arguments)) return calls;
    for (SlotId argument; arguments > 0 && lines >> argument.number >> argument.maker; --arguments) call.arguments.push_back(argument);
    lines.ignore();
    std::getline(lines, call.name);
    calls.push_back(std::move(call));
  }
}

}  // namespace pdp::rpc
