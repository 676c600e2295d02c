#pragma once

/// Definitions for pdp/cpu/convert.hpp; see pdp/core/separate_compilation.hpp.

#include <concepts>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cpu/convert.hpp>
#include <pdp/cpu/elementwise.hpp>
#include <pdp/cpu/tag.hpp>

namespace pdp::cpu {

template <class From, class To>
void convert(const Cpu& cpu, Matrix<const From> in, Matrix<To> out) {
  const From* const from = in.data;
  To* const to = out.data;
  if constexpr (std::same_as<From, Float16> || std::same_as<To, Float16>)
    for (Index i = 0; i < in.size(); ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
  else
    elementwise<float>(cpu, in.size(), [=]<class V>(Index i, auto io) { io.store(io.load(from + i), to + i); });
}

}  // namespace pdp::cpu
