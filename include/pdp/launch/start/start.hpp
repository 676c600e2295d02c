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

/// What connects the ranks of a program, by the names that --comm has for it.
struct Connections {
  std::span<const std::string_view> names;  // of its communicators
  std::string_view of_threads;              // where ranks are threads
};

/// What a process does for its job.
struct Start {
  enum class Kind : std::uint8_t {
    rank,       // it is one, the one at `place`
    threads,    // its ranks are threads of it, as the options ask for
    processes,  // its ranks are processes that it starts
  };

  Kind kind = Kind::rank;
  JobPlace place{};
  std::size_t comm = 0;  // which of the program's communicators connects its ranks, unless they are threads

  static std::size_t choose(const Options& options, const Connections& known);
  static Start from(const Options& options, const Connections& known, const Variables& variable, bool has_store = true);
};

}  // namespace pdp::launch

#ifndef PDP_SEPARATE_CORE
#include <pdp/launch/start/source/start.hpp>
#endif
