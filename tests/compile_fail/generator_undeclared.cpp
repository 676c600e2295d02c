// error: pdp: a layer or a loss that draws random numbers must declare `static constexpr bool uses_row_numbers = true`
#include <pdp/core/pass.hpp>

struct Noise {
  float first(const pdp::Pass& pass) const { return pass.generator(*this).uniform(0, 0); }
};

float draw(const pdp::Pass& pass) { return Noise{}.first(pass); }
