// error: pdp: remote networks take no parameter groups
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/grouped.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/rpc/distributed_optimizer.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/sub_network.hpp>

inline auto make_decoder() { return pdp::nn::Sequential{pdp::nn::Linear{3, 2}}; }

using Decoder = pdp::rpc::SubNetworkOf<make_decoder>;

inline void train(pdp::rpc::Node& node, const pdp::rpc::Remote<Decoder>& decoder) {
  pdp::rpc::DistributedOptimizer rule{node, pdp::optim::Grouped{pdp::optim::Sgd{.lr = 0.1f}, pdp::optim::no_decay_on_biases_and_norms},
                                      decoder};
}
