// error: pdp: the function of nn::Elementwise needs its derivative: `V derivative.const V& y. const` from the value y
#include <pdp/nn/elementwise.hpp>

struct Square {
  template <class V>
  constexpr V operator()(const V& x) const {
    return x * x;
  }
};

inline constexpr pdp::nn::Elementwise<Square> square{};
