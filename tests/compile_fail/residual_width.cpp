// error: a_residual_block_gives_another_width_than_it_takes
// error(g++): in .*constexpr.* expansion of .*Residual<.*{16, 32
// error(clang): in call to 'Residual\(.*{16, 32
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>

namespace nn = pdp::nn;

constexpr nn::Residual block{nn::Sequential{nn::Linear{64, 16}, nn::Linear{16, 32}}};
