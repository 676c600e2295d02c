#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

/// A call as it ran on a rank.
struct CallSpan {
  std::string name;
  double begin = 0, end = 0;        // seconds since the nodes were made
  SlotId result{};                  // 0: none
  std::vector<SlotId> arguments{};  // results of other calls that it has taken
};

/// The calls of a job.
struct CallTimeline {
  std::vector<std::string> names;            // of the ranks
  std::vector<std::vector<CallSpan>> calls;  // of each rank, in the order of their ends
};

/// Returns a picture, as SVG: a row for each rank, time from left to right, a box for each call, and a line from a call to each call that
/// has taken its result. Browsers show the name and the time of the call at the pointer.
[[nodiscard]] std::string svg_of(const CallTimeline& timeline);
/// Returns the calls in the Trace Event Format that chrome://tracing and Perfetto read: complete events with a thread for each rank, and
/// flow events for results.
[[nodiscard]] std::string chrome_trace_of(const CallTimeline& timeline);

/// Throws ConfigError unless the name of the file ends in .svg or .json.
void check_timeline_file(const std::filesystem::path& file);
/// Writes a timeline in the format that the name of the file says. Throws ConfigError as check_timeline_file() does, and FileError if the
/// file cannot be written.
void write_timeline(const std::filesystem::path& file, const CallTimeline& timeline);

/// Encodes the calls of one rank as text, and decodes them.
[[nodiscard]] std::string encode_calls(const std::vector<CallSpan>& calls);
[[nodiscard]] std::vector<CallSpan> decode_calls(const std::string& text);

}  // namespace pdp::rpc

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/source/timeline.hpp>
#endif
