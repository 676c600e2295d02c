// Compiled once for a program.
#include <pdp/comm/operation.hpp>
#include <pdp/cuda/source.cuh>
#include <pdp/loss/binary_cross_entropy.hpp>
#include <pdp/loss/huber_loss.hpp>
#include <pdp/loss/l1.hpp>
#include <pdp/nn/activations.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/averaged.hpp>
#include <pdp/optim/sgd.hpp>

// The kernels of pdp's own activation functions.
template struct pdp::cuda::Map<pdp::nn::functions::Sigmoid, float>;
template struct pdp::cuda::Map<pdp::nn::functions::Sigmoid, pdp::BFloat16>;
template struct pdp::cuda::Map<pdp::nn::functions::Sigmoid, pdp::Float16>;
template struct pdp::cuda::Map<pdp::nn::functions::Silu, float>;
template struct pdp::cuda::Map<pdp::nn::functions::Silu, pdp::BFloat16>;
template struct pdp::cuda::Map<pdp::nn::functions::Silu, pdp::Float16>;
template struct pdp::cuda::Map<pdp::nn::functions::Gelu, float>;
template struct pdp::cuda::Map<pdp::nn::functions::Gelu, pdp::BFloat16>;
template struct pdp::cuda::Map<pdp::nn::functions::Gelu, pdp::Float16>;
template struct pdp::cuda::Map<pdp::nn::functions::LeakyRelu, float>;
template struct pdp::cuda::Map<pdp::nn::functions::LeakyRelu, pdp::BFloat16>;
template struct pdp::cuda::Map<pdp::nn::functions::LeakyRelu, pdp::Float16>;

// The kernels of pdp's own losses.
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::AbsoluteError, float>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::AbsoluteError, pdp::BFloat16>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::AbsoluteError, pdp::Float16>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::Huber, float>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::Huber, pdp::BFloat16>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::Huber, pdp::Float16>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::BinaryCrossEntropy, float>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::BinaryCrossEntropy, pdp::BFloat16>;
template struct pdp::cuda::ElementwiseLoss<pdp::loss::functions::BinaryCrossEntropy, pdp::Float16>;

// The kernels of pdp's own optimizer rules.
template pdp::cuda::Update<pdp::optim::AddChange> pdp::cuda::update<0, pdp::optim::AddChange>;
template pdp::cuda::Update<pdp::optim::AddChange, pdp::BFloat16> pdp::cuda::update<0, pdp::optim::AddChange>;
template pdp::cuda::Update<pdp::optim::AddChange, pdp::Float16> pdp::cuda::update<0, pdp::optim::AddChange>;
template pdp::cuda::Update<pdp::optim::Sgd> pdp::cuda::update<1, pdp::optim::Sgd>;
template pdp::cuda::Update<pdp::optim::Adam> pdp::cuda::update<2, pdp::optim::Adam>;
template pdp::cuda::Update<pdp::optim::AdamW> pdp::cuda::update<2, pdp::optim::AdamW>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Sgd>> pdp::cuda::update<2, pdp::optim::Averaged<pdp::optim::Sgd>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Adam>> pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::Adam>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::AdamW>> pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::AdamW>>;
template pdp::cuda::Update<pdp::optim::Sgd, pdp::BFloat16> pdp::cuda::update<1, pdp::optim::Sgd>;
template pdp::cuda::Update<pdp::optim::Adam, pdp::BFloat16> pdp::cuda::update<2, pdp::optim::Adam>;
template pdp::cuda::Update<pdp::optim::AdamW, pdp::BFloat16> pdp::cuda::update<2, pdp::optim::AdamW>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Sgd>, pdp::BFloat16>
    pdp::cuda::update<2, pdp::optim::Averaged<pdp::optim::Sgd>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Adam>, pdp::BFloat16>
    pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::Adam>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::AdamW>, pdp::BFloat16>
    pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::AdamW>>;
template pdp::cuda::Update<pdp::optim::Sgd, pdp::Float16> pdp::cuda::update<1, pdp::optim::Sgd>;
template pdp::cuda::Update<pdp::optim::Adam, pdp::Float16> pdp::cuda::update<2, pdp::optim::Adam>;
template pdp::cuda::Update<pdp::optim::AdamW, pdp::Float16> pdp::cuda::update<2, pdp::optim::AdamW>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Sgd>, pdp::Float16> pdp::cuda::update<2, pdp::optim::Averaged<pdp::optim::Sgd>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::Adam>, pdp::Float16>
    pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::Adam>>;
template pdp::cuda::Update<pdp::optim::Averaged<pdp::optim::AdamW>, pdp::Float16>
    pdp::cuda::update<3, pdp::optim::Averaged<pdp::optim::AdamW>>;

namespace pdp::cuda {

// The kernels of the reductions of pdp's communicators.
using comm::Sum, comm::Product, comm::Min, comm::Max, comm::BitAnd, comm::BitOr;
template struct Reductions<float, Sum, Product, Min, Max>;
template struct Reductions<double, Sum, Product, Min, Max>;
template struct Reductions<BFloat16, Sum, Product, Min, Max>;
template struct Reductions<Float16, Sum, Product, Min, Max>;
template struct Reductions<unsigned char, Sum, Product, Min, Max, BitAnd, BitOr>;
template struct Reductions<std::int8_t, Sum, Product, Min, Max, BitAnd, BitOr>;
template struct Reductions<std::int32_t, Sum, Product, Min, Max, BitAnd, BitOr>;
template struct Reductions<std::int64_t, Sum, Product, Min, Max, BitAnd, BitOr>;

}  // namespace pdp::cuda
