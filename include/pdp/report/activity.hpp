#pragma once

#include <array>
#include <cstddef>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/operation.hpp>

namespace pdp::report {

/// A kind of activity of a rank, and its colour in pictures of timelines.
struct Activity {
  const char* name;
  const char* colour;
};

inline constexpr std::array activities{Activity{"forward", "#4e79a7"},
                                       Activity{"loss", "#b07aa1"},
                                       Activity{"backward_input", "#59a14f"},
                                       Activity{"backward_weight", "#8cd17d"},
                                       Activity{"update", "#f28e2b"},
                                       Activity{"start", "#e15759"},
                                       Activity{"wait", "#bab0ac"}};

/// Returns the number of an operation's activity. An operation that computes has an activity of its own name, and a part of a layer that
/// pauses that of the whole layer; a call is a "start" or a "wait".
[[nodiscard]] std::size_t activity_of(plan::Op op);

}  // namespace pdp::report

#ifndef PDP_SEPARATE_CORE
#include <pdp/report/source/activity.hpp>
#endif
