// error: pdp: this remote object is not a network: make it of the type SubNetworkOf<function>
#include <pdp/core/shape.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/sub_network.hpp>

using Encoder = pdp::nn::Linear;

inline pdp::Index rows_of_output(pdp::rpc::Node& node, const pdp::rpc::Remote<Encoder>& encoder) {
  pdp::rpc::autograd::Context context{node};
  return context.forward(encoder, {1, 2, {0, 0}}).rows();
}
