// error: pdp: the model begins with a layer that cannot take the batch directly .*, or ends in an output that no loss can take
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/train/task.hpp>

namespace nn = pdp::nn;

constexpr nn::Sequential mlp{nn::Replicate{}, nn::ColumnParallel{784, 64}, nn::Relu{}, nn::RowParallel{64, 10}};
constexpr pdp::Task digits{mlp, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
