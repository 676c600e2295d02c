// The kernels of a loss function of the tests' own.
#include <pdp/cuda/kernels/elementwise_loss.cuh>

#include "../../examples/docs/log_cosh.hpp"

template struct pdp::cuda::ElementwiseLoss<LogCosh, float>;
template struct pdp::cuda::ElementwiseLoss<LogCosh, pdp::BFloat16>;
template struct pdp::cuda::ElementwiseLoss<LogCosh, pdp::Float16>;
