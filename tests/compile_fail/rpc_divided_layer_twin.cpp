#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/rpc/sub_network.hpp>

namespace nn = pdp::nn;

inline auto make_divided() { return nn::Sequential{nn::Linear{4, 8}, nn::Linear{8, 2}}; }

inline pdp::rpc::SubNetworkOf<make_divided> network{pdp::rpc::NetworkOptions{}};
