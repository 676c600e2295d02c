#pragma once

/// Definitions for pdp/nn/multi_head_attention.hpp; see pdp/core/separate_compilation.hpp.

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/multi_head_attention.hpp>

namespace pdp::nn::detail {

PDP_INLINE void the_heads_of_attention_must_divide_its_width(Index width, Index heads) {
  throw ConfigError{
      text("MultiHeadAttention: expected a number of heads that divides the width ", width, ", found ", heads, "; change one of the two")};
}
PDP_INLINE void the_key_heads_of_attention_must_divide_its_heads(Index heads, Index key_heads) {
  throw ConfigError{text("MultiHeadAttention: expected a number of key heads that divides the ", heads, " heads, found ", key_heads,
                         "; change one of the two, or leave it out for as many as heads")};
}
PDP_INLINE void heads_with_rotary_positions_need_an_even_width(Index width, Index heads) {
  throw ConfigError{text("MultiHeadAttention: rotary positions turn pairs of values, but each of the ", heads, " heads has ", width / heads,
                         " of the ", width, " values; choose another number of heads")};
}

PDP_INLINE void the_base_of_rotary_positions_must_be_positive(double base) {
  throw ConfigError{
      text("MultiHeadAttention: the base of rotary positions is ", base, "; give a positive number such as 10000, or 0 for none")};
}

}  // namespace pdp::nn::detail
