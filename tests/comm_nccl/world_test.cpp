// Tests of Nccl only: the assignment of GPUs, the start, streams, memory and failures. They run on the stand-in for NCCL.
#include <pdp/comm/checked.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/nccl.hpp>
#include <pdp/launch/join.hpp>
#include <pdp/testing/ranks.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <numeric>
#include <tuple>

#include "comm/conformance.hpp"
#include "comm/failures.hpp"
#include "staged.hpp"
#include "stand_in.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;
using comm::Nccl;
using pdp::testing::Thrown;

namespace {

/// Resets the stand-in before a test. Checks after the test that all objects but `left` of them are freed.
struct Fixture {
  Fixture() { stand_in::reset(); }
  Fixture(Fixture&&) = delete;
  ~Fixture() { CHECK(stand_in::live() - before == left); }

  int before = stand_in::live();
  int left = 0;
};

/// Runs f(rank) for each rank on a thread of its own. Returns what each of them throws.
template <class F>
std::vector<Thrown> on_threads(int size, F&& f) {
  std::vector<Thrown> thrown(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] { thrown[static_cast<std::size_t>(rank)] = failures::thrown_by([&] { f(rank); }); });
  }
  return thrown;
}
void check_all_went_well(const std::vector<Thrown>& thrown) {
  for (const Thrown& error : thrown) CHECK(error.what() == "nothing was thrown");
}
std::vector<Thrown> connect(int size, comm::Duration time, const std::function<void(int, Nccl&)>& f = {},
                            const std::function<comm::nccl::Options(int)>& options = {}) {
  pdp::launch::InProcessStore store;
  return on_threads(size, [&](int rank) {
    Nccl world = Nccl::connect(store, rank, size, comm::Clock::now() + time, options ? options(rank) : comm::nccl::Options{});
    if (f) f(rank, world);
  });
}

/// Values in device memory.
template <class T>
class Values {
 public:
  explicit Values(const std::vector<T>& values) : memory_{values.size() * sizeof(T)}, count_{values.size()} {
    cudaMemcpy(memory_.data(), values.data(), count_ * sizeof(T), cudaMemcpyDefault);
  }
  Values(std::size_t count, T value) : Values{std::vector<T>(count, value)} {}
  [[nodiscard]] std::span<T> span() const { return {reinterpret_cast<T*>(memory_.data()), count_}; }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), memory_.data(), count_ * sizeof(T), cudaMemcpyDefault);
    return values;
  }

 private:
  DeviceMemory memory_;
  std::size_t count_;
};

}  // namespace

TEST_CASE("Nccl gives each rank a GPU of its own and makes it current for the rank's thread", "[comm][nccl][start]") {
  const Fixture fixture;
  check_all_went_well(connect(4, 20s, [](int rank, Nccl& world) {
    int current = -1;
    cudaGetDevice(&current);
    if (world.device() != rank || current != rank) throw std::logic_error{"another device"};
  }));
  SECTION("or gives it the GPU that its options name") {
    check_all_went_well(connect(
        2, 20s,
        [](int rank, Nccl& world) {
          if (world.device() != 5 - rank) throw std::logic_error{"another device"};
        },
        [](int rank) { return comm::nccl::Options{.device = 5 - rank}; }));
  }
  SECTION("or gives it the GPU of its local rank, modulo the number of GPUs, or a free one") {
    stand_in::settings().devices = 4;
    const std::array<comm::nccl::Options, 4> options{{{}, {.local_rank = 0}, {.device = 2}, {.local_rank = 7}}};
    check_all_went_well(connect(
        4, 20s,
        [](int rank, Nccl& world) {
          if (world.device() != std::array{1, 0, 2, 3}[static_cast<std::size_t>(rank)]) throw std::logic_error{"another device"};
        },
        [&](int rank) { return options[static_cast<std::size_t>(rank)]; }));
  }
}

TEST_CASE("launch::join gives an Nccl rank the GPU of its local rank", "[comm][nccl][start]") {
  const Fixture fixture;
  pdp::launch::Place place;  // a world of one, whose rank has the local rank 3
  place.local_rank = 3;
  CHECK(pdp::launch::join<Nccl>(place).device() == 3);
}

TEST_CASE("Nccl throws on every rank if ranks would share a GPU or name one that does not exist", "[comm][nccl][start]") {
  const Fixture fixture;
  stand_in::settings().devices = 2;
  const auto start = std::chrono::steady_clock::now();
  for (const Thrown& error : connect(3, 20s)) {
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("ranks 0 and 2 would share GPU 0000:01:00.0: 3 ranks are on this host, and rank 2 may use 2 GPUs"));
  }
  for (const Thrown& error : connect(2, 20s, {}, [](int) { return comm::nccl::Options{.device = 1}; }))
    CHECK_THAT(error.what(),
               Contains("ranks 0 and 1 would share GPU 0000:02:00.0") && Contains("give each rank on a host its own LOCAL_RANK"));
  for (const Thrown& error : connect(2, 20s, {}, [](int) { return comm::nccl::Options{.local_rank = 1}; }))
    CHECK_THAT(error.what(), Contains("ranks 0 and 1 would share GPU 0000:02:00.0"));
  for (const Thrown& error : connect(2, 20s, {}, [](int) { return comm::nccl::Options{.device = -1}; }))
    CHECK_THAT(error.what(), Contains("rank 0 is set to use device -1, but has 2 GPUs"));
  for (const Thrown& error : connect(2, 20s, {}, [](int rank) { return comm::nccl::Options{.device = 2 * rank}; }))
    CHECK_THAT(error.what(), Contains("rank 1 is set to use device 2, but has 2 GPUs"));
  CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("Nccl ranks share a GPU only if NCCL_MULTI_RANK_GPU_ENABLE is set and NCCL is 2.30 or newer", "[comm][nccl][start]") {
  const Fixture fixture;
  stand_in::settings().devices = 2;
  const auto devices = [] {
    std::array<std::atomic<int>, 3> found{-1, -1, -1};
    const auto thrown = connect(3, 20s, [&](int rank, Nccl& world) { found[static_cast<std::size_t>(rank)] = world.device(); });
    for (const Thrown& error : thrown) CHECK(error.what() == thrown.front().what());
    return std::array<int, 3>{found[0], found[1], found[2]};
  };
  constexpr std::array<int, 3> refused{-1, -1, -1}, shared{0, 1, 0};
  stand_in::settings().nccl = 23000;
  CHECK(devices() == refused);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  CHECK(devices() == shared);
  stand_in::settings().nccl = 22907;
  CHECK(devices() == refused);
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

TEST_CASE("Nccl throws on every rank and names the version if the library is older than 2.27", "[comm][nccl][start]") {
  const Fixture fixture;
  stand_in::settings().nccl = 22605;
  for (const Thrown& error : connect(2, 20s)) {
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("rank 0 cannot use NCCL") && Contains("needs 2.27 or newer, but has found 2.26.5"));
  }
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t own = nullptr;
  ncclCommInitRank(&own, 1, id, 0);
  CHECK_THROWS_WITH((Nccl{own, nullptr}), Contains("needs 2.27 or newer, but has found 2.26.5"));
  ncclCommDestroy(own);
  stand_in::reset();
}

TEST_CASE("Nccl throws on every rank if the driver is missing or too old or there is no GPU", "[comm][nccl][start]") {
  const Fixture fixture;
  std::string expected;
  SECTION("no driver") {
    stand_in::settings().driver = 0;
    expected = "rank 0 cannot use NCCL: there is no NVIDIA driver on this machine, so no GPU can be used; install one for CUDA 13.0";
  }
  SECTION("an old driver") {
    stand_in::settings().driver = 12040;
    expected = "the NVIDIA driver of this machine is for CUDA 12.4, but this program was built with CUDA 13.0";
  }
  SECTION("no GPU") {
    stand_in::settings().devices = 0;
    expected = "rank 0 cannot use NCCL: there is no GPU that this process may use";
  }
  for (const int size : {1, 3})
    for (const Thrown& error : connect(size, 20s)) {
      CHECK(error.is<pdp::ConfigError>());
      CHECK_THAT(error.what(), Contains(expected));
    }
}

TEST_CASE("Nccl::connect names the missing rank at the deadline", "[comm][nccl][start]") {
  const Fixture fixture;
  pdp::launch::InProcessStore store;
  const std::vector<Thrown> thrown = on_threads(4, [&](int rank) {
    if (rank != 2) Nccl::connect(store, rank, 4, comm::Clock::now() + 300ms);
  });
  for (const int rank : {0, 1, 3}) CHECK(thrown[static_cast<std::size_t>(rank)].is<pdp::Timeout>());
  CHECK_THAT(thrown[0].what(), Contains("rank 0 has not heard from rank 2 (of 4 ranks) before the deadline for the start"));
  CHECK_THAT(thrown[1].what(), Contains("was not assigned a GPU by rank 0"));
}

TEST_CASE("Nccl::connect throws Timeout at the deadline if a rank fails after its report", "[comm][nccl][start]") {
  const Fixture fixture;
  pdp::launch::InProcessStore store;
  store.add("nccl/worlds/1", 1);  // as rank 1 does, before its report
  store.set("nccl/1/report/1", "\nhost\n-1\n-1\n0000:09:00.0");
  const Thrown error = failures::thrown_by([&] { Nccl::connect(store, 0, 2, comm::Clock::now() + 300ms); });
  CHECK(error.is<pdp::Timeout>());
  CHECK_THAT(error.what(),
             Contains("rank 0, on device 0, could not be connected to the others by NCCL: not all of the 2 ranks joined within"));
}

TEST_CASE("Nccl::connect rejects invalid reports in the store and invalid ranks", "[comm][nccl][start]") {
  const Fixture fixture;
  const std::string report = GENERATE("", "\n", "\nhost\n-1\n-1", "\nhost\n-1\ngpu", "\nhost\n1\n-1\ngpu", "\nhost\n-2\n-1\ngpu",
                                      "\nhost\n-1\n-2\ngpu", "\nhost\nx\n-1\ngpu", "\nhost\n-1\nx\ngpu");
  pdp::launch::InProcessStore store;
  store.set("nccl/1/report/1", report);
  const Thrown error = failures::thrown_by([&] { Nccl::connect(store, 0, 2, comm::Clock::now() + 300ms); });
  CHECK(error.is<pdp::ConfigError>());
  CHECK_THAT(error.what(), Contains("a rank's list of GPUs in the job's store is malformed"));
  CHECK_THROWS_AS(Nccl::connect(store, 2, 2, comm::Clock::now() + 1s), pdp::ConfigError);
  CHECK_THROWS_AS(Nccl::connect(store, 0, 0, comm::Clock::now() + 1s), pdp::ConfigError);
}

TEST_CASE("Nccl::connect reports NCCL's own error if NCCL cannot connect the ranks", "[comm][nccl][start]") {
  const Fixture fixture;
  stand_in::settings().error[0] = stand_in::settings().error[1] = GENERATE(ncclRemoteError, ncclUnhandledCudaError);
  const bool remote = stand_in::settings().error[0] == ncclRemoteError;
  const std::vector<Thrown> thrown = connect(2, 20s);
  for (const Thrown& error : thrown) {
    CHECK(error.is<pdp::ConfigError>() == !remote);
    CHECK_THAT(error.what(), Contains(remote ? "remote process exited" : "unhandled cuda error") && Contains("NCCL_DEBUG=INFO"));
  }
  if (remote) CHECK(thrown[0].lost_rank() == 1);
}

TEST_CASE("Nccl connects several worlds, one after another, through one store", "[comm][nccl][start]") {
  const Fixture fixture;
  pdp::launch::InProcessStore store;
  check_all_went_well(on_threads(3, [&](int rank) {
    for (int number = 0; number < 3; ++number) {
      Nccl world = Nccl::connect(store, rank, 3, comm::Clock::now() + 20s);
      const Values<int> sum{1, rank};
      world.all_reduce(sum.span(), comm::Sum{});
      if (sum.read()[0] != 3) throw std::logic_error{"another sum"};
    }
  }));
}

TEST_CASE("Nccl starts a call only after NCCL has launched the one before it", "[comm][nccl]") {
  const Fixture fixture;
  stand_in::settings().looks_until_launched = GENERATE(1, 100);
  check_on_ranks<Staged>(3, [](Staged& world, Findings& findings) {
    conformance::reductions<float>(world, findings, 37, comm::Sum{});
    conformance::moves<float>(world, findings, 37);
    conformance::uneven_shards<double>(world, findings, 3);
    Staged part = world.split(world.rank() % 2, 0);
    std::vector<Staged::Work> works;
    std::array own{world.rank()}, message{-1}, sum{1}, of_part{1};
    world.grouped([&] {
      works.push_back(world.send_async(own, (world.rank() + 1) % 3));
      works.push_back(part.all_reduce_async(of_part, comm::Sum{}));
      works.push_back(world.recv_async(message, (world.rank() + 2) % 3));
      works.push_back(world.all_reduce_async(sum, comm::Sum{}));
    });
    for (auto& work : works) work.wait();
    findings.expect(message[0] == (world.rank() + 2) % 3 && sum[0] == 3 && of_part[0] == part.size(), "calls of two groups together");
  });
}

TEST_CASE("Nccl orders a call after the caller's stream without blocking the thread", "[comm][nccl][stream]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    world.caller(stream);
    findings.expect(world.caller() == stream, "the caller's stream");
    const Values<float> values{1000, 1.f}, ones{1000, 1.f}, threes{1000, 3.f}, message{1000, 0.f}, copy{1000, 0.f};
    {
      Nccl::Work sum, exchange;
      {
        const stand_in::Hold hold{stream};
        cudaMemcpyAsync(values.span().data(), threes.span().data(), 4000, cudaMemcpyDefault, stream);
        sum = world.all_reduce_async(values.span(), comm::Sum{});
        exchange = world.send_recv_async(ones.span(), 1 - world.rank(), message.span(), 1 - world.rank());
        std::this_thread::sleep_for(20ms);
        findings.expect(!sum.done() && !exchange.done(), "nothing begins before the caller's stream has come to it");
        sum.wait_on(stream);
        exchange.wait_on(stream);
        findings.expect(!sum.pending() && sum.done(), "nothing is pending once a stream waits");
        cudaMemcpyAsync(copy.span().data(), message.span().data(), 4000, cudaMemcpyDefault, stream);
      }
      sum.wait();
    }
    cudaStreamSynchronize(stream);
    findings.expect(values.read() == std::vector<float>(1000, 6) && message.read() == ones.read(), "the sum, and the message");
    findings.expect(copy.read() == ones.read(), "what a stream does after it has waited");
    cudaStreamDestroy(stream);
  });
}

TEST_CASE("Nccl returns from a blocking call when its result can be read", "[comm][nccl][stream]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    world.caller(stream);
    const Values<int> values{100, 1};
    std::jthread later;
    {
      auto hold = std::make_unique<stand_in::Hold>(stream);
      later = std::jthread{[hold = std::move(hold)]() mutable {
        std::this_thread::sleep_for(30ms);
        hold.reset();
      }};
    }
    world.all_reduce(values.span(), comm::Sum{});
    findings.expect(std::ranges::count(values.span(), 2) == 100, "the sum");  // the host can read the stand-in's device memory
    world.caller(nullptr);
    cudaStreamDestroy(stream);
  });
}

TEST_CASE("Nccl rejects memory of the host or another device, and the world remains usable", "[comm][nccl][argument]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    std::vector<float> memory(8);
    const std::span host{memory};
    const Thrown refused = failures::thrown_by([&] { world.all_reduce(host, comm::Sum{}); });
    findings.expect(refused.is<pdp::ConfigError>() && refused.what().starts_with("all_reduce on rank"), refused.what());
    findings.expect(refused.what().find("was given host memory; NCCL needs memory of device") != std::string::npos, refused.what());
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { world.broadcast(host, 0); }, [&] { world.send(host, 1 - world.rank()); }, [&] { world.recv(host, 1 - world.rank()); },
             [&] { world.all_gather(host.first(4), host); }, [&] { world.gather(host.first(4), host, 0); },
             [&] { world.all_to_all(host.first(4), host.last(4)); }})
      findings.expect(failures::thrown_by(call).is<pdp::ConfigError>(), "memory of the host");
    cudaSetDevice(7);
    const Values<float> elsewhere{8, 1.f};
    const Thrown other = failures::thrown_by([&] { world.all_reduce(elsewhere.span(), comm::Sum{}); });
    findings.expect(other.what().find("was given memory of device 7, but this rank's calls run on device") != std::string::npos,
                    other.what());
    world.barrier();
  });
}

TEST_CASE("Nccl rejects bitwise reductions, and the world remains usable", "[comm][nccl][argument]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    const Values<std::int32_t> values{2, 1};
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { world.all_reduce(values.span(), comm::BitAnd{}); }, [&] { world.reduce(values.span(), comm::BitOr{}, 0); },
             [&] { world.reduce_scatter(values.span(), values.span().first(1), comm::BitOr{}); }}) {
      const Thrown refused = failures::thrown_by(call);
      findings.expect(refused.is<pdp::ConfigError>() && refused.what().find("NCCL has no bitwise") != std::string::npos, refused.what());
    }
    world.barrier();
  });
}

TEST_CASE("Nccl::allocate returns zeroed memory of the rank's device, which may outlive the world", "[comm][nccl][allocate]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    comm::Registered<float, true> values = world.allocate<float>(10'001);
    const comm::Registered<double, true> short_lived = world.allocate<double>(3), nothing = world.allocate<double>(0);
    cudaPointerAttributes found{};
    cudaPointerGetAttributes(&found, values.data());
    findings.expect(found.type == cudaMemoryTypeDevice && found.device == world.device(), "memory of the device");
    findings.expect(values.size() == 10'001 && reinterpret_cast<std::uintptr_t>(values.data()) % pdp::alignment == 0, "size and alignment");
    findings.expect(std::ranges::count(values, 0.f) == 10'001 && nothing.size() == 0, "zeros");
    world.all_reduce(values, comm::Sum{});
    {
      Nccl part = world.split(0, 0);
      const comm::Registered<int, true> of_part = part.allocate<int>(7);
      part.all_reduce(values.span().last(5), comm::Max{});
    }
    Nccl gone{std::move(world)};
    world = gone.split(0, 0);
    Nccl{std::move(gone)}.barrier();
    float kept = -1;
    cudaMemcpy(&kept, values.data() + 5, sizeof kept, cudaMemcpyDefault);
    findings.expect(kept == 0, "memory that has outlived its communicator");
  });
}

TEST_CASE("Nccl::allocate throws on every rank and names the rank that is out of memory", "[comm][nccl][allocate]") {
  const Fixture fixture;
  stand_in::settings().full[1] = true;
  const auto thrown = connect(3, 20s, [](int, Nccl& world) { static_cast<void>(world.allocate<float>(100)); });
  CHECK_THAT(thrown[1].what(), Contains("rank 1 could not allocate 400 bytes on device 1: ncclMemAlloc failed: unhandled cuda error"));
  for (const std::size_t rank : {0u, 2u})
    CHECK_THAT(thrown[rank].what(), Contains("rank 1 of 3 could not allocate 400 bytes on its device"));
  for (const Thrown& error : thrown) CHECK(error.is<pdp::DeviceError>());
}

TEST_CASE("Nccl::allocate throws on every rank if the sizes differ, and the world remains usable", "[comm][nccl][allocate][mismatch]") {
  const Fixture fixture;
  const auto thrown = connect(2, 20s, [](int rank, Nccl& world) {
    try {
      static_cast<void>(world.allocate<float>(rank == 0 ? 100 : 0));
    } catch (const pdp::ConfigError&) {
      world.barrier();
      throw;
    }
  });
  CHECK_THAT(thrown[0].what(), Contains("rank 0 allocates 400 bytes, but rank 1 allocates 0; all ranks must allocate the same size"));
  CHECK_THAT(thrown[1].what(), Contains("rank 1 allocates 0 bytes, but rank 0 allocates 400"));
}

TEST_CASE("Nccl registers memory on all ranks of a group or on none", "[comm][nccl][allocate]") {
  const Fixture fixture;
  const auto registered = [] {
    const stand_in::Traffic before = stand_in::traffic();
    check_on_ranks<Nccl>(3, [](Nccl& world, Findings& findings) {
      const comm::Registered<float, true> values = world.allocate<float>(1000);
      Nccl part = world.split(world.rank() / 2, 0);
      comm::Registered<float, true> of_part = part.allocate<float>(10);
      world.all_reduce(std::span{const_cast<float*>(values.data()), 1000}, comm::Sum{});
      part.all_reduce(of_part, comm::Sum{});
      findings.expect(std::ranges::count(values, 0.f) == 1000 && std::ranges::count(of_part, 0.f) == 10, "sums");
    });
    return stand_in::traffic().registered - before.registered;
  };
  CHECK(registered() == 4000 + 2 * 40);
  stand_in::settings().refuses_registration[2] = true;
  CHECK(registered() == 40);  // only the group without rank 2
}

TEST_CASE("Nccl::allocate and Nccl::split wait for calls that NCCL has not launched yet", "[comm][nccl][allocate][split]") {
  const Fixture fixture;
  stand_in::settings().looks_until_launched = 100;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    const Values<float> values{500, 1.f};
    auto before = world.all_reduce_async(values.span(), comm::Sum{});
    const comm::Registered<float, true> memory = world.allocate<float>(10);
    auto after = world.all_reduce_async(values.span(), comm::Sum{});
    Nccl part = world.split(0, 0);
    before.wait();
    after.wait();
    findings.expect(memory.size() == 10 && part.size() == 2 && values.read() == std::vector<float>(500, 4), "two sums, memory and a group");
  });
}

TEST_CASE("Nccl adopts a program's communicator, which the program can still use", "[comm][nccl][adopt]") {
  const Fixture fixture;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  check_all_went_well(on_threads(3, [&](int rank) {
    cudaSetDevice(rank + 2);
    ncclComm_t own = nullptr;
    ncclCommInitRank(&own, 3, id, rank);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const Values<float> values{100, 1.f};
    {
      Nccl world{own, stream};
      if (world.rank() != rank || world.size() != 3 || world.device() != rank + 2 || world.caller() != stream)
        throw std::logic_error{"another place"};
      world.all_reduce(values.span(), comm::Sum{});
      const comm::Registered<int, true> registered = world.allocate<int>(5);
      Nccl pair = world.split(rank == 2 ? 1 : 0, -rank);
      if (pair.size() != (rank == 2 ? 1 : 2) || (rank < 2 && pair.rank() != 1 - rank)) throw std::logic_error{"another group"};
      pair.all_reduce(values.span(), comm::Max{});
      const Values<int> numbers{1, rank};
      std::vector<Nccl::Work> works;
      world.grouped([&] {
        works.push_back(world.all_reduce_async(numbers.span(), comm::Sum{}));
        works.push_back(pair.all_reduce_async(values.span(), comm::Max{}));
      });
      for (Nccl::Work& work : works) work.wait();
      if (numbers.read()[0] != 3) throw std::logic_error{"another sum"};
      world.all_reduce_async(values.span(), comm::Max{}).wait_on(stream);
    }
    ncclAllReduce(values.span().data(), values.span().data(), 100, ncclFloat32, ncclSum, own, stream);
    cudaStreamSynchronize(stream);
    if (values.read()[99] != 9) throw std::logic_error{"another sum"};
    ncclCommDestroy(own);
    cudaStreamDestroy(stream);
  }));
  CHECK_THROWS_WITH((Nccl{nullptr, nullptr}), Contains("cannot adopt a null communicator"));
}

TEST_CASE("Destroying a group of an adopted NCCL communicator ends by the deadline even if a graph holds its calls",
          "[comm][nccl][adopt]") {
  Fixture fixture;
  fixture.left = 2;  // the streams of the two parts, which NCCL may still use
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  check_all_went_well(on_threads(2, [&](int rank) {
    cudaSetDevice(rank);
    ncclComm_t own = nullptr;
    ncclCommInitRank(&own, 2, id, rank);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const Values<float> values{100, 1.f};
    cudaGraph_t graph = nullptr;
    {
      Nccl world{own, stream};
      Nccl part = world.split(0, rank);
      world.deadline(100ms);
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      part.all_reduce_async(values.span(), comm::Sum{}).wait_on(stream);
      cudaStreamEndCapture(stream, &graph);
    }
    cudaGraphDestroy(graph);
    ncclCommDestroy(own);
    cudaStreamDestroy(stream);
  }));
  for (const auto until = comm::Clock::now() + 20s; stand_in::live() != fixture.before + fixture.left && comm::Clock::now() < until;)
    std::this_thread::sleep_for(1ms);
}

TEST_CASE("A failed world leaves its adopted NCCL communicator for the program to abort", "[comm][nccl][adopt][failure]") {
  Fixture fixture;
  fixture.left = 2;  // memory of device and host: freeing it would wait for calls that only the program can abort
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const auto thrown = on_threads(2, [&](int rank) {
    cudaSetDevice(rank);
    ncclComm_t own = nullptr;
    ncclCommInitRank(&own, 2, id, rank);
    const Thrown error = failures::thrown_by([&] {
      Nccl world{own, nullptr};
      world.deadline(100ms);
      if (rank == 0) world.barrier();
    });
    ncclCommAbort(own);
    if (error) error.rethrow();
  });
  CHECK(thrown[0].is<pdp::Timeout>());
  CHECK_FALSE(thrown[1]);
}

TEST_CASE("Checked over Instrumented Nccl gives correct results", "[comm][nccl][checked]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(3, [](Nccl& world, Findings& findings) {
    comm::Checked checked{comm::Instrumented{std::move(world)}};
    static_assert(comm::HasDeviceBuffers<decltype(checked)>);
    const Values<int> values{30, 1}, shard{10, 0};
    checked.all_reduce(values.span(), comm::Sum{});
    checked.reduce_scatter(values.span(), shard.span(), comm::Sum{});
    comm::Checked part = checked.split(checked.rank() == 2 ? 1 : 0, 0);
    part.all_reduce(shard.span(), comm::Max{});
    findings.expect(shard.read() == std::vector<int>(10, 9) && part.size() == (checked.rank() == 2 ? 1 : 2), "a sum, and a group");
  });
}

TEST_CASE("Checked over Nccl throws MismatchedCollective with both calls on every rank", "[comm][nccl][checked][mismatch]") {
  const Fixture fixture;
  const auto errors = pdp::testing::errors<Nccl>(3, [](Nccl& world) {
    comm::Checked checked{std::move(world)};
    const Values<float> values{checked.rank() == 1 ? std::size_t{9} : std::size_t{8}, 1.f};
    checked.all_reduce(values.span(), comm::Sum{});
  });
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::MismatchedCollective>());
    CHECK_THAT(error.what(), Contains("all_reduce of 8 float32 on rank 0") && Contains("all_reduce of 9 float32 on rank 1"));
  }
}

TEST_CASE("Nccl throws Timeout naming the call after the deadline, and again in later calls", "[comm][nccl][failure]") {
  const Fixture fixture;
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<Nccl>(2, [](Nccl& world) {
    Nccl part = world.split(0, 0);
    world.deadline(100ms);
    if (world.rank() == 1) return std::this_thread::sleep_for(400ms);
    const Values<float> values{8, 1.f};
    const Thrown first = failures::thrown_by([&] { world.all_reduce(values.span(), comm::Sum{}); });
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { world.barrier(); }, [&] { part.all_reduce(values.span(), comm::Sum{}); }, [&] { world.progress(); },
             [&] { static_cast<void>(world.split(0, 0)); }, [&] { static_cast<void>(part.allocate<float>(1)); },
             [&] { world.send(values.span(), 1); }, [&] { world.grouped([] {}); }})
      if (const Thrown again = failures::thrown_by(call); again.what() != first.what()) throw std::logic_error{again.what()};
    first.rethrow();
  });
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  CHECK(errors[0].is<pdp::Timeout>());
  CHECK_THAT(errors[0].what(), Contains("rank 0 waited 100 ms for all_reduce of 8 float32 and heard nothing from rank 1"));
  CHECK_FALSE(errors[1]);
}

TEST_CASE("Nccl throws Timeout in every kind of wait for a rank that never makes its call", "[comm][nccl][failure]") {
  const Fixture fixture;
  const int what = GENERATE(0, 1, 2, 3, 4, 5);
  const auto errors = pdp::testing::errors<Nccl>(3, [what](Nccl& world) {
    if (world.rank() == 2) return;
    world.deadline(100ms);
    const Values<int> values{30, 1}, other{30, 1};
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
      case 4: {
        comm::Checked checked{std::move(world)};
        return checked.barrier();
      }
      default: {
        stand_in::settings().looks_until_launched = 1'000'000;
        auto first = world.all_reduce_async(values.span(), comm::Sum{});
        auto second = world.all_reduce_async(other.span(), comm::Sum{});  // waits for the launch of the first one
        return second.wait();
      }
    }
  });
  for (const int rank : {0, 1}) {
    CHECK(errors[static_cast<std::size_t>(rank)].is<pdp::Timeout>());
    CHECK_THAT(errors[static_cast<std::size_t>(rank)].what(), Contains(pdp::text("rank ", rank, " waited 100 ms for ")));
    if (what == 1)
      CHECK_THAT(errors[static_cast<std::size_t>(rank)].what(), Contains("send of 30 int32 with tag 7 and heard nothing from rank 2"));
  }
}

TEST_CASE("A failed Nccl rank leaves its world although another rank still holds its communicator", "[comm][nccl][failure]") {
  Fixture fixture;
  fixture.left = 1;  // the stream, which NCCL may still use
  stand_in::settings().frees_together = true;
  pdp::launch::InProcessStore store;
  std::latch has_left{1};
  const auto thrown = on_threads(2, [&](int rank) {
    const auto connect = [&] { return Nccl::connect(store, rank, 2, comm::Clock::now() + 20s); };
    if (rank == 1) {
      const Nccl world = connect();
      for (const auto until = comm::Clock::now() + 20s; !has_left.try_wait() && comm::Clock::now() < until;)
        std::this_thread::sleep_for(1ms);
      if (!has_left.try_wait()) throw std::logic_error{"the other rank waits for this one"};
      return;
    }
    const Thrown error = failures::thrown_by([&] {
      Nccl world = connect();
      world.deadline(100ms);
      try {
        world.barrier();
      } catch (...) {
        world.deadline(1h);  // has no effect after the failure
        throw;
      }
    });
    has_left.count_down();
    error.rethrow();
  });
  CHECK(thrown[0].is<pdp::Timeout>());
  CHECK_FALSE(thrown[1]);
  for (const auto until = comm::Clock::now() + 20s; stand_in::live() != fixture.before + fixture.left && comm::Clock::now() < until;)
    std::this_thread::sleep_for(1ms);
}

TEST_CASE("Nccl::split throws Timeout if NCCL never completes it, and leaks nothing", "[comm][nccl][failure][split]") {
  const Fixture fixture;
  stand_in::settings().splits_hang = true;
  const auto errors = pdp::testing::errors<Nccl>(2, [](Nccl& world) {
    world.deadline(100ms);
    static_cast<void>(world.split(0, 0));
  });
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::Timeout>());
    CHECK_THAT(error.what(), Contains("waited 100 ms for split"));
  }
}

TEST_CASE("Nccl ends a wait at once if NCCL reports an error", "[comm][nccl][failure]") {
  const Fixture fixture;
  const ncclResult_t said = GENERATE(ncclRemoteError, ncclSystemError, ncclInternalError);
  const int size = GENERATE(2, 3);
  const auto start = std::chrono::steady_clock::now();
  const auto errors = pdp::testing::errors<Nccl>(size, [said](Nccl& world) {
    const Values<int> values{30, 1};
    if (world.rank() == 1) {
      std::this_thread::sleep_for(30ms);
      for (auto& each : stand_in::settings().error) each = said;
    } else {
      world.all_reduce(values.span(), comm::Sum{});
    }
  });
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  const Thrown& error = errors[0];
  CHECK(error.is<pdp::CommunicationError>());
  CHECK(error.is<pdp::PeerLost>() == (said != ncclInternalError));
  if (said != ncclInternalError) {
    CHECK(error.lost_rank() == (size == 2 ? 1 : -1));
    CHECK_THAT(error.what(), Contains(size == 2 ? "rank 1 is gone or out of reach" : "NCCL does not say which rank"));
  }
  CHECK_THAT(error.what(), Contains("all_reduce of 30 int32"));
}

TEST_CASE("Destroying an Nccl Work in flight ends the world on its rank, and the others time out", "[comm][nccl][failure][async]") {
  const Fixture fixture;
  const auto errors = pdp::testing::errors<Nccl>(2, [](Nccl& world) {
    world.deadline(300ms);
    if (world.rank() == 0) {
      {
        const Values<float> values{500, 1.f}, message{500, 1.f};
        world.recv(message.span(), 1);  // connects the ranks
        auto receiving = world.recv_async(message.span(), 1, 9);
        auto work = world.all_reduce_async(values.span(), comm::Sum{});
      }
      world.barrier();
    } else {
      const Values<float> values{500, 1.f};
      world.send(values.span(), 0);
      world.all_reduce(values.span(), comm::Sum{});  // never completes, since rank 0's receive comes before its all_reduce
    }
  });
  CHECK(errors[0].lost_rank() == 0);
  CHECK_THAT(errors[0].what(), Contains("rank 0 abandoned all_reduce of 500 float32 before it was complete"));
  CHECK(errors[1].is<pdp::Timeout>());
}

TEST_CASE("Nccl: a call of a group throws the reason given to abort of the world", "[comm][nccl][failure]") {
  const Fixture fixture;
  check_on_ranks<Nccl>(2, [](Nccl& world, Findings& findings) {
    Nccl part = world.split(0, 0);
    world.barrier();
    world.abort("the disk is full");
    const Thrown error = failures::thrown_by([&] { part.barrier(); });
    findings.expect(error.what() == "the disk is full" && error.lost_rank() == (world.rank() == 0 ? 0 : 1), error.what());
  });
}

TEST_CASE("Nccl: after an exception between a call and its wait, the other ranks throw Timeout", "[comm][nccl][failure][async]") {
  const Fixture fixture;
  const auto start = std::chrono::steady_clock::now();
  const auto thrown = connect(3, 20s, [](int rank, Nccl& world) {
    world.deadline(300ms);
    const Values<float> gradients{1000, 1.f};
    auto reduction = world.all_reduce_async(gradients.span(), comm::Sum{});
    auto message = world.recv_async(gradients.span().first(1), (rank + 1) % 3);
    if (rank == 1) throw pdp::ShapeError{"a label beyond the classes"};
    reduction.wait();
    message.wait();
  });
  CHECK(std::chrono::steady_clock::now() - start < 4s);
  CHECK(thrown[1].is<pdp::ShapeError>());
  for (const int rank : {0, 2}) CHECK(thrown[static_cast<std::size_t>(rank)].is<pdp::Timeout>());
}

TEST_CASE("Nccl throws ConfigError if a Work is waited for inside grouped", "[comm][nccl][async]") {
  const Fixture fixture;
  const auto errors = pdp::testing::errors<Nccl>(2, [](Nccl& world) {
    const Values<int> values{3, 1};
    world.grouped([&] {
      auto work = world.all_reduce_async(values.span(), comm::Sum{});
      if (work.done()) throw std::logic_error{"it cannot be done"};
      work.wait();
    });
  });
  for (const Thrown& error : errors) {
    CHECK(error.is<pdp::ConfigError>());
    CHECK_THAT(error.what(), Contains("waits for all_reduce of 3 int32 inside grouped()") && Contains("wait after grouped()"));
  }
}
