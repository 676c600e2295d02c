// error: pdp: layers that are divided over a tensor-parallel group cannot be in a SubNetwork
#include <pdp/nn/exchange.hpp>
#include <pdp/nn/row_parallel.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/rpc/sub_network.hpp>

namespace nn = pdp::nn;

inline auto make_divided() { return nn::Sequential{nn::Replicate{}, nn::ColumnParallel{4, 8}, nn::RowParallel{8, 2}}; }

inline pdp::rpc::SubNetworkOf<make_divided> network{pdp::rpc::NetworkOptions{}};
