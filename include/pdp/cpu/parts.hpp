#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Returns whether a rank can use several threads: only if the program is linked with a oneDNN that has OpenMP.
bool has_threads();

namespace detail {

/// Does the same as the function below, with a body that is called as body(context, begin, end).
void in_parts(const Cpu& cpu, Index count, Index least, void (*body)(const void* context, Index begin, Index end), const void* context);

}  // namespace detail

/// Calls body(begin, end) for parts that together cover 0 to count - 1, on the threads that `cpu` may use. If there are several parts, each
/// but the last has at least `least` elements, since a waiting thread takes microseconds to start. `least` must be 1 or more. The body must
/// not throw, and its results must not depend on the boundaries of the parts.
template <class Body>
void in_parts(const Cpu& cpu, Index count, Index least, const Body& body) {
  const auto call = [](const void* context, Index begin, Index end) { (*static_cast<const Body*>(context))(begin, end); };
  detail::in_parts(cpu, count, least, call, &body);
}

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/parts.hpp>
#endif
