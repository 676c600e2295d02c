#pragma once

#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::data::detail {

/// Returns a name from a file in a form that fits an error message: at most 80 characters (and "..." if it is longer), with control
/// characters replaced by question marks.
std::string shown(std::string_view name);

}  // namespace pdp::data::detail

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/shown.hpp>
#endif
