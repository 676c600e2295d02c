// error: Repeat was given a count of
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

constexpr pdp::nn::Repeat none{0, pdp::nn::Linear{8, 8}};
