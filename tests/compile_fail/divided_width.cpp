// error: a_width_cannot_be_divided_evenly
// error(g++): Divided<.*Part{0, 3}
// error(clang): in call to 'check_division\(64, 3,
#include <pdp/nn/activation.hpp>
#include <pdp/nn/divided.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Linear{784, 64}, nn::Relu{}, nn::Linear{64, 10}};
static_assert(nn::outline(nn::Divided{mlp, nn::Part{0, 3}, nn::Output::whole}, pdp::Shape{784}).size() == 5);
