#include <pdp/nn/embedding.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/nn/tied_output.hpp>

static_assert(pdp::nn::outline(pdp::nn::Sequential{pdp::nn::Embedding{10, 8}, pdp::nn::TiedOutput{10, 8}}, pdp::Shape{8}).is_tied(0));
