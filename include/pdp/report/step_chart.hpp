#pragma once

#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>

namespace pdp::report {

/// Returns a step as HTML: a row for each rank, time from left to right, a colour for each kind of activity. It fills the width of the page
/// without changing the size of its text. Draws at most 32 ranks. If a rank has more than 300 instructions, a bar stands for a part of the
/// step, and has the colour of the activity that takes most of it.
[[nodiscard]] std::string html_of(const engine::Timeline& timeline);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/step_chart.hpp>
#endif
