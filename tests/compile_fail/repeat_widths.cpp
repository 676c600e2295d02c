// error: a_layer_expects_another_width_than_the_one_before_it_gives
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

constexpr pdp::nn::Repeat deep{2, pdp::nn::Linear{8, 9}};
