// Added to whatever links pdp::cuda.
#include <pdp/cuda/source.cuh>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/sgd.hpp>

// The kernels of pdp's own rules.
template pdp::cuda::Update<pdp::optim::Sgd> pdp::cuda::update<1, pdp::optim::Sgd>;
template pdp::cuda::Update<pdp::optim::Adam> pdp::cuda::update<2, pdp::optim::Adam>;
template pdp::cuda::Update<pdp::optim::AdamW> pdp::cuda::update<2, pdp::optim::AdamW>;
