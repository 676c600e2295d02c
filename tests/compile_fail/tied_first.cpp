// error: pdp: a model with nn::TiedOutput must begin with the nn::Embedding whose table it takes
#include <pdp/nn/linear.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/tied_output.hpp>

static_assert(pdp::nn::outline(pdp::nn::Sequential{pdp::nn::Linear{8, 8}, pdp::nn::TiedOutput{10, 8}}, pdp::Shape{8}).is_tied(0));
