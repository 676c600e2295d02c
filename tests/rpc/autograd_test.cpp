#include <pdp/rpc/autograd.hpp>

#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/loss/mean_squared_error.hpp>
#include <pdp/loss/weighted_cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/schedule.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/rpc/distributed_optimizer.hpp>
#include <pdp/rpc/network_parameters.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/replica.hpp>
#include <pdp/rpc/sub_network.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace autograd = pdp::rpc::autograd;
namespace comm = pdp::comm;
namespace nn = pdp::nn;
namespace optim = pdp::optim;
namespace plan = pdp::plan;
using autograd::Context;
using autograd::MissingGradient;
using pdp::rpc::DistributedOptimizer;
using pdp::rpc::NetworkOptions;
using pdp::rpc::Node;
using pdp::rpc::OptimizerOptions;
using pdp::rpc::OwnedMatrix;
using pdp::rpc::Remote;
using rpc_job::message_of;

namespace {

constexpr pdp::Index width = 20, latent = 5, batch = 8;

auto encoder_model() {
  return nn::Sequential{nn::Linear{width, 12}, nn::Relu{}, nn::Residual{nn::Sequential{nn::Linear{12, 12}, nn::Tanh{}}},
                        nn::Linear{12, latent}};
}
auto decoder_model() { return nn::Sequential{nn::Relu{}, nn::Linear{latent, 12}, nn::Relu{}, nn::Linear{12, width}}; }
using Encoder = pdp::rpc::SubNetworkOf<encoder_model>;
using Decoder = pdp::rpc::SubNetworkOf<decoder_model>;

/// Returns a batch, as values of [batch, width].
std::vector<float> batch_number(int number) { return pdp::testing::normal(batch * width, number); }
OwnedMatrix rows_of(const std::vector<float>& values) { return {static_cast<pdp::Index>(values.size()) / width, width, values}; }

/// An auto-encoder whose halves live on two ranks.
struct Halves {
  Remote<Encoder> front;
  Remote<Decoder> back;

  static NetworkOptions options(int position, int devices) {
    return {.seed = 1, .position = position, .devices = devices, .inputs = position == 0 ? width : latent};
  }
  explicit Halves(Node& node, int devices = 1, const char* second = "worker2")
      : front{node.remote<Encoder>("worker1", options(0, devices))}, back{node.remote<Decoder>(second, options(1, devices))} {}

  /// Returns the loss of rows. `rows`: those of the whole batch; 0: these.
  [[nodiscard]] autograd::Loss forward(Context& context, const std::vector<float>& values, pdp::Index rows = 0) const {
    const auto code = context.forward(front, rows_of(values));
    const auto image = context.forward(back, code);
    return context.loss(pdp::loss::MeanSquaredError{}, image, values, rows);
  }
};

/// Serial training of the same auto-encoder.
template <class Rule, class Schedule = optim::Constant>
class Serial {
 public:
  explicit Serial(const Rule& rule, const Schedule& schedule = {}, double clip_norm = 0)
      : trainer_{self_, pdp::strategy::Single{},
                 pdp::Task{nn::Sequential{encoder_model(), decoder_model()}, pdp::loss::MeanSquaredError{}, rule, schedule},
                 pdp::TrainerOptions{.global_batch = batch, .seed = 1, .clip_norm = clip_norm}} {}

  double step(const std::vector<float>& values) { return trainer_.step(values, values).mean_loss(); }
  [[nodiscard]] std::vector<pdp::checkpoint::Tensor> parameters() { return trainer_.parameters(); }

 private:
  using Model = decltype(nn::Sequential{encoder_model(), decoder_model()});
  comm::Self self_;
  pdp::Trainer<comm::Self, pdp::strategy::Single, pdp::Task<Model, pdp::loss::MeanSquaredError, Rule, Schedule>> trainer_;
};

/// Returns the largest relative difference of two lists of tensors with equal names; infinity if names or shapes differ.
double difference(const std::vector<pdp::checkpoint::Tensor>& one, const std::vector<pdp::checkpoint::Tensor>& other) {
  double most = one.size() == other.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (one[i].name != other[i].name || one[i].shape != other[i].shape) return std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < one[i].values.size(); ++k)
      most = std::max(most, std::abs(static_cast<double>(one[i].values[k]) - static_cast<double>(other[i].values[k])));
  }
  return most;
}

}  // namespace

TEMPLATE_TEST_CASE("Networks on two workers train as one model on one rank", "[rpc]", comm::Thread, comm::Shm, comm::Tcp) {
  const int devices = GENERATE(1, 2);
  CAPTURE(devices);
  Serial serial{optim::Adam{.lr = 0.01f}};
  rpc_job::run<TestType>(3, [&](Node& node) {
    const Halves halves{node, devices};
    DistributedOptimizer adam{node, optim::Adam{.lr = 0.01f}, halves.front, halves.back};
    for (int step = 0; step < 100; ++step) {
      Context context{node};
      auto loss = halves.forward(context, batch_number(step));
      context.backward(loss);
      adam.step(context);
      const double expected = serial.step(batch_number(step));
      REQUIRE_THAT(loss.get(), WithinRel(expected, 1e-6));
    }
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), serial.parameters()) < 1e-5);
  });
}

TEST_CASE("Micro-batches of one Context train as one batch, with clipping and a schedule", "[rpc]") {
  const optim::WarmUp<optim::Cosine> schedule{4, {20, 0.1f}};
  Serial serial{optim::Sgd{.lr = 0.1f, .momentum = 0.9f}, schedule, 0.2};
  rpc_job::run<comm::Shm>(3, [&](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{
        node, optim::Sgd{.lr = 0.1f, .momentum = 0.9f}, schedule, OptimizerOptions{.clip_norm = 0.2}, halves.front, halves.back};
    for (int step = 0; step < 20; ++step) {
      const std::vector<float> x = batch_number(step);
      Context context{node};
      std::vector<autograd::Loss> losses;
      for (const auto& [first, last] : {std::pair{0, 3}, std::pair{3, 4}, std::pair{4, 8}}) {
        losses.push_back(halves.forward(context, {x.begin() + first * width, x.begin() + last * width}, batch));
        context.backward(losses.back());
      }
      sgd.step(context);
      double sum = 0;
      for (autograd::Loss& loss : losses) sum += loss.sums().loss;
      REQUIRE_THAT(sum / batch, WithinRel(serial.step(x), 1e-6));
    }
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), serial.parameters()) < 1e-5);
  });
}

TEST_CASE("Gradients belong to their Context if several are in flight", "[rpc]") {
  Serial serial{optim::Sgd{.lr = 0.1f}};
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{node, optim::Sgd{.lr = 0.1f}, halves.front, halves.back};
    std::optional<Context> first{node};
    Context second{node}, dropped{node};
    auto one = halves.forward(*first, batch_number(1));
    auto two = halves.forward(second, batch_number(2));
    auto three = halves.forward(dropped, batch_number(3));
    dropped.backward(three);
    second.backward(two);
    first->backward(one);
    sgd.step(*first);
    first.reset();
    CHECK_THAT(one.get(), WithinRel(serial.step(batch_number(1)), 1e-6));
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), serial.parameters()) < 1e-6);
    CHECK(halves.front.sync<&Encoder::contexts>() == 2);
  });
}

TEST_CASE("The end of a Context frees what the networks keep for it", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{node, optim::Sgd{}, halves.front, halves.back};
    for (int step = 0; step < 300; ++step) {
      Context context{node};
      auto loss = halves.forward(context, batch_number(step));
      if (step % 3 > 0) context.backward(loss);
      if (step % 3 > 1) sgd.step(context);
    }
    CHECK(halves.front.sync<&Encoder::contexts>() == 0);
    CHECK(halves.back.sync<&Decoder::contexts>() == 0);
  });
}

TEST_CASE("Gradients of an output add up if several calls and losses depend on it", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](Node& node) {
    // The same step in several ways: along one loss with twice the rate, along two equal losses, and along a gradient of the master.
    // a gradient that the master computes.
    const Halves once{node}, both{node}, given{node};
    const auto other = node.remote<Decoder>("worker1", Halves::options(1, 1));
    const std::vector<float> x = batch_number(1);
    const auto step = [&](const Halves& halves, Context& context, float rate = 0.1f) {
      DistributedOptimizer sgd{node, optim::Sgd{.lr = rate}, OptimizerOptions{}, halves.front};
      sgd.step(context);
      sgd.wait();
      return pdp::rpc::parameters(halves.front);
    };

    Context doubled{node};
    const auto code = doubled.forward(once.front, rows_of(x));
    auto loss = doubled.loss(pdp::loss::MeanSquaredError{}, doubled.forward(once.back, code), x);
    doubled.backward(loss);
    const auto expected = step(once, doubled, 0.2f);

    Context two{node};
    const auto shared = two.forward(both.front, rows_of(x));
    auto left = two.loss(pdp::loss::MeanSquaredError{}, two.forward(both.back, shared), x);
    auto right = two.loss(pdp::loss::MeanSquaredError{}, two.forward(other, shared), x);
    two.backward(left, right);
    CHECK(difference(step(both, two), expected) < 1e-6);
    CHECK(left.get() == right.get());

    Context own{node};
    const auto image = own.forward(given.back, own.forward(given.front, rows_of(x)));
    OwnedMatrix gradient = image.to_here();
    for (std::size_t i = 0; i < gradient.values.size(); ++i)
      gradient.values[i] = 4 * (gradient.values[i] - x[i]) / static_cast<float>(batch * width);
    own.backward(image, gradient);
    CHECK(difference(step(given, own), expected) < 1e-6);

    Context same{node};  // two losses of one output
    const Halves twice{node};
    const auto output = same.forward(twice.back, same.forward(twice.front, rows_of(x)));
    auto one = same.loss(pdp::loss::MeanSquaredError{}, output, x);
    auto more = same.loss(pdp::loss::MeanSquaredError{}, output, x);
    same.backward(one, more);
    CHECK(difference(step(twice, same), expected) < 1e-6);
  });
}

TEST_CASE("predict() returns what a Context computes, and set_parameters() what parameters() has returned", "[rpc]") {
  Serial serial{optim::Adam{}};
  serial.step(batch_number(1));
  const auto trained = serial.parameters();
  rpc_job::run<comm::Shm>(3, [&](Node& node) {
    const Halves halves{node, 2};
    pdp::rpc::set_parameters(trained, halves.front, halves.back);
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), trained) == 0);
    Context context{node};
    const OwnedMatrix code = context.forward(halves.front, rows_of(batch_number(2))).to_here();
    CHECK(code.values == halves.front.sync<&Encoder::predict>(rows_of(batch_number(2))).values);
    auto more = trained;
    more.push_back({"2.0.weight", {1}, {1.0f}});
    CHECK_THAT(message_of<pdp::FileError>([&] { pdp::rpc::set_parameters(more, halves.front, halves.back); }),
               Contains("'2.0.weight', which is none of the networks'"));
    more = trained;
    more.erase(more.begin());
    CHECK_THAT(message_of<pdp::FileError>([&] { pdp::rpc::set_parameters(more, halves.front, halves.back); }),
               Contains("0.0.weight") && Contains("rank 1 (worker1)"));
    more = trained;
    more.front().shape = {3};
    more.front().values.resize(3);
    CHECK_THAT(message_of<pdp::FileError>([&] { pdp::rpc::set_parameters(more, halves.front, halves.back); }), Contains("0.0.weight"));
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), trained) == 0);
  });
}

TEST_CASE("A Context reports wrong use at the caller", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{node, optim::Sgd{}, halves.front, halves.back};
    const std::vector<float> x = batch_number(1);

    Context empty{node};
    CHECK_THAT(message_of<pdp::Error>([&] { sgd.step(empty); }), Contains("backward() of this Context has not been called"));
    Context other{node};
    auto foreign = halves.forward(other, x);
    const auto output = other.forward(halves.front, rows_of(x));
    CHECK_THAT(message_of<pdp::ConfigError>([&] { empty.backward(foreign); }), Contains("of another Context"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] { empty.forward(halves.back, output); }), Contains("of another Context"));
    other.backward(foreign);
    CHECK_THAT(message_of<pdp::Error>([&] { other.backward(foreign); }), Contains("has run already"));
    sgd.step(other);
    CHECK_THAT(message_of<pdp::Error>([&] { sgd.step(other); }), Contains("has been applied already"));
    CHECK_THAT(message_of<pdp::Error>([&] { other.forward(halves.front, rows_of(x)); }), Contains("make a new Context"));
    CHECK_THAT(message_of<pdp::rpc::EmptyReference>([&] { Context{node}.forward(Remote<Encoder>{}, rows_of(x)); }),
               Contains("refers to no object"));

    Context half{node};
    auto loss = half.loss(pdp::loss::MeanSquaredError{}, half.forward(halves.front, rows_of(x)), std::vector<float>(batch * latent));
    half.backward(loss);
    CHECK_THAT(message_of<pdp::Error>([&] { sgd.step(half); }), Contains("network 1 of the optimizer has no gradient"));
    DistributedOptimizer skips{node, optim::Sgd{}, OptimizerOptions{.missing_gradient = MissingGradient::skip}, halves.front, halves.back};
    const auto before = pdp::rpc::parameters(halves.front, halves.back);
    skips.step(half);
    skips.wait();
    const auto after = pdp::rpc::parameters(halves.front, halves.back);
    CHECK(before.front().values != after.front().values);
    CHECK(before.back().values == after.back().values);

    CHECK_THAT(message_of<pdp::ConfigError>([&] {
                 DistributedOptimizer{node, optim::Sgd{}, halves.front, halves.front};
               }),
               Contains("twice"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] {
                 DistributedOptimizer{node, optim::Sgd{}, OptimizerOptions{.clip_norm = -1}, halves.front};
               }),
               Contains("clip_norm"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] {
                 DistributedOptimizer{node, optim::Sgd{}, OptimizerOptions{.steps_in_flight = 0}, halves.front};
               }),
               Contains("steps_in_flight"));
    CHECK_THAT(message_of<pdp::ConfigError>([&] {
                 DistributedOptimizer{node, optim::Sgd{}, OptimizerOptions{.non_finite = plan::NonFinite::stop_on_loss}, halves.front};
               }),
               Contains("does not know the loss"));
  });
}

TEST_CASE("No network makes a step if a pass of one of them has failed", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{node, optim::Sgd{.lr = 0.1f}, halves.front, halves.back};
    const std::vector<float> x = batch_number(1);
    const auto before = pdp::rpc::parameters(halves.front, halves.back);
    const auto unchanged = [&] { return difference(pdp::rpc::parameters(halves.front, halves.back), before) == 0; };

    {  // the second micro-batch has a wrong width
      Context context{node};
      auto good = halves.forward(context, x);
      context.backward(good);
      const auto code = context.forward(halves.front, OwnedMatrix{2, 3, std::vector<float>(6)});
      auto bad = context.loss(pdp::loss::MeanSquaredError{}, context.forward(halves.back, code), std::vector<float>(2 * width));
      context.backward(bad);
      sgd.step(context);
      const std::string message = message_of<pdp::ShapeError>([&] { bad.get(); });
      CHECK_THAT(message, Contains("the input of the network has the shape [2, 3]; expected at least one row of 20 columns"));
      CHECK_THAT(message, Contains("SubNetwork<...>::forward on rank 1 (worker1)"));
      CHECK_THAT(message_of<pdp::Error>([&] { sgd.wait(); }), Contains("no parameter was changed"));
    }
    CHECK(unchanged());
    {
      Context context{node};
      const auto image = context.forward(halves.back, context.forward(halves.front, rows_of(x)));
      auto loss = context.loss(pdp::loss::MeanSquaredError{}, image, std::vector<float>(7));
      context.backward(loss);
      sgd.step(context);
      CHECK_THAT(message_of<pdp::ShapeError>([&] { loss.get(); }),
                 Contains("the loss got 7 target values for 8 rows; expected 160") && Contains("rank 2 (worker2)"));
      CHECK_THAT(message_of<pdp::Error>([&] { sgd.wait(); }),
                 Contains("1 of 1 backward passes") && Contains("the loss got 7 target values"));
    }
    CHECK(unchanged());
    {
      Context context{node};
      DistributedOptimizer stops{node, optim::Sgd{}, OptimizerOptions{.non_finite = plan::NonFinite::stop}, halves.front, halves.back};
      std::vector<float> nan = x;
      nan[3] = std::numeric_limits<float>::quiet_NaN();
      auto loss = halves.forward(context, nan);
      context.backward(loss);
      stops.step(context);
      CHECK_THAT(message_of<pdp::NonFiniteGradient>([&] { stops.wait(); }), Contains("the gradient of"));
    }
    CHECK(unchanged());
    {
      Context context{node};
      DistributedOptimizer skips{node, optim::Sgd{}, OptimizerOptions{.non_finite = plan::NonFinite::skip}, halves.front, halves.back};
      std::vector<float> nan = x;
      nan[3] = std::numeric_limits<float>::quiet_NaN();
      auto loss = halves.forward(context, nan);
      context.backward(loss);
      skips.step(context);
      skips.wait();
    }
    CHECK(unchanged());
  });
}

TEST_CASE("A classifier on a worker reports a label that it has no output for", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves halves{node};
    Context context{node};
    const auto logits = context.forward(halves.front, rows_of(batch_number(1)));
    auto good = context.loss(pdp::loss::CrossEntropy{}, logits, {0, 1, 2, 3, 4, 0, 1, 2});
    auto bad = context.loss(pdp::loss::CrossEntropy{}, logits, {0, 1, 2, 3, 4, 5, 1, 2});
    CHECK(good.get() > 0);
    const pdp::rpc::OwnedMatrix values = logits.to_here();
    int correct = 0;
    for (int row = 0; row < batch; ++row) {
      const auto first = values.values.begin() + row * latent;
      correct += std::max_element(first, first + latent) - first == row % latent ? 1 : 0;
    }
    CHECK(good.sums().correct == correct);
    CHECK_THAT(message_of<pdp::ConfigError>([&] { bad.get(); }), Contains("5"));
  });
}

TEST_CASE("A loss on a worker is averaged by the weights of its rows", "[rpc][loss]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves halves{node};
    Context context{node};
    const auto logits = context.forward(halves.front, rows_of(batch_number(1)));
    const pdp::loss::WeightedCrossEntropy<latent> weighted{.weights = {0.5f, 4, 0, 1, 2}};
    const std::vector<std::int32_t> classes{0, 1, 2, 3, 4, 0, 1, 2};
    auto loss = context.loss(weighted, logits, classes);
    const pdp::rpc::OwnedMatrix values = logits.to_here();
    const double scale = 1;
    pdp::LossSums sums;
    pdp::loss::compute(weighted, pdp::cpu::Cpu{}, values.matrix(), std::span{classes}, &scale, pdp::Matrix<float>{}, &sums, pdp::Pass{});
    CHECK(loss.get() == Approx(sums.loss / 12));
    CHECK(loss.rows() == batch);
    CHECK_THAT(message_of<pdp::ConfigError>([&] { static_cast<void>(context.loss(weighted, logits, classes, 64)); }),
               Contains("this loss weighs rows"));
    const pdp::loss::WeightedCrossEntropy<3> wrong{.weights = {1, 1, 1}};
    CHECK_THAT(message_of<pdp::ConfigError>([&] { context.loss(wrong, logits, classes).get(); }), Contains("3 classes"));
    context.backward(loss);
  });
}

TEST_CASE("A Replica averages a gradient by the weights of its rows", "[rpc][loss]") {
  const nn::Sequential model{nn::Linear{width, 3}};
  const pdp::loss::WeightedCrossEntropy<3> weighted{.weights = {0.5f, 4, 1}};
  pdp::rpc::Replica replica{model, weighted, 5};
  const auto values = batch_number(2);
  const pdp::Matrix<const float> x{values.data(), batch, width};
  const std::vector<std::int32_t> twos(batch, 2), ones(batch, 1);
  replica.gradient_of(x, twos);
  const std::vector<float> gradient(replica.gradient().begin(), replica.gradient().end());
  pdp::rpc::Replica plain{model, pdp::loss::CrossEntropy{}, 5};
  plain.gradient_of(x, twos);  // all rows have the same weight
  CHECK(std::equal(gradient.begin(), gradient.end(), plain.gradient().begin(), plain.gradient().end()));
  CHECK(replica.gradient_of(x, ones).loss == Approx(4 * plain.gradient_of(x, ones).loss));
  CHECK_THROWS_WITH(replica.gradient_of(x, ones, 64), Contains("this loss weighs rows"));
}

TEST_CASE("The constructor of a network reports wrong options at the caller", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const auto message = [&](const NetworkOptions& options) {
      const auto network = node.remote<Decoder>("worker1", options);
      return message_of<pdp::ConfigError>([&] { network.sync<&Decoder::contexts>(); });
    };
    CHECK_THAT(message({.devices = 0, .inputs = 5}), Contains("0 devices"));
    CHECK_THAT(message({.devices = 9, .inputs = 5}), Contains("9 stages"));
  });
}

TEST_CASE("A loss that is not given to backward() has no part in the gradient", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves one{node}, other{node};
    const std::vector<float> x = batch_number(1), y = batch_number(2);
    const auto parameters_after = [&](const Halves& halves, bool has_metric, bool is_first) {
      DistributedOptimizer sgd{node, optim::Sgd{.lr = 0.1f}, halves.front, halves.back};
      Context context{node};
      const auto image = context.forward(halves.back, context.forward(halves.front, rows_of(x)));
      std::optional<autograd::Loss> metric;
      const auto measure = [&] { metric.emplace(context.loss(pdp::loss::MeanSquaredError{}, image, y)); };
      if (has_metric && is_first) measure();
      auto loss = context.loss(pdp::loss::MeanSquaredError{}, image, x);
      if (has_metric && !is_first) measure();
      context.backward(loss);
      sgd.step(context);
      sgd.wait();
      if (metric) CHECK(metric->get() != loss.get());
      return pdp::rpc::parameters(halves.front, halves.back);
    };
    const auto expected = parameters_after(one, false, false);
    CHECK(difference(parameters_after(other, true, GENERATE(false, true)), expected) == 0);
  });
}

TEST_CASE("No network makes a step if one of several gradients of an output is missing", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves halves{node};
    DistributedOptimizer sgd{node, optim::Sgd{.lr = 0.1f}, halves.front, halves.back};
    const auto before = pdp::rpc::parameters(halves.front, halves.back);
    const std::vector<float> x = batch_number(1);
    {
      Context context{node};
      const auto image = context.forward(halves.back, context.forward(halves.front, rows_of(x)));
      auto good = context.loss(pdp::loss::MeanSquaredError{}, image, x);
      auto bad = context.loss(pdp::loss::MeanSquaredError{}, image, std::vector<float>(3));
      context.backward(good, bad);
      sgd.step(context);
      CHECK_THAT(message_of<pdp::ShapeError>([&] { bad.get(); }), Contains("3 target values"));
      CHECK_THAT(message_of<pdp::Error>([&] { sgd.wait(); }), Contains("no parameter was changed") && Contains("3 target values"));
    }
    {
      Context context{node};
      const auto image = context.forward(halves.back, context.forward(halves.front, rows_of(x)));
      context.backward(image, {batch, 3, std::vector<float>(batch * 3)});
      sgd.step(context);
      CHECK_THAT(message_of<pdp::Error>([&] { sgd.wait(); }), Contains("the gradient of the network's output has the shape [8, 3]"));
    }
    CHECK(difference(pdp::rpc::parameters(halves.front, halves.back), before) == 0);
    Context context{node};
    const auto image = context.forward(halves.back, context.forward(halves.front, rows_of(x)));
    CHECK_THAT(message_of<pdp::ConfigError>([&] { static_cast<void>(context.loss(pdp::loss::MeanSquaredError{}, image, x, batch - 1)); }),
               Contains("8 rows was to be averaged over 7"));
    const auto huge = context.forward(halves.front, {pdp::Index{1} << 62, width, {}});
    CHECK_THAT(message_of<pdp::ShapeError>([&] { static_cast<void>(huge.to_here()); }), Contains("has 0 values"));
  });
}

TEST_CASE("Adam counts the steps that a network has made", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [](Node& node) {
    const Halves late{node}, fresh{node}, other{node};
    const auto step = [&](auto& adam, const auto& network, pdp::Index columns) {
      Context context{node};
      const auto inputs = static_cast<std::size_t>(batch * columns), outputs = static_cast<std::size_t>(batch * (width + latent)) - inputs;
      const auto y = context.forward(network, {batch, columns, pdp::testing::normal(inputs, 1)});
      auto loss = context.loss(pdp::loss::MeanSquaredError{}, y, std::vector<float>(outputs));
      context.backward(loss);
      adam.step(context);
      adam.wait();
    };
    const OptimizerOptions skips{.missing_gradient = MissingGradient::skip};
    DistributedOptimizer adam{node, optim::Adam{}, skips, late.front, other.back}, second{node, optim::Adam{}, skips, fresh.front};
    for (int i = 0; i < 5; ++i) step(adam, other.back, latent);  // late.front has no gradient in these
    step(adam, late.front, width);
    step(second, fresh.front, width);
    CHECK(difference(pdp::rpc::parameters(late.front), pdp::rpc::parameters(fresh.front)) == 0);
  });
}
