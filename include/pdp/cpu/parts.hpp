#pragma once

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

/// Whether a rank's threads are of use: they are where the program is linked with a oneDNN that has OpenMP.
bool has_threads();

namespace detail {

/// The same as the function below, with a body that is called as body(context, begin, end).
void in_parts(const Cpu& cpu, Index count, Index least, void (*body)(const void* context, Index begin, Index end), const void* context);

}  // namespace detail

/// Calls body(begin, end) for parts of 0 to count - 1 that together are all of it, on the threads that `cpu` may use. Where there are
/// several, all but the last have `least` of them or more (at least 1), since a thread that waits takes microseconds to begin. The body
/// must not throw, and must not mind where the parts are cut.
template <class Body>
void in_parts(const Cpu& cpu, Index count, Index least, const Body& body) {
  const auto call = [](const void* context, Index begin, Index end) { (*static_cast<const Body*>(context))(begin, end); };
  detail::in_parts(cpu, count, least, call, &body);
}

}  // namespace pdp::cpu

#ifndef PDP_SEPARATE_CORE
#include <pdp/cpu/source/parts.hpp>
#endif
