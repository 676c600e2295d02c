#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/report/axis.hpp>
#include <pdp/report/curve.hpp>

/// Charts as HTML with SVG inside. They need no script. The colours come from the page's style (see style.hpp).
namespace pdp::report {

/// A point of a line: a mean, and the range of the values that it stands for.
struct Point {
  double x = 0;  // the middle of its steps, which are `first` to `last`
  double middle = 0, low = 0, high = 0;
  bool is_drawn = true;         // otherwise the line has a gap here
  bool has_not_finite = false;  // draws a mark here: a value is NaN or infinite
  std::int64_t first = 0, last = 0;
};

/// Returns the points of a curve, with its values divided by `unit`.
[[nodiscard]] std::vector<Point> points_of(const Curve& curve, double unit = 1);

/// A line of a chart.
struct Line {
  std::string name;
  std::vector<Point> points;
  bool has_dots = false;  // a dot at each point
};

/// A chart of lines over the number of the step, at most four of them.
struct LineChart {
  std::string id;     // of the HTML element
  std::string title;  // also names the unit
  std::vector<Line> lines;
  std::string note;  // below the chart
  bool may_be_logarithmic = false;
  bool from_zero = false;
};
[[nodiscard]] std::string html_of(const LineChart& chart);

/// A chart of vertical bars: how many of the values lie in each of some intervals of equal length.
struct Histogram {
  std::string id, title, note;
  std::string unit;                  // of the values
  double low = 0, high = 1;          // the values that the bars stand for
  std::vector<std::int64_t> counts;  // of each bar
};
[[nodiscard]] std::string html_of(const Histogram& histogram);

/// A chart of horizontal bars, each divided into parts. It fills the width of the page without changing the size of its text.
struct StackedBars {
  struct Bar {
    std::string name, total;  // total: in words, at the end of the bar
    std::vector<double> parts;
  };
  std::string id, title, note;
  std::vector<std::string> parts;  // names, at most four
  std::vector<Bar> bars;
};
[[nodiscard]] std::string html_of(const StackedBars& chart);

namespace detail {

/// Returns a figure with a heading, a picture, a legend and a note. `picture`: SVG elements on an area of 400 x 224. `description`: says in
/// words what the picture shows.
struct Figure {
  std::string id, title, description, note, picture;
  std::vector<std::string> legend{};  // names of the colours 1, 2, ...; none if there is only one
};
[[nodiscard]] std::string html_of(const Figure& figure);

}  // namespace detail

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/chart.hpp>
#endif
