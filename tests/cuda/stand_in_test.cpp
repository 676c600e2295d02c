#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/cuda/detail/cublas.hpp>
#include <pdp/nn/multilayer_perceptron.hpp>
#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/trainer.hpp>

#include <cublasLt.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "gpu.hpp"
#include "stand_in.hpp"
#include "strategy/tasks.hpp"
#include "support.hpp"

// Tests that control the device, such as its errors, memory and speed. Only the stand-in for CUDA allows that.

using pdp::cuda::Device;
using pdp::cuda::DeviceOptions;

namespace {

struct Fixture {
  Fixture() { stand_in::reset(); }
  ~Fixture() {
    CHECK(stand_in::live() == before);
    stand_in::reset();
  }
  int before = stand_in::live();
};

template <class>
struct FixtureOf : Fixture {};

std::string refusal(const DeviceOptions& options = {}) {
  return support::message_of<pdp::ConfigError>([&] { static_cast<void>(Device{options}); }).value();
}

}  // namespace

TEST_CASE("A library that cannot be loaded, or lacks a function of cuBLASLt, is reported by name", "[cuda][bad input]") {
  const auto refuse = [](const auto& load) { return support::message_of<pdp::DeviceError>(load).value(); };
  CHECK_THAT(refuse([] { static_cast<void>(pdp::cuda::load_library("libnone.so.7")); }),
             StartsWith("cannot load libnone.so.7, which computes products on a GPU: ") && Contains("No such file") &&
                 EndsWith("; install cuBLAS of the CUDA toolkit, or add its folder to LD_LIBRARY_PATH"));
  void* const c = pdp::cuda::load_library("libc.so.6");
  CHECK_THAT(refuse([&] { static_cast<void>(pdp::cuda::CublasLt{c}); }), StartsWith("cuBLASLt has no function cublasLtGetStatusString; "));
}

TEST_CASE_METHOD(Fixture, "Device reports why a GPU cannot be used: driver, CUDA version, number or architecture", "[cuda][bad input]") {
  stand_in::settings().driver = 0;
  CHECK_THAT(refusal(),
             Contains("cannot compute on GPU 0: there is no NVIDIA driver on this machine") && Contains("or compute on the CPU"));
  stand_in::settings().driver = 12020;
  CHECK_THAT(refusal(), Contains("is for CUDA 12.2, but this program was built with CUDA 13.0"));
  stand_in::settings().driver = 13000;
  stand_in::settings().devices = 0;
  CHECK_THAT(refusal(), Contains("there is no GPU that this process may use") && Contains("; compute on the CPU"));
  stand_in::settings().devices = 2;
  CHECK_THAT(refusal({.index = 2}), Contains("cannot compute on GPU 2: this process may use 2 GPUs, numbers 0 to 1"));
  CHECK_THAT(refusal({.index = -1}), Contains("cannot compute on GPU -1"));
  stand_in::settings().devices = 1;
  CHECK_THAT(refusal({.index = 1}), Contains("this process may use 1 GPU, number 0"));
  for (const cudaError_t error : {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction, cudaErrorUnsupportedPtxVersion}) {
    stand_in::settings().kernels = error;
    CHECK_THAT(refusal(), Contains("(Stand-in, compute capability 5.0): this program has no code for it"));
  }
}

TEST_CASE_METHOD(Fixture, "Device reports a busy or full GPU by DeviceError, not as one that is too old", "[cuda][bad input]") {
  const auto failure = [](const DeviceOptions& options) {
    return support::message_of<pdp::DeviceError>([&] { static_cast<void>(Device{options}); }).value();
  };
  stand_in::settings().kernels = cudaErrorMemoryAllocation;
  CHECK_THAT(failure({}), Contains("cannot compute on GPU 0: an error of the stand-in"));
  stand_in::settings().use = cudaErrorDevicesUnavailable;
  CHECK_THAT(failure({.index = 1}), Contains("GPU 1 cannot be used: an error of the stand-in"));
}

TEST_CASE_METHOD(Fixture, "A full GPU reports the requested and the free bytes", "[cuda][bad input]") {
  const auto failure = [](const auto& f) { return support::message_of<pdp::DeviceError>(f).value(); };
  {
    const Device device;
    stand_in::settings().room = 1000;
    CHECK_THAT(failure([&] { static_cast<void>(allocate<float>(device, 1000)); }),
               Contains("GPU 0 cannot allocate 4000 bytes: 1000 of 1000 bytes are free"));
    CHECK(support::message_of<pdp::ShapeError>([&] { static_cast<void>(allocate<float>(device, -1)); }).value() ==
          "cannot allocate GPU memory for -1 elements");
    auto world = pdp::comm::CudaThread::world(1);
    CHECK_THAT(failure([&] { static_cast<void>(world[0].allocate<float>(1000)); }), Contains("GPU 0 cannot allocate 4000 bytes"));
  }
  for (const std::size_t room : {std::size_t{1000}, std::size_t{20'000}}) {  // room for nothing, and for all but the workspace of products
    stand_in::settings().room = room;
    CHECK_THAT(failure([] { static_cast<void>(Device{}); }), Contains("GPU 0 cannot allocate ") && Contains(" bytes are free"));
  }
  stand_in::reset();
  stand_in::settings().host_room = 1000;
  CHECK_THAT(failure([] { static_cast<void>(Device{}); }), Contains("the host cannot pin 1048576 bytes for GPU 0"));
}

TEST_CASE_METHOD(Fixture, "Trainer records a step on its second run, for each number of rows, and launches one graph", "[cuda]") {
  {
    const Device device;
    pdp::comm::Self self;
    pdp::Trainer trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, device};
    const int launched = stand_in::graphs_launched();
    const auto products = [] { return stand_in::products(CUBLASLT_EPILOGUE_DEFAULT) + stand_in::products(CUBLASLT_EPILOGUE_BIAS); };
    const auto step = [&](pdp::Index rows) {
      trainer.step(support::normal(rows * tasks::samples(1).sample_shape().elements(), 1),
                   std::vector<std::int32_t>(static_cast<std::size_t>(rows)));
      return products();
    };
    const int first = step(16);   // runs directly
    const int second = step(16);  // is recorded and launched
    CHECK(second == 2 * first);
    CHECK(step(16) == second);  // launched without new calls
    CHECK(step(7) > second);
    const int both = step(7);
    CHECK(step(16) == both);
    CHECK(step(7) == both);
    CHECK(stand_in::graphs_launched() - launched == 5);
  }
}

TEST_CASE_METHOD(Fixture, "gemm of floats uses TF32 only if DeviceOptions::tf32 is set", "[cuda]") {
  constexpr float fine = 1 + 0x1p-12f;  // 1 in TF32
  const auto square = [](const DeviceOptions& options) {
    const Device device{options};
    const gpu::Copy<float> value{device, {fine}};
    gpu::Copy<float> product{device, {0.0f}};
    gemm(device, value.matrix(1, 1), value.matrix(1, 1), product.matrix(1, 1), false);
    return product.values().front();
  };
  CHECK(square({.tf32 = true}) == 1);
  CHECK(square({}) == fine * fine);
}

TEST_CASE_METHOD(Fixture, "Timeline measures the GPU time of each instruction, not the time to launch it", "[cuda][timeline]") {
  constexpr int milliseconds = 20;
  const auto check = [](auto& world) {
    pdp::Trainer trainer{
        world, pdp::strategy::DataParallel{}, tasks::residual_classifier(2), {.global_batch = 16}, Device{{.index = world.rank()}}};
    trainer.trace(true);
    const pdp::Index own = 16 / world.size();
    trainer.step(support::normal(own * tasks::samples(1).sample_shape().elements(), 1),
                 std::vector<std::int32_t>(static_cast<std::size_t>(own)), 16);
    const pdp::engine::Timeline timeline = trainer.timeline();
    if (world.rank() > 0) return;
    CHECK(std::ssize(timeline.times) == world.size());
    for (std::size_t rank = 0; rank < timeline.times.size(); ++rank)
      for (std::size_t i = 0; i < timeline.times[rank].size(); ++i)
        if (const auto op = timeline.lists[rank][i].op; op == pdp::plan::Op::forward || op == pdp::plan::Op::backward_weight)
          CHECK(timeline.times[rank][i].end - timeline.times[rank][i].begin >= milliseconds / 1e3);
  };
  stand_in::settings().product_milliseconds = milliseconds;
  pdp::comm::Self self;
  check(self);
  pdp::testing::ranks<pdp::comm::CudaThread>(2, [&](pdp::comm::CudaThread& world) {
    check(world);
    return 0;
  });
}

TEST_CASE_METHOD(Fixture, "Trainer trains on a GPU that is not the current device of its thread", "[cuda]") {
  CHECK(cudaSetDevice(0) == cudaSuccess);
  const Device device{{.index = 2}};
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 4, .seed = 3}, device};
  for (int step = 0; step < 3; ++step)
    CHECK(std::isfinite(
        trainer.step(support::normal(4 * tasks::samples(1).sample_shape().elements(), 1), std::vector<std::int32_t>(4)).loss));
  int current = -1;
  CHECK(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
}

TEST_CASE_METHOD(Fixture, "Trainer on GPU 3 does not use GPU 0", "[cuda]") {
  std::thread{[] {
    const Device device{{.index = 3}};
    pdp::comm::Self self;
    pdp::Trainer trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, device};
    trainer.fit(tasks::samples(64), {.epochs = 1});
  }}.join();
  CHECK(stand_in::is_in_use(3));
  CHECK_FALSE(stand_in::is_in_use(0));
}

namespace {

/// A dataset that counts its gathers.
struct Counted {
  using Target = std::int32_t;
  pdp::data::InMemory<std::int32_t> samples;
  std::atomic<int>* gathered;

  [[nodiscard]] pdp::Index size() const { return samples.size(); }
  [[nodiscard]] pdp::Shape sample_shape() const { return samples.sample_shape(); }
  [[nodiscard]] pdp::Shape target_shape() const { return samples.target_shape(); }
  void gather(std::span<const pdp::Index> which, std::span<float> x, std::span<Target> y) const {
    samples.gather(which, x, y);
    ++*gathered;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "Trainer::fit without a step callback starts the next step ahead, with equal losses", "[cuda]") {
  const Device device;
  const auto make = [](pdp::comm::Self& self, const Device& on, pdp::plan::NonFinite policy) {
    return pdp::Trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2),
                        pdp::TrainerOptions{.global_batch = 16, .seed = 3, .non_finite = policy}, on};
  };
  std::vector<double> watched, unwatched;
  pdp::comm::Self self;
  {
    auto trainer = make(self, device, pdp::plan::NonFinite::ignore);
    trainer.fit(
        tasks::samples(100), {.epochs = 3}, [&](const pdp::Epoch& epoch) { watched.push_back(epoch.loss); },
        [](std::int64_t, const auto&) {});
  }
  // While the stream is blocked, two steps start. With NonFinite::stop only one starts, since the host waits for each step. The loader
  // gathers the batches of the started steps and two more.
  for (const auto policy : {pdp::plan::NonFinite::ignore, pdp::plan::NonFinite::stop}) {
    const bool waits = policy == pdp::plan::NonFinite::stop;
    std::atomic<int> gathered = 0;
    unwatched.clear();
    auto trainer = make(self, device, policy);
    std::optional<stand_in::Hold> hold{device.stream()};
    std::jthread training{[&] {
      trainer.fit(Counted{tasks::samples(100), &gathered}, {.epochs = 3},
                  [&](const pdp::Epoch& epoch) { unwatched.push_back(epoch.loss); });
    }};
    const int expected = waits ? 3 : 4;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (gathered < expected && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    CHECK(gathered == expected);
    hold.reset();
    training.join();
    CHECK(unwatched == watched);
  }
}

TEST_CASE_METHOD(Fixture, "takes_at_once is true only if the free staging memory holds the upload", "[cuda]") {
  const Device device;
  constexpr std::size_t megabyte = std::size_t{1} << 20;
  const std::vector<float> values(megabyte / sizeof(float));
  auto there = allocate<float>(device, static_cast<pdp::Index>(values.size()));
  CHECK(takes_at_once(device, {3 * megabyte, 1}));
  CHECK_FALSE(takes_at_once(device, {4 * megabyte, 1}));
  stand_in::settings().host_room = megabyte / 2;
  CHECK_THROWS_AS(reserve_uploads(device, {5 * megabyte, megabyte}), pdp::DeviceError);
  stand_in::settings().host_room = 1000 * megabyte;
  CHECK_FALSE(takes_at_once(device, {4 * megabyte, 1}));
  reserve_uploads(device, {5 * megabyte, megabyte});
  CHECK(takes_at_once(device, {4 * megabyte, megabyte + 1}));
  {
    const stand_in::Hold hold{device.stream()};
    for (int piece = 0; piece < 2; ++piece) upload(device, std::span{values}, there.data());
    CHECK(takes_at_once(device, {4 * megabyte}));
    CHECK_FALSE(takes_at_once(device, {4 * megabyte, 1}));
  }
  device.synchronize();
  CHECK(takes_at_once(device, {4 * megabyte, 1}));
  reserve_uploads(device, {1000 * megabyte});
  CHECK(takes_at_once(device, {64 * megabyte}));
  CHECK_FALSE(takes_at_once(device, {64 * megabyte, 1}));
}

TEST_CASE_METHOD(Fixture, "Batches at ever new GPU addresses share the recorded graph of one address", "[cuda]") {
  const Device device;
  pdp::comm::Self self;
  pdp::Trainer trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 4, .seed = 3}, device};
  const pdp::Index width = tasks::samples(1).sample_shape().elements();
  constexpr int steps = 70;
  const gpu::Copy<float> x{device, support::normal(steps * 4 * width, 1)};
  const gpu::Copy<std::int32_t> classes{device, std::vector<std::int32_t>(4 * steps)};
  const int launched = stand_in::graphs_launched();
  for (std::size_t step = 0; step < steps; ++step) {
    const auto rows = x.matrix(4 * steps, width).values().subspan(step * static_cast<std::size_t>(4 * width));
    trainer.engine().start({{rows.data(), 4, width}, classes.read().subspan(4 * step, 4), 4, /*on_device*/ true});
  }
  CHECK(std::isfinite(trainer.finish().loss));
  CHECK(stand_in::graphs_launched() - launched == steps - 2);  // the first step at each of two addresses runs directly
  for (int evaluation = 0; evaluation < 3; ++evaluation)
    CHECK(std::isfinite(trainer.engine().evaluate({x.matrix(4, width), classes.read().first(4), 0, /*on_device*/ true}).loss));
  CHECK(stand_in::graphs_launched() - launched == steps - 2 + 2);  // evaluations use an address of their own
}

TEST_CASE_METHOD(Fixture, "affine adds a bias that is not aligned for a cuBLASLt epilogue", "[cuda]") {
  const Device device;
  const gpu::Copy<float> a{device, {1, 2}}, b{device, {3, 4}}, row{device, {0, 5, 6}};
  gpu::Copy<float> c{device, std::vector<float>(4)};
  affine(device, a.matrix(2, 1), b.matrix(1, 2), row.read().data() + 1, c.matrix(2, 2), pdp::Activation::none);
  CHECK(c.values() == std::vector<float>{8, 10, 11, 14});
  CHECK(stand_in::products(CUBLASLT_EPILOGUE_BIAS) == 0);
}

TEST_CASE_METHOD(Fixture, "gemm_tn overlaps with gemm_nt only if overlapped_weight_gradients is set", "[cuda]") {
  const bool overlapped = GENERATE(true, false);
  const Device device{{.overlapped_weight_gradients = overlapped}};
  const gpu::Copy<float> x{device, {1, 2}}, weight{device, {5, 6}}, gradient_y{device, {3}};
  gpu::Copy<float> gradient_x{device, {0, 0}}, gradient_weight{device, {0, 0}};
  if (overlapped) stand_in::settings().products_to_meet = 2;
  gemm_nt(device, gradient_y.matrix(1, 1), weight.matrix(2, 1), gradient_x.matrix(1, 2), false);
  gemm_tn(device, x.matrix(1, 2), gradient_y.matrix(1, 1), gradient_weight.matrix(2, 1), false);
  CHECK(gradient_x.values() == std::vector<float>{15, 18});
  CHECK(gradient_weight.values() == std::vector<float>{3, 6});
  CHECK(stand_in::products_have_met() == overlapped);
}

TEST_CASE_METHOD(Fixture, "Operations wait for an overlapped weight gradient if they use its output or overwrite its input", "[cuda]") {
  const Device device;
  gpu::Copy<float> x{device, {1, 2}}, gradient_y{device, {3}}, gradient_weight{device, {0, 0}}, ones{device, {1, 1}}, one{device, {1}};
  stand_in::settings().product_milliseconds = 20;  // an operation that does not wait runs first
  const auto compute = [&] {
    gemm_tn(device, std::as_const(x).matrix(1, 2), std::as_const(gradient_y).matrix(1, 1), gradient_weight.matrix(2, 1), false);
  };
  const std::vector<float> expected{3, 6};
  SECTION("an operation reads the gradient") {
    compute();
    gpu::Copy<float> sum{device, {0, 0}};
    add(device, std::as_const(gradient_weight).matrix(1, 2), std::as_const(ones).matrix(1, 2), sum.matrix(1, 2));
    CHECK(sum.values() == std::vector<float>{4, 7});
  }
  SECTION("an operation overwrites the gradient of the output") {
    compute();
    relu_backward(device, std::as_const(one).matrix(1, 1), std::as_const(one).matrix(1, 1), gradient_y.matrix(1, 1));
    CHECK(gradient_weight.values() == expected);
    CHECK(gradient_y.values() == std::vector<float>{1});
  }
  SECTION("an operation overwrites the input") {
    compute();
    add(device, std::as_const(ones).matrix(1, 2), std::as_const(ones).matrix(1, 2), x.matrix(1, 2));
    CHECK(gradient_weight.values() == expected);
    CHECK(x.values() == std::vector<float>{2, 2});
  }
  SECTION("copy reads the gradient") {
    compute();
    const gpu::Copy<float> copied{device, {0, 0}};
    copy(device, std::as_const(gradient_weight).matrix(1, 2), pdp::Matrix<float>{const_cast<float*>(copied.read().data()), 1, 2});
    CHECK(copied.values() == expected);
  }
}

TEST_CASE_METHOD(Fixture, "Training with overlapped weight gradients gives equal losses with and without graphs", "[cuda]") {
  const auto learn = [&](bool overlapped, bool graphs) {
    pdp::comm::Self self;
    pdp::Trainer trainer{self,
                         pdp::strategy::Single{},
                         tasks::residual_classifier(2),
                         {.global_batch = 16, .seed = 3},
                         Device{{.overlapped_weight_gradients = overlapped, .graphs = graphs}}};
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step)
      losses.push_back(
          trainer.step(support::normal(16 * tasks::samples(1).sample_shape().elements(), step), std::vector<std::int32_t>(16, step % 4))
              .loss);
    return losses;
  };
  const std::vector<double> expected = learn(false, false);
  stand_in::settings().product_milliseconds = 1;
  CHECK(learn(true, false) == expected);
  CHECK(learn(true, true) == expected);
}

TEMPLATE_TEST_CASE_METHOD(FixtureOf, "Trainer adds biases in the epilogues of products if cuBLASLt supports that", "[cuda]", pdp::Float32,
                          pdp::MixedBfloat16, pdp::MixedFloat16) {
  for (const int can_until : {2, 1, 0}) {  // 2: the epilogue runs; 1: an algorithm is found, but fails; 0: none is found
    stand_in::reset();
    stand_in::settings().epilogues = can_until > 0;
    stand_in::settings().epilogues_run = can_until > 1;
    const Device device;
    pdp::comm::Self self;
    pdp::Trainer trainer{self, pdp::strategy::Single{}, tasks::residual_classifier(2), {.global_batch = 16, .seed = 3}, device, TestType{}};
    const auto totals = trainer.step(support::normal(16 * tasks::samples(1).sample_shape().elements(), 1), std::vector<std::int32_t>(16));
    CHECK(std::isfinite(totals.loss));
    CHECK((stand_in::products(CUBLASLT_EPILOGUE_BIAS) > 0) == (can_until > 1));
  }
}

TEST_CASE_METHOD(Fixture, "affine fuses bias and Relu into one product if fused_relu is set and cuBLASLt supports it", "[cuda]") {
  const std::vector<float> of_a{1, 2, 3, 4, 5, 6}, of_b{1, -1, 0, 2, -3, 1}, of_row{-1, 8};
  for (const int can_until : {2, 1, 0})  // the epilogue runs; an algorithm is found, but fails; none is found
    for (const bool has_bias : {true, false})
      for (const bool is_allowed : {true, false}) {
        stand_in::reset();
        stand_in::settings().epilogues = can_until > 0;
        stand_in::settings().epilogues_run = can_until > 1;
        CAPTURE(can_until, has_bias, is_allowed);
        const Device device{{.fused_relu = is_allowed}};
        const gpu::Copy<float> a{device, of_a}, b{device, of_b}, row{device, of_row};
        gpu::Copy<float> c{device, std::vector<float>(4)};
        affine(device, a.matrix(2, 3), b.matrix(3, 2), has_bias ? row.read().data() : nullptr, c.matrix(2, 2), pdp::Activation::relu);
        CHECK(c.values() == (has_bias ? std::vector<float>{0, 14, 0, 20} : std::vector<float>{0, 6, 0, 12}));
        const bool can = can_until > 1 && is_allowed;
        CHECK(stand_in::products(CUBLASLT_EPILOGUE_RELU_BIAS) == (can && has_bias ? 1 : 0));
        CHECK(stand_in::products(CUBLASLT_EPILOGUE_RELU) == (can && !has_bias ? 1 : 0));
      }
}

TEST_CASE_METHOD(Fixture, "Training with fused_relu gives equal losses, with each Relu fused into a product", "[cuda]") {
  constexpr pdp::nn::Sequential model{pdp::nn::Linear{8, 12}, pdp::nn::Relu{}, pdp::nn::Linear{12, 12, false}, pdp::nn::Relu{},
                                      pdp::nn::Linear{12, 4}};
  const pdp::Task task{model, pdp::loss::CrossEntropy{}, pdp::optim::Sgd{.lr = 0.1f}};
  const auto learn = [&](bool fused) {
    pdp::comm::Self self;
    pdp::Trainer trainer{self, pdp::strategy::Single{}, task, {.global_batch = 16, .seed = 3}, Device{{.fused_relu = fused}}};
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step)
      losses.push_back(trainer.step(support::normal(16 * 8, step), std::vector<std::int32_t>(16, step % 4)).loss);
    return losses;
  };
  const auto expected = learn(false);
  CHECK(stand_in::products(CUBLASLT_EPILOGUE_RELU_BIAS) + stand_in::products(CUBLASLT_EPILOGUE_RELU) == 0);
  CHECK(learn(true) == expected);
  CHECK(stand_in::products(CUBLASLT_EPILOGUE_RELU_BIAS) == 2);  // one step that runs directly, and one that is recorded
  CHECK(stand_in::products(CUBLASLT_EPILOGUE_RELU) == 2);
}

TEMPLATE_TEST_CASE_METHOD(FixtureOf, "describe predicts the GPU memory of each rank within 8 KiB", "[cuda][describe]", pdp::Float32,
                          pdp::MixedBfloat16, pdp::Bfloat16Gradients) {
  namespace plan = pdp::plan;
  namespace strategy = pdp::strategy;
  constexpr pdp::Index inputs = 64, rows = 96;
  const pdp::Task task{pdp::nn::MultilayerPerceptron{{inputs, 128, 128, 128, 10}, pdp::nn::Tanh{}}, pdp::loss::CrossEntropy{},
                       pdp::optim::Adam{}};
  const pdp::TrainerOptions options{.global_batch = rows, .clip_norm = 1};
  const std::vector<strategy::AnyStrategy> strategies{strategy::DataParallel{},
                                                      strategy::Zero{.stage = 1},
                                                      strategy::Zero{.stage = 2, .accumulate = 3},
                                                      strategy::Zero{.stage = 3, .accumulate = 2},
                                                      strategy::Pipeline<>{.micro_batches = 4},
                                                      strategy::TensorParallel{},
                                                      strategy::Hybrid<>{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}};
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    const int ranks = s + 1 == strategies.size() ? 4 : 2;  // each on a GPU of its own
    const auto told = pdp::testing::ranks<pdp::comm::CudaThread>(ranks, [&](pdp::comm::CudaThread& world) -> std::string {
      const Device device{{.index = world.device()}};
      const std::size_t without_model = stand_in::bytes(world.device());
      pdp::Trainer trainer{world, strategies[s], task, options, device, TestType{}};
      const auto found = static_cast<pdp::Index>(stand_in::bytes(world.device()) - without_model);
      const plan::RankUse use =
          pdp::describe(task, strategies[s], world, options, device, TestType{}).ranks[static_cast<std::size_t>(world.rank())];
      constexpr bool rounds = !std::same_as<typename TestType::compute, float>;
      const pdp::Index described = use.parameters + use.gradients + use.optimizer_state + use.activations,
                       of_inputs = use.rows * (inputs * (rounds ? 6 : 4) + 4), other = 8 * 1024;
      if (described + of_inputs <= found && found <= described + of_inputs + other) return "";
      return pdp::text("strategy ", s, ", rank ", world.rank(), ": ", described, " bytes and ", of_inputs, " of inputs, but there are ",
                       found);
    });
    for (const std::string& each : told) CHECK(each == "");
  }
}

TEST_CASE_METHOD(Fixture, "replay records a body only after it has run once without an exception", "[cuda]") {
  const Device device;
  Device::Recordings recordings;
  int calls = 0;
  const auto carry_out = [&](bool fails) {
    replay(device, recordings, std::vector<pdp::Index>{1}, [&] {
      ++calls;
      if (fails) throw pdp::ConfigError{"no"};
    });
  };
  CHECK_THROWS_AS(carry_out(true), pdp::ConfigError);
  carry_out(false);
  CHECK(stand_in::graphs_launched() == 0);
  carry_out(false);
  carry_out(false);
  CHECK(stand_in::graphs_launched() == 2);
  CHECK(calls == 3);
}

TEST_CASE_METHOD(Fixture, "replay discards a recording that throws, and the device stays usable", "[cuda]") {
  const Device device;
  gpu::Copy<float> x{device, {1, -2, 3}};
  Device::Recordings recordings;
  const auto record = [&](bool fails) {
    replay(device, recordings, std::vector<pdp::Index>{1}, [&] {
      relu(device, std::as_const(x).matrix(1, 3), x.matrix(1, 3));
      if (fails) throw pdp::ConfigError{"no"};
    });
  };
  replay(device, recordings, std::vector<pdp::Index>{1}, [] {});  // runs directly
  CHECK_THROWS_AS(record(true), pdp::ConfigError);
  CHECK(x.values() == std::vector<float>{1, -2, 3});
  record(false);
  CHECK(x.values() == std::vector<float>{1, 0, 3});
}
