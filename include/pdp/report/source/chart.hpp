#pragma once

/// Definitions for pdp/report/chart.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/report/axis.hpp>
#include <pdp/report/chart.hpp>
#include <pdp/report/curve.hpp>
#include <pdp/report/html.hpp>

namespace pdp::report {

namespace detail {

constexpr double left = 54, right = 388, top = 10, bottom = 182;  // the area of the lines and bars

PDP_INLINE double x_of(const Axis& axis, double value) { return left + (right - left) * std::clamp(axis.place(value), 0.0, 1.0); }
PDP_INLINE double y_of(const Axis& axis, double value) { return bottom - (bottom - top) * std::clamp(axis.place(value), 0.0, 1.0); }

/// Returns both axes with their labels and lines. `name`: of the horizontal axis.
PDP_INLINE std::string drawn(const Axis& x, const Axis& y, std::string_view name) {
  std::string svg;
  for (const Axis::Tick& tick : y.ticks)
    svg += fmt::format("<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n", left,
                       y_of(y, tick.value), right, left - 6, y_of(y, tick.value) + 4, tick.label);
  for (const Axis::Tick& tick : x.ticks) {
    const double at = x_of(x, tick.value);
    svg += fmt::format("<path class=\"axis\" d=\"M{0:.1f} {1}v4\"/><text x=\"{0:.1f}\" y=\"{2}\" text-anchor=\"{3}\">{4}</text>\n", at,
                       bottom, bottom + 17, at > right - 12 ? "end" : "middle", tick.label);
  }
  return svg + fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", left, bottom,
                           right, (left + right) / 2, bottom + 34, escaped(name));
}

/// Calls f(first, last) for each run of points without a gap.
template <class F>
void for_each_run(const std::vector<Point>& points, F&& f) {
  for (std::size_t first = 0; first < points.size();) {
    std::size_t last = first;
    while (last < points.size() && points[last].is_drawn) ++last;
    if (last > first) f(first, last);
    first = last + 1;
  }
}

PDP_INLINE std::string drawn(const Line& line, int colour, const Axis& x, const Axis& y) {
  std::string svg;
  const auto pair = [&](const char* letter, double at, double value) {
    return fmt::format("{}{:.1f} {:.1f}", letter, x_of(x, at), y_of(y, value));
  };
  for_each_run(line.points, [&](std::size_t first, std::size_t last) {
    const auto& all = line.points;
    std::string band, path;
    for (std::size_t at = first; at < last; ++at) band += pair(at == first ? "M" : "L", all[at].x, all[at].high);
    for (std::size_t at = last; at-- > first;) band += pair("L", all[at].x, all[at].low);
    for (std::size_t at = first; at < last; ++at) path += pair(at == first ? "M" : "L", all[at].x, all[at].middle);
    if (last == first + 1) path += "h0.1";  // a lone point is a dot
    if (std::any_of(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last),
                    [](const Point& point) { return point.low < point.high; }))
      svg += fmt::format("<path class=\"band f{}\" d=\"{}Z\"/>\n", colour, band);
    svg += fmt::format("<path class=\"line s{}\" d=\"{}\"/>\n", colour, path);
  });
  constexpr std::size_t most_dots = 60;  // more would hide the line
  for (const Point& point : line.points) {
    if (line.has_dots && point.is_drawn && line.points.size() <= most_dots)
      svg += fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>step {}: {}</title></circle>\n", colour,
                         x_of(x, point.x), y_of(y, point.middle), whole(static_cast<std::int64_t>(point.x)), number(point.middle));
    if (point.has_not_finite) svg += fmt::format("<path class=\"bad\" d=\"M{:.1f} {}l-4 -7h8z\"/>\n", x_of(x, point.x), top + 5);
  }
  return svg;
}

/// Returns the names of the colours 1, 2, ....
PDP_INLINE std::string legend_of(const std::vector<std::string>& names) {
  std::string html = "<p class=\"legend\">";
  for (std::size_t at = 0; at < names.size(); ++at)
    html += fmt::format("<span><i class=\"c{}\"></i>{}</span> ", at + 1, escaped(names[at]));
  return html + "</p>\n";
}

}  // namespace detail

PDP_INLINE std::string detail::html_of(const Figure& figure) {
  std::string html = fmt::format("<figure class=\"card\" id=\"{}\"><h2>{}</h2>\n", figure.id, escaped(figure.title));
  if (!figure.picture.empty()) {
    html += fmt::format(
        "<svg viewBox=\"0 0 400 224\" role=\"img\" aria-labelledby=\"{0}-title {0}-text\">"
        "<title id=\"{0}-title\">{1}</title><desc id=\"{0}-text\">{2}</desc>\n{3}</svg>\n",
        figure.id, escaped(figure.title), escaped(figure.description), figure.picture);
  }
  if (figure.legend.size() > 1) html += legend_of(figure.legend);
  const std::string& note = figure.picture.empty() ? figure.description : figure.note;
  if (!note.empty()) html += fmt::format("<figcaption>{}</figcaption>\n", escaped(note));
  return html + "</figure>\n";
}

PDP_INLINE std::vector<Point> points_of(const Curve& curve, double unit) {
  std::vector<Point> points;
  for (const Curve::Bucket& bucket : curve.buckets())
    points.push_back({(as_double(bucket.first) + as_double(bucket.last)) / 2, bucket.mean / unit, bucket.low / unit, bucket.high / unit,
                      bucket.values > 0, bucket.not_finite > 0, bucket.first, bucket.last});
  return points;
}

PDP_INLINE std::string html_of(const LineChart& chart) {
  double low = positive_infinity<double>(), high = -low;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
  detail::Figure figure{chart.id, chart.title, "No value.", chart.note, {}};
  for (const Line& line : chart.lines) {
    if (!line.points.empty()) figure.legend.push_back(line.name);
    for (const Point& point : line.points) {
      first = std::min(first, point.first);
      last = std::max(last, point.last);
      if (!point.is_drawn) continue;
      low = std::min(low, point.low);
      high = std::max(high, point.high);
    }
  }
  if (figure.legend.empty()) return detail::html_of(figure);
  const bool has_values = low <= high;
  const Axis x = axis_of(as_double(first), as_double(last), {.is_whole = true, .has_margin = false});
  const Axis y =
      has_values ? axis_of(low, high, {.may_be_logarithmic = chart.may_be_logarithmic, .from_zero = chart.from_zero}) : axis_of(0, 1, {});
  figure.description = fmt::format("Steps {} to {}", whole(first), whole(last));
  figure.description += has_values ? fmt::format(", values from {} to {}.", number(low), number(high)) : ", no finite value.";
  if (y.is_logarithmic) figure.note += figure.note.empty() ? "Logarithmic scale." : " Logarithmic scale.";
  figure.picture = detail::drawn(x, y, "step");
  int colour = 0;
  for (const Line& line : chart.lines)
    if (!line.points.empty()) figure.picture += detail::drawn(line, ++colour, x, y);
  return detail::html_of(figure);
}

PDP_INLINE std::string html_of(const Histogram& histogram) {
  detail::Figure figure{histogram.id, histogram.title, "No value.", histogram.note, {}};
  if (histogram.counts.empty()) return detail::html_of(figure);
  const Axis x = axis_of(histogram.low, histogram.high, {.has_margin = false});
  const std::int64_t most = *std::ranges::max_element(histogram.counts);
  const Axis y = axis_of(0, as_double(most), {.from_zero = true, .is_whole = true});
  figure.description = fmt::format("{} bars from {} to {} {}; the highest is {}.", histogram.counts.size(), number(histogram.low),
                                   number(histogram.high), histogram.unit, whole(most));
  figure.picture = detail::drawn(x, y, histogram.unit);
  const double width = (histogram.high - histogram.low) / as_double(histogram.counts.size());
  for (std::size_t at = 0; at < histogram.counts.size(); ++at) {
    if (histogram.counts[at] == 0) continue;
    const double from = histogram.low + width * as_double(at), x_from = detail::x_of(x, from), x_to = detail::x_of(x, from + width);
    const double y_top = detail::y_of(y, as_double(histogram.counts[at]));
    figure.picture += fmt::format(
        "<rect class=\"f1\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{} to {} {}: {}</title></rect>\n",
        x_from + 0.5, y_top, std::max(x_to - x_from - 1, 0.5), detail::bottom - y_top, number(from), number(from + width), histogram.unit,
        whole(histogram.counts[at]));
  }
  return detail::html_of(figure);
}

PDP_INLINE std::string html_of(const StackedBars& chart) {
  constexpr double row = 28;
  std::string html = fmt::format("<figure class=\"card wide\" id=\"{}\"><h2>{}</h2>\n", chart.id, escaped(chart.title));
  if (chart.bars.empty()) return html + "<figcaption>No value.</figcaption></figure>\n";
  double most = 0;
  std::string names, totals, bars;
  for (const StackedBars::Bar& bar : chart.bars) {
    most = std::max(most, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0));
    names += fmt::format("<span>{}</span>", escaped(bar.name));
    totals += fmt::format("<span>{}</span>", escaped(bar.total));
  }
  double y = 3;
  for (const StackedBars::Bar& bar : chart.bars) {
    double x = 0;
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      const double width = most > 0 ? 100 * bar.parts[part] / most : 0;
      if (width > 0)
        bars +=
            fmt::format("<rect class=\"f{}\" x=\"{:.2f}%\" y=\"{}\" width=\"{:.2f}%\" height=\"22\"><title>{}: {:.1f} %</title></rect>\n",
                        part + 1, x, y, width, escaped(chart.parts[part]), width);
      x += width;
    }
    y += row;
  }
  html += detail::legend_of(chart.parts);
  html += fmt::format(
      "<div class=\"rows\"><div class=\"names\">{0}</div>\n<svg height=\"{1}\" role=\"img\" aria-labelledby=\"{2}-title {2}-text\">"
      "<title id=\"{2}-title\">{3}</title><desc id=\"{2}-text\">A bar for each name, with its sum at the end.</desc>\n{4}</svg>\n"
      "<div class=\"names\">{5}</div></div>\n",
      names, row * as_double(chart.bars.size()), chart.id, escaped(chart.title), bars, totals);
  return html + fmt::format("<figcaption>{}</figcaption></figure>\n", escaped(chart.note));
}

}  // namespace pdp::report
