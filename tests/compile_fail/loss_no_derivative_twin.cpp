#include <pdp/loss/elementwise.hpp>

struct Square {
  template <class V>
  constexpr V operator()(const V& output, const V& target) const {
    return (output - target) * (output - target);
  }
  template <class V>
  constexpr V derivative(const V& output, const V& target) const {
    return 2 * (output - target);
  }
};

inline constexpr pdp::loss::Elementwise<Square> square{};
