#include <pdp/cuda/kernels/update.cuh>

#include "rule.hpp"

template pdp::cuda::Update<SignDescent> pdp::cuda::update<1, SignDescent>;
