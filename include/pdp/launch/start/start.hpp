#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/options.hpp>
#include <pdp/launch/place.hpp>
#include <pdp/launch/start/starter.hpp>

namespace pdp::launch {

/// The communicators of a program, by the names that --comm accepts.
struct Connections {
  std::span<const std::string_view> names;  // of its communicators, in order
  std::string_view of_threads;              // of the communicator that connects threads
};

/// The role of a process in its job.
struct Start {
  enum class Kind : std::uint8_t {
    rank,       // it is one rank: the one that `place` describes
    threads,    // it runs the ranks as its threads
    processes,  // it starts the ranks as processes
  };

  Kind kind = Kind::rank;
  JobPlace place{};
  std::size_t comm = 0;  // index in Connections::names of the communicator that connects the ranks, unless they are threads

  /// Returns the index of the communicator that the options ask for. Throws UsageError if the program does not have it, or if it does not
  /// fit --threads.
  static std::size_t choose(const Options& options, const Connections& known);
  /// Decides what this process does. A launcher that has started it as a rank (see JobPlace::given) takes precedence over the options.
  /// `has_store`: whether the ranks find each other through a store. Throws UsageError if options and variables are invalid, contradict
  /// each other, or ask for a communicator that the program does not have.
  static Start from(const Options& options, const Connections& known, const Variables& variable, bool has_store = true);
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/start.hpp>
#endif
