// error: pdp: the function of loss::Elementwise must take an output and a target and return a value: `V operator...const V& output, const
// V& target. const`
#include <pdp/loss/elementwise.hpp>

inline constexpr pdp::loss::Elementwise square{[](auto y) { return y * y; }, [](auto y, auto) { return 2 * y; }};
