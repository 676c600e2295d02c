#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

constexpr pdp::nn::Repeat deep{2, pdp::nn::Linear{8, 8}};
