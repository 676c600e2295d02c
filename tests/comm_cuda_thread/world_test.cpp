// Tests of CudaThread only: the assignment of GPUs, streams, and failures. They run on the stand-in for CUDA.
#include <pdp/comm/checked.hpp>
#include <pdp/comm/cuda_thread.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "comm/failures.hpp"
#include "comm/findings.hpp"
#include "stand_in.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;
using comm::CudaThread;
using pdp::testing::Thrown;

namespace {

/// Resets the stand-in before a test. Checks after the test that all objects are freed.
struct Fixture {
  Fixture() { stand_in::reset(); }
  Fixture(Fixture&&) = delete;
  ~Fixture() { CHECK(stand_in::live() == before); }

  int before = stand_in::live();
};

/// Values in the memory of a rank's GPU.
template <class T>
class Values {
 public:
  Values(CudaThread& world, const std::vector<T>& values) : memory_{world.allocate<T>(values.size())} {
    cudaMemcpy(memory_.data(), values.data(), values.size() * sizeof(T), cudaMemcpyDefault);
  }
  Values(CudaThread& world, std::size_t count, T value) : Values{world, std::vector<T>(count, value)} {}
  [[nodiscard]] std::span<T> span() { return memory_.span(); }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(memory_.size());
    cudaMemcpy(values.data(), memory_.data(), values.size() * sizeof(T), cudaMemcpyDefault);
    return values;
  }

 private:
  comm::Registered<T, true> memory_;
};

/// A user-defined operation, for which pdp has no kernel.
struct BothNegative {
  static constexpr comm::Reduction reduction = comm::Reduction::bit_and;
  static constexpr float combine(float left, float right) { return left < 0 && right < 0 ? -1.0f : 0.0f; }
};

/// Runs f(world) on one rank for each of these GPUs. Returns what each rank throws.
template <class F>
std::vector<Thrown> on_devices(const std::vector<int>& devices, F&& f) {
  std::vector<Thrown> thrown(devices.size());
  std::vector<CudaThread> ranks = CudaThread::world_on(devices);
  {
    std::vector<std::jthread> threads;
    for (CudaThread& rank : ranks)
      threads.emplace_back([&f, &error = thrown[static_cast<std::size_t>(rank.rank())], world = std::move(rank)]() mutable {
        error = failures::thrown_by([&] { f(world); });
      });
  }
  return thrown;
}

class OwnStream {
 public:
  explicit OwnStream(const CudaThread& world) {
    cudaSetDevice(world.device());
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  OwnStream(OwnStream&&) = delete;
  ~OwnStream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace

TEST_CASE("CudaThread::world assigns the GPUs in turn, and world_on the given ones", "[comm][cuda_thread][start]") {
  const Fixture fixture;
  stand_in::settings().devices = 2;
  std::vector<int> found;
  for (const CudaThread& rank : CudaThread::world(5)) found.push_back(rank.device());
  CHECK(found == std::vector<int>{0, 1, 0, 1, 0});
  const std::vector<int> devices = GENERATE(std::vector<int>{0, 0}, std::vector<int>{1, 0}, std::vector<int>{1, 1, 0});
  std::atomic<int> wrong = 0;
  const auto thrown = on_devices(devices, [&](CudaThread& world) {
    if (world.device() != devices[static_cast<std::size_t>(world.rank())]) ++wrong;
    Values<int> values{world, 1000, world.rank() + 1};
    world.all_reduce(values.span(), comm::Sum{});
    const int size = world.size();
    if (values.read() != std::vector<int>(1000, size * (size + 1) / 2)) ++wrong;
  });
  for (const Thrown& error : thrown) CHECK_FALSE(error);
  CHECK(wrong == 0);
}

TEST_CASE("CudaThread::world throws ConfigError with the reason if it cannot make a world", "[comm][cuda_thread][start]") {
  const Fixture fixture;
  const auto message = [](auto&& make) {
    const Thrown error = failures::thrown_by(make);
    return error.is<pdp::ConfigError>() ? error.what() : "no ConfigError: " + error.what();
  };
  CHECK_THAT(message([] { CudaThread::world(0); }), Contains("a world needs at least 1 rank; 0 were requested"));
  CHECK_THAT(message([] { CudaThread::world(65); }), Contains("a process can have 1 to 64 GPU ranks; 65 were requested"));
  CHECK_THAT(message([] { CudaThread::world_on({0, 8}); }), Contains("rank 1 is set to use GPU 8, but this process may use 8 GPUs"));
  stand_in::settings().reach = false;
  CHECK_THAT(message([] { CudaThread::world_on({2, 2, 3}); }), Contains("GPU 3 of rank 2 has no peer access to GPU 2 of rank 0"));
  CHECK(CudaThread::world_on({2, 2}).size() == 2);
  stand_in::settings().devices = 0;
  CHECK_THAT(message([] { CudaThread::world(2); }), Contains("threads cannot use GPUs: there is no GPU that this process may use"));
  stand_in::settings().driver = 0;
  CHECK_THAT(message([] { CudaThread::world(2); }), Contains("there is no NVIDIA driver on this machine"));
  stand_in::reset();
}

TEST_CASE("CudaThread orders a call after the caller's stream without blocking the thread", "[comm][cuda_thread][stream]") {
  const Fixture fixture;
  stand_in::settings().devices = GENERATE(1, 2);
  check_on_ranks<CudaThread>(2, [](CudaThread& world, Findings& findings) {
    const OwnStream stream{world};
    world.caller(stream);
    findings.expect(world.caller() == stream, "the caller's stream");
    Values<float> values{world, 1000, 1.f}, ones{world, 1000, 1.f}, threes{world, 1000, 3.f}, message{world, 1000, 0.f},
        copy{world, 1000, 0.f};
    const int other = 1 - world.rank();
    world.barrier();
    {
      const stand_in::Hold hold{stream};
      cudaMemcpyAsync(values.span().data(), threes.span().data(), 4000, cudaMemcpyDefault, stream);
      auto sum = world.all_reduce_async(values.span(), comm::Sum{});
      auto exchange = world.send_recv_async(ones.span(), other, message.span(), other);
      for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(1ms);
        findings.expect(!sum.done() && !exchange.done(), "nothing begins before the caller's stream has come to it");
      }
      sum.wait_on(stream);
      exchange.wait_on(stream);
      findings.expect(!sum.pending() && sum.done(), "nothing is pending once a stream waits");
      cudaMemcpyAsync(copy.span().data(), message.span().data(), 4000, cudaMemcpyDefault, stream);
    }
    cudaStreamSynchronize(stream);
    findings.expect(values.read() == std::vector<float>(1000, 6) && message.read() == ones.read(), "the sum, and the message");
    findings.expect(copy.read() == ones.read(), "what a stream does after it has waited");
    world.barrier();
  });
}

TEST_CASE("CudaThread accepts several calls of a group before the first one runs", "[comm][cuda_thread][stream]") {
  const Fixture fixture;
  check_on_ranks<CudaThread>(3, [](CudaThread& world, Findings& findings) {
    const OwnStream stream{world};
    world.caller(stream);
    Values<std::int64_t> values{world, 100, 1}, all{world, 300, 0};
    for (int round = 0; round < 5; ++round) {
      std::optional<stand_in::Hold> hold;
      if (world.rank() == round % 3) hold.emplace(stream);
      auto sum = world.all_reduce_async(values.span(), comm::Sum{});
      auto gathered = world.all_gather_async(values.span(), all.span());
      auto scattered = world.reduce_scatter_async(all.span(), values.span(), comm::Max{});
      gathered.wait_on(stream);
      sum.wait_on(stream);
      scattered.wait_on(stream);
    }
    world.barrier();
    findings.expect(values.read() == std::vector<std::int64_t>(100, 243), "the last of many sums");
  });
}

TEST_CASE("CudaThread reuses its events when calls are repeated", "[comm][cuda_thread]") {
  const Fixture fixture;
  check_on_ranks<CudaThread>(3, [](CudaThread& world, Findings& findings) {
    Values<float> values{world, 100, 0.f}, shard{world, 1, 0.f};
    const auto calls = [&] {
      world.all_reduce(values.span(), comm::Average{});
      world.send_recv(shard.span(), (world.rank() + 1) % 3, values.span().first(1), (world.rank() + 2) % 3);
      world.barrier();
    };
    for (int i = 0; i < 20; ++i) calls();
    world.barrier();
    const int before = stand_in::live();
    world.barrier();
    for (int i = 0; i < 50; ++i) calls();
    world.barrier();
    findings.expect(stand_in::live() <= before + 3, pdp::text(stand_in::live() - before, " events more"));
    world.barrier();
  });
}

TEST_CASE("CudaThread rejects memory of the host or another GPU, and the world remains usable", "[comm][cuda_thread][argument]") {
  const Fixture fixture;
  check_on_ranks<CudaThread>(2, [](CudaThread& world, Findings& findings) {
    std::vector<float> memory(8);
    const std::span host{memory};
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { world.all_reduce(host, comm::Sum{}); }, [&] { world.broadcast(host, 0); }, [&] { world.send(host, 1 - world.rank()); },
             [&] { world.recv(host, 1 - world.rank()); }, [&] { world.all_gather(host.first(4), host); },
             [&] { world.all_to_all(host.first(4), host.last(4)); }}) {
      const Thrown refused = failures::thrown_by(call);
      findings.expect(
          refused.is<pdp::ConfigError>() && refused.what().find("was given host memory, but needs memory of GPU") != std::string::npos,
          refused.what());
    }
    cudaSetDevice(7);
    void* elsewhere = nullptr;
    cudaMalloc(&elsewhere, 32);
    const Thrown refused = failures::thrown_by([&] { world.all_reduce(std::span{static_cast<float*>(elsewhere), 8}, comm::Sum{}); });
    findings.expect(refused.what().find("was given memory of GPU 7, but this rank's calls run on GPU") != std::string::npos,
                    refused.what());
    cudaFree(elsewhere);
    world.barrier();
  });
}

TEST_CASE("CudaThread rejects an operation without a kernel, and the world remains usable", "[comm][cuda_thread][argument]") {
  const Fixture fixture;
  check_on_ranks<CudaThread>(2, [](CudaThread& world, Findings& findings) {
    comm::Registered<float, true> values = world.allocate<float>(4);
    const Thrown refused = failures::thrown_by([&] { world.all_reduce(values, BothNegative{}); });
    findings.expect(
        refused.is<pdp::ConfigError>() && refused.what().find("there is no bitwise and of float32 on a GPU") != std::string::npos,
        refused.what());
    world.broadcast(values, 0);
  });
}

TEST_CASE("CudaThread::allocate returns zeroed memory of the rank's GPU, which may outlive the world", "[comm][cuda_thread][allocate]") {
  const Fixture fixture;
  std::vector<comm::Registered<float, true>> kept(2);
  check_on_ranks<CudaThread>(2, [&](CudaThread& world, Findings& findings) {
    comm::Registered<float, true> values = world.allocate<float>(10'001);
    cudaPointerAttributes found{};
    cudaPointerGetAttributes(&found, values.data());
    findings.expect(found.type == cudaMemoryTypeDevice && found.device == world.device(), "memory of the GPU");
    findings.expect(values.size() == 10'001 && std::ranges::count(values, 0.f) == 10'001, "zeros");
    findings.expect(world.allocate<double>(0).size() == 0, "nothing");
    kept[static_cast<std::size_t>(world.rank())] = std::move(values);
  });
  CHECK(kept[1].size() == 10'001);
}

TEST_CASE("Checked over Instrumented CudaThread gives correct results", "[comm][cuda_thread][checked]") {
  const Fixture fixture;
  check_on_ranks<CudaThread>(3, [](CudaThread& world, Findings& findings) {
    Values<int> values{world, 30, 1}, shard{world, 10, 0};
    comm::Checked checked{comm::Instrumented{std::move(world)}};
    static_assert(comm::HasDeviceBuffers<decltype(checked)> && comm::RankOrdered<decltype(checked)>);
    checked.all_reduce(values.span(), comm::Sum{});
    checked.reduce_scatter(values.span(), shard.span(), comm::Sum{});
    comm::Checked part = checked.split(checked.rank() == 2 ? 1 : 0, 0);
    part.all_reduce(shard.span(), comm::Max{});
    findings.expect(shard.read() == std::vector<int>(10, 9) && part.size() == (checked.rank() == 2 ? 1 : 2), "a sum, and a group");
  });
}

TEST_CASE("CudaThread throws MismatchedCollective with both calls only if calls differ", "[comm][cuda_thread][mismatch]") {
  const Fixture fixture;
  const int what = GENERATE(0, 1, 2, 3, 4, 5);
  const auto errors = pdp::testing::errors<CudaThread>(2, [what](CudaThread& world) {
    Values<float> values{world, 8, 1.f}, other{world, 8, 1.f};
    const bool first = world.rank() == 0;
    const auto some = values.span().first(first ? 8 : 7);
    switch (what) {
      case 0:
        return world.all_reduce(some, comm::Sum{});
      case 1:
        return first ? world.barrier() : world.broadcast(values.span(), 0);
      case 2:
        return world.broadcast(values.span(), world.rank());
      case 3:
        return first ? world.send(some, 1, 3) : world.recv(some, 0, 3);
      case 4:
        return world.all_gather(values.span().first(3), other.span().first(6), std::array<std::size_t, 2>{3, 3});
      default: {
        const std::array<std::size_t, 2> sent{2, 4}, received{2, first ? std::size_t{4} : std::size_t{3}};
        return world.all_to_all(values.span().first(6), sent, other.span().first(2 + received[1]), received);
      }
    }
  });
  static constexpr std::array<std::array<const char*, 2>, 6> words{
      {{"all_reduce of 8 float32 on rank", "all_reduce of 7 float32 on rank"},
       {"barrier on rank 0", "broadcast of 8 float32 with root 0 on rank 1"},
       {"with root 0 on rank 0", "with root 1 on rank 1"},
       {"send of 8 float32 with tag 3", "send of 7 float32 with tag 3"},
       {"", ""},
       {"passed different counts to one call: all_to_all", ", which expects "}}};
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>() == (what != 4));
    if (what != 4)
      CHECK_THAT(error.what(), Contains(words[static_cast<std::size_t>(what)][0]) && Contains(words[static_cast<std::size_t>(what)][1]));
  }
}

TEST_CASE("CudaThread throws MismatchedCollective if ranks give different counts", "[comm][cuda_thread][mismatch]") {
  const Fixture fixture;
  const auto errors = pdp::testing::errors<CudaThread>(3, [](CudaThread& world) {
    Values<float> shard{world, 2, 1.f}, whole{world, 6, 1.f};
    const std::array<std::size_t, 3> counts = world.rank() == 2 ? std::array<std::size_t, 3>{3, 1, 2} : std::array<std::size_t, 3>{2, 2, 2};
    world.all_gather(shard.span(), whole.span(), counts);
  });
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains("passed different counts to one call: all_gather of 6 float32"));
  }
}

TEST_CASE("CudaThread throws Timeout in every kind of wait for a rank that never makes its call", "[comm][cuda_thread][failure]") {
  const Fixture fixture;
  const int what = GENERATE(0, 1, 2, 3, 4, 5);
  std::atomic<int> left = 0;
  const auto errors = pdp::testing::errors<CudaThread>(3, [&, what](CudaThread& world) {
    if (world.rank() == 2) {  // stays in the world, but makes no call
      while (left < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    struct Leaves {
      std::atomic<int>& count;
      ~Leaves() { ++count; }
    } leaves{left};
    Values<int> values{world, 30, 1}, other{world, 30, 1};
    world.deadline(100ms);
    switch (what) {
      case 0:
        return world.broadcast(values.span(), 2);
      case 1:
        return world.recv(values.span(), 2, 7);
      case 2:
        return static_cast<void>(world.split(0, 0));
      case 3: {
        auto work = world.all_to_all_async(values.span(), other.span());
        while (!work.done()) std::this_thread::sleep_for(1ms), std::ignore = failures::thrown_by([&] { world.barrier(); });
        return work.wait();
      }
      case 4:
        return world.send(values.span(), 2, 7);
      default:
        return world.all_reduce_async(values.span(), comm::Sum{}).wait_on(nullptr);
    }
  });
  for (const int rank : {0, 1}) {
    const Thrown& error = errors[static_cast<std::size_t>(rank)];
    CHECK(error.is<pdp::Timeout>());
    CHECK_THAT(error.what(), Contains(" waited 100 ms for ") && Contains("and heard nothing from rank "));
    if (what == 1 || what == 4) CHECK_THAT(error.what(), Contains("send of 30 int32 with tag 7 and heard nothing from rank 2"));
  }
}

TEST_CASE("CudaThread throws Timeout on every rank if the callers' streams do not progress", "[comm][cuda_thread][failure]") {
  const Fixture fixture;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<CudaThread>(2, [](CudaThread& world) {
    const OwnStream stream{world};
    Values<float> values{world, 8, 1.f};
    world.barrier();
    world.caller(stream);
    world.deadline(200ms);
    auto hold = std::make_unique<stand_in::Hold>(stream);
    std::jthread later{[&] {
      std::this_thread::sleep_for(600ms);
      hold.reset();
    }};
    const Thrown error = failures::thrown_by([&] { world.all_reduce(values.span(), comm::Sum{}); });
    later.join();
    cudaStreamSynchronize(stream);
    world.caller(nullptr);
    error.rethrow();
  });
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::Timeout>());
    CHECK_THAT(error.what(), Contains("waited 200 ms for the GPUs to complete all_reduce of 8 float32"));
  }
}

TEST_CASE("CudaThread finishes the queued calls of a failed world before their memory is freed", "[comm][cuda_thread][failure]") {
  const Fixture fixture;
  const auto errors = pdp::testing::errors<CudaThread>(3, [](CudaThread& world) {
    const OwnStream stream{world};
    world.caller(stream);
    auto values = std::make_unique<Values<float>>(world, std::size_t{100'000}, 1.f);
    world.barrier();
    auto sum = world.all_reduce_async(values->span(), comm::Sum{});
    auto next = world.all_reduce_async(values->span(), comm::Sum{});
    if (world.rank() == 1) throw std::runtime_error{"no more"};
    sum.wait_on(stream);
    next.wait_on(stream);
    world.barrier();
  });
  CHECK(errors[1].what() == "no more");
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) CHECK(errors[rank].lost_rank() == 1);
}

TEST_CASE("launch::run starts CudaThread ranks as threads and rejects processes", "[comm][cuda_thread][launch]") {
  const Fixture fixture;
  stand_in::settings().devices = 2;
  std::atomic<int> sum = 0;
  const auto f = [&](CudaThread& world) {
    Values<int> values{world, 10, world.rank()};
    world.all_reduce(values.span(), comm::Sum{});
    sum += values.read()[9] * 10 + world.device();
  };
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 3}, f) == 0);
  CHECK(sum == 3 * 30 + 1);
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 3, .comm = "cuda_thread"}, f) == 0);
  CHECK(sum == 2 * (3 * 30 + 1));
  sum = 0;
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 3, .comm = "thread"}, f) == 2);
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{}, f) == 0);  // a world of one
  CHECK(sum == 0);
  // A generic function gets a CudaThread, too: a comm::Any has no device().
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 3}, [&](auto& world) { sum += world.device(); }) == 0);
  CHECK(sum == 1);
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.ranks = 3}, f) == 2);
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 2}, [](CudaThread& world) {
          if (world.rank() == 1) throw pdp::ShapeError{"no"};
          world.barrier();
        }) == 1);
  stand_in::settings().devices = 0;
  CHECK(pdp::launch::run<CudaThread>(pdp::launch::Options{.threads = 2}, f) == 1);
  stand_in::reset();
}
