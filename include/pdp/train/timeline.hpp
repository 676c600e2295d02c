#pragma once

#include <filesystem>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>

namespace pdp {

/// Returns a picture of a step, as SVG: a row for each rank, time from left to right, a colour for each kind of activity, and the number of
/// the micro-batch. Browsers show the whole instruction and its time at the pointer.
[[nodiscard]] std::string svg_of(const engine::Timeline& timeline);

/// Returns a step in the Trace Event Format that chrome://tracing and Perfetto read: complete events, in microseconds, with a thread for
/// each rank.
[[nodiscard]] std::string chrome_trace_of(const engine::Timeline& timeline);

/// Throws ConfigError unless the name of the file ends in .svg or .json.
void check_timeline_file(const std::filesystem::path& file);

/// Writes a timeline in the format that the name of the file says. Throws ConfigError as check_timeline_file() does, and FileError if the
/// file cannot be written.
void write_timeline(const std::filesystem::path& file, const engine::Timeline& timeline);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/timeline.hpp>
#endif
