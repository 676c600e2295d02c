// error: pdp: the function of loss::Elementwise needs its derivative with respect to the output: `V derivative.const V& output, const V&
// target. const`
#include <pdp/loss/elementwise.hpp>

struct Square {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    return (output - target) * (output - target);
  }
};

inline constexpr pdp::loss::Elementwise<Square> square{};
