#pragma once

#include <filesystem>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/timeline.hpp>

namespace pdp {

/// A picture of a step, as SVG: a row for each rank, time from left to right, what is done in a colour, the number of the micro-batch on
/// it. A browser shows the whole instruction and its time where the pointer is.
[[nodiscard]] std::string svg_of(const engine::Timeline& timeline);

/// A step in the Trace Event Format that chrome://tracing and Perfetto read: complete events, in microseconds; a thread is a rank.
[[nodiscard]] std::string chrome_trace_of(const engine::Timeline& timeline);

/// Throws ConfigError where the name of a file does not say what it is to hold: .svg or .json.
void check_timeline_file(const std::filesystem::path& file);

/// Writes a timeline as its file's name says. Throws ConfigError and FileError.
void write_timeline(const std::filesystem::path& file, const engine::Timeline& timeline);

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/timeline.hpp>
#endif
