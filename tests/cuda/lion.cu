// The kernel of a rule of the tests' own.
#include <pdp/cuda/kernels/update.cuh>

#include "../../examples/docs/lion.hpp"

template pdp::cuda::Update<Lion> pdp::cuda::update<1, Lion>;
