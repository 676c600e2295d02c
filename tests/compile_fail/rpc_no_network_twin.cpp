#include <pdp/core/shape.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/sub_network.hpp>

inline auto make_encoder() { return pdp::nn::Sequential{pdp::nn::Linear{2, 3}}; }

using Encoder = pdp::rpc::SubNetworkOf<make_encoder>;

inline pdp::Index rows_of_output(pdp::rpc::Node& node, const pdp::rpc::Remote<Encoder>& encoder) {
  pdp::rpc::autograd::Context context{node};
  return context.forward(encoder, {1, 2, {0, 0}}).rows();
}
