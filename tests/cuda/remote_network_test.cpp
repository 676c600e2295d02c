#include <pdp/comm/thread.hpp>
#include <pdp/cuda/device.hpp>
#include <pdp/cuda/operations.hpp>
#include <pdp/cuda/update.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/distributed_optimizer.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/sub_network.hpp>
#include <pdp/testing/values.hpp>

#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace nn = pdp::nn;
using pdp::rpc::NetworkOptions;

namespace {

constexpr pdp::Index columns = 12;

auto remote_model() { return nn::Sequential{nn::Linear{columns, 8}, nn::Relu{}, nn::Linear{8, columns}}; }
using OnCpu = pdp::rpc::SubNetworkOf<remote_model>;

/// A network with its layers on two devices, which may be one GPU.
struct OnGpus : pdp::rpc::SubNetwork<decltype(remote_model()), pdp::cuda::Device> {
  explicit OnGpus(const NetworkOptions& options)
      : SubNetwork{remote_model(), options, {pdp::cuda::Device{{.index = 0}}, pdp::cuda::Device{{.index = 0}}}} {}
};

}  // namespace

TEST_CASE("Networks on GPUs of workers train as on CPUs", "[cuda][rpc]") {
  rpc_job::run<pdp::comm::Thread>(3, [](pdp::rpc::Node& node) {
    const auto losses_of = [&](const auto& front, const auto& back) {
      pdp::rpc::DistributedOptimizer adam{node, pdp::optim::Adam{.lr = 0.01f}, pdp::rpc::OptimizerOptions{.clip_norm = 0.5}, front, back};
      std::vector<double> losses;
      for (int step = 0; step < 10; ++step) {
        pdp::rpc::autograd::Context context{node};
        const auto x = pdp::testing::normal(5 * columns, step);
        const auto y = context.forward(back, context.forward(front, {5, columns, x}));
        auto loss = context.loss(pdp::loss::MeanSquaredError{}, y, x);
        auto same = context.loss(pdp::loss::MeanSquaredError{}, y, x);
        context.backward(loss, same);
        adam.step(context);
        losses.push_back(loss.get());
      }
      return losses;
    };
    const NetworkOptions first{.seed = 1, .position = 0}, second{.seed = 1, .position = 1};
    const auto expected = losses_of(node.remote<OnCpu>("worker1", first), node.remote<OnCpu>("worker2", second));
    const auto found = losses_of(node.remote<OnGpus>("worker1", first), node.remote<OnGpus>("worker2", second));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK_THAT(found[i], WithinRel(expected[i], 1e-4));
  });
}
