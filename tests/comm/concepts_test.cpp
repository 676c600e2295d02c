#include <pdp/comm/any.hpp>
#include <pdp/comm/backend/free_list.hpp>
#include <pdp/comm/backend/members_of_color.hpp>
#include <pdp/comm/checked.hpp>
#include <pdp/comm/instrumented.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/comm/traits.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/activation.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/train/task.hpp>
#include <pdp/train/trainer.hpp>

#include <vector>

#include "catch.hpp"
#include "comm/archetype.hpp"
#include "support.hpp"

namespace concepts_test {

namespace comm = pdp::comm;

// For each concept: a model that satisfies it, and models that each lack one requirement.

namespace {

using Handle = archetype::Done;
struct Copyable {
  void wait() {}
  [[nodiscard]] bool done() { return true; }
  [[nodiscard]] bool pending() const { return false; }
};
struct NoWait : Handle {
  void wait() = delete;
};
struct NoLook : Handle {
  bool done() = delete;
};

static_assert(comm::Waitable<Handle> && comm::Waitable<comm::Thread::Work>);
static_assert(!comm::Waitable<Copyable> && !comm::Waitable<NoWait> && !comm::Waitable<NoLook> && !comm::Waitable<int>);

using Bare = archetype::Ranks;
using Messages = archetype::Messages;
using Collectives = archetype::Verbs;
using Minimal = archetype::Communicator;

struct NoSend : Collectives {
  NoSend split(int, int) { return {}; }
  Handle send_async(std::span<const float>, int, int) = delete;
};
struct NoBarrier : Collectives {
  NoBarrier split(int, int) { return {}; }
  void barrier() = delete;
};
struct NoAllReduce : Collectives {
  NoAllReduce split(int, int) { return {}; }
  Handle all_reduce_async(std::span<float>, comm::Sum) = delete;
};
struct NoReduceScatter : Collectives {
  NoReduceScatter split(int, int) { return {}; }
  Handle reduce_scatter_async(std::span<const float>, std::span<float>, comm::Sum) = delete;
};
struct NoGather : Collectives {
  NoGather split(int, int) { return {}; }
  void gather(std::span<const float>, std::span<float>, std::span<const std::size_t>, int) = delete;
};
struct NoMemory : Collectives {
  NoMemory split(int, int) { return {}; }
  template <class T>
  void allocate(std::size_t) = delete;
};
struct NoProgress : Collectives {
  NoProgress split(int, int) { return {}; }
  void progress() = delete;
};
struct SplitsToAnother : Collectives {
  Minimal split(int, int) { return {}; }
};
struct Slow : Minimal {
  static constexpr bool fails_fast = false;
  [[nodiscard]] comm::Duration deadline() const { return {}; }
};
struct Fast : Minimal {
  static constexpr bool fails_fast = true;
  [[nodiscard]] comm::Duration deadline() const { return {}; }
};

static_assert(comm::Group<Bare> && !comm::Group<int>);
static_assert(comm::PointToPoint<Messages> && !comm::PointToPoint<Bare> && !comm::PointToPoint<NoSend>);
static_assert(comm::Communicator<Minimal>);
static_assert(!comm::Communicator<Messages> && !comm::Communicator<Collectives>);
static_assert(!comm::Communicator<NoSend> && !comm::Communicator<NoBarrier> && !comm::Communicator<NoAllReduce>);
static_assert(!comm::Communicator<NoProgress> && !comm::Communicator<SplitsToAnother>);
static_assert(!comm::Communicator<NoReduceScatter> && !comm::Communicator<NoGather> && !comm::Communicator<NoMemory>);
static_assert(comm::HasReduceScatter<Minimal> && !comm::HasReduceScatter<NoReduceScatter> && !comm::HasReduceScatter<Messages>);
static_assert(!comm::HasCommonMemory<Minimal>);
struct OnDevice : Minimal {
  static constexpr bool device_buffers = true;
};
struct BackOnHost : OnDevice {
  static constexpr bool device_buffers = false;
  static constexpr std::string_view name{"back"};
};
struct BuiltOnIt {
  static constexpr comm::Traits traits = comm::traits_of<OnDevice>;
  static constexpr bool alone = true;
};
static_assert(!comm::traits_of<BackOnHost>.device_buffers && comm::traits_of<BackOnHost>.name == "back" && comm::Named<BackOnHost>);
static_assert(comm::traits_of<BuiltOnIt>.device_buffers && comm::traits_of<BuiltOnIt>.alone && !comm::traits_of<BuiltOnIt>.fails_fast);
static_assert(!comm::Named<OnDevice> && comm::traits_of<comm::Self>.alone && comm::traits_of<comm::Self>.fails_fast);
struct OnHost : Minimal {
  static constexpr bool device_buffers = false;
};
static_assert(comm::HasDeviceBuffers<OnDevice> && !comm::HasDeviceBuffers<OnHost> && !comm::HasDeviceBuffers<Minimal>);
static_assert(!comm::HasDeviceBuffers<comm::Thread> && !comm::HasDeviceBuffers<comm::Tcp>);
static_assert(comm::FailsFast<Fast> && !comm::FailsFast<Slow> && !comm::FailsFast<Minimal>);

template <class C>
constexpr bool every_type = comm::HasReduceScatter<C, float>&& comm::HasReduceScatter<C, double>&& comm::HasReduceScatter<C, std::int32_t>&&
    comm::HasReduceScatter<C, std::int64_t>&& comm::HasReduceScatter<C, std::byte>;
static_assert(every_type<comm::Self> && every_type<comm::Thread> && every_type<comm::Shm> && every_type<comm::Tcp>);
static_assert(!comm::Communicator<comm::Thread, char> && !comm::Communicator<comm::Thread, bool>, "types that no rank can be sent");
static_assert(comm::Communicator<comm::Any> && comm::HasReduceScatter<comm::Any>);
static_assert(!std::copyable<comm::Thread> && std::movable<comm::Thread>);
static_assert(comm::HasCommonMemory<comm::Shm> && comm::HasCommonMemory<comm::Thread> && comm::HasCommonMemory<comm::Any> &&
              comm::HasCommonMemory<comm::Instrumented<comm::Shm>> && comm::HasCommonMemory<comm::Checked<comm::Thread>>);

static_assert(comm::Operation<comm::Average> && !comm::Operation<float>);
static_assert(comm::Combines<comm::BitOr, std::int8_t> && comm::Combines<comm::BitAnd, std::byte>, "whole numbers have bits");
static_assert(!comm::Combines<comm::BitOr, float> && !comm::Combines<comm::BitAnd, pdp::BFloat16>, "the bits of fractions mean nothing");
static_assert(comm::Combines<comm::Max, pdp::Float16> && !comm::Combines<comm::Max, char>);
static_assert(comm::WritableElements<std::vector<float>> && comm::Elements<const std::vector<float>> &&
              !comm::WritableElements<const std::vector<float>> && !comm::Elements<std::vector<std::string>>);

struct NoFail {
  [[nodiscard]] int rank() const { return 0; }
  [[nodiscard]] int size() const { return 1; }
  void post(comm::SendRequest&) {}
  void post(comm::ReceiveRequest&) {}
  bool progress() { return false; }
  void wait(comm::TimePoint) {}
  [[nodiscard]] const comm::Failure* failure() const { return nullptr; }
};
struct Whole : NoFail {
  void fail(const comm::Failure&) {}
};
static_assert(comm::Transport<Whole> && !comm::Transport<NoFail>);

struct Lookup {
  void set(std::string_view, std::string_view) {}
  std::string wait(std::string_view, comm::TimePoint) { return {}; }
  std::optional<std::string> get(std::string_view) { return {}; }
  std::int64_t add(std::string_view, std::int64_t) { return 0; }
};
struct NoCounters : Lookup {
  std::int64_t add(std::string_view) { return 0; }
};
struct NoDeadline {
  void set(std::string_view, std::string_view) {}
  std::string wait(std::string_view) { return {}; }
  std::optional<std::string> get(std::string_view) { return {}; }
  std::int64_t add(std::string_view, std::int64_t) { return 0; }
};
static_assert(comm::Store<Lookup> && !comm::Store<NoDeadline> && !comm::Store<NoCounters>);

}  // namespace

TEST_CASE("The concepts of comm accept complete models and reject models that lack one requirement", "[comm][concepts]") {
  SUCCEED("by the static assertions above");
}

TEST_CASE("Trainer trains over a minimal model of the concept Communicator", "[comm][concepts]") {
  const auto losses = [](auto world) {
    constexpr pdp::Task task{pdp::nn::Sequential{pdp::nn::Linear{4, 6}, pdp::nn::Tanh{}, pdp::nn::Linear{6, 3}}, pdp::loss::CrossEntropy{},
                             pdp::optim::Sgd{}};
    pdp::Trainer trainer{world, pdp::strategy::DataParallel{}, task, {.global_batch = 8, .seed = 1}};
    const std::vector<float> x = support::normal(8 * 4, 3);
    const std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2, 0, 1};
    std::vector<double> found;
    for (int step = 0; step < 5; ++step) found.push_back(trainer.step(x, labels).loss);
    trainer.check_parameters();
    return found;
  };
  const std::vector<double> found = losses(archetype::Communicator{});
  CHECK(found == losses(comm::Self{}));
  CHECK(found.back() < found.front());
}

TEST_CASE("members_of_color orders the ranks of one colour by key and then by rank", "[comm]") {
  const std::vector<comm::ColorAndKey> all{{1, 5}, {0, 0}, {1, -2}, {1, 5}, {0, 7}};
  CHECK(comm::members_of_color(all, 1) == std::vector{2, 0, 3});
  CHECK(comm::members_of_color(all, 0) == std::vector{1, 4});
  CHECK(comm::members_of_color(all, 3).empty());
  CHECK(comm::place_among(std::vector{2, 0, 3}, 3) == 2);
}

TEST_CASE("FreeList reuses returned objects and makes a new one only if none fits", "[comm]") {
  comm::FreeList<int> list;
  int made = 0;
  const auto prepare = [&made](int& each) { each = ++made; };
  int& first = list.take(prepare);
  int& second = list.take(prepare);
  CHECK(made == 2);
  list.give_back(first);
  CHECK(&list.take(prepare) == &first);
  list.give_back(second);
  list.give_back(first);
  CHECK(&list.take(prepare, [](int each) { return each == 2; }) == &second);
  CHECK(list.take(prepare, [](int each) { return each == 2; }) == 3);
  CHECK(list.all().size() == 3);
}

TEST_CASE("describe names the verb, size, type, reduction, root and tag of a call", "[comm]") {
  using comm::Envelope, comm::Reduction, comm::Verb;
  CHECK(std::string{comm::name(static_cast<Verb>(200))} == "an unknown call");
  CHECK(std::string{comm::name(static_cast<Reduction>(200))} == "an unknown reduction");
  CHECK(comm::describe({.verb = Verb::barrier}) == "barrier");
  CHECK(comm::describe({.count = 8, .verb = Verb::all_reduce, .type = pdp::DType::float32, .reduction = Reduction::sum}) ==
        "all_reduce of 8 float32");
  CHECK(comm::describe({.count = 3, .root = 2, .verb = Verb::reduce, .type = pdp::DType::int64, .reduction = Reduction::product}) ==
        "reduce of 3 int64 (product) with root 2");
  CHECK(comm::describe({.count = 2, .tag = 7, .verb = Verb::send, .type = pdp::DType::byte}) == "send of 2 byte with tag 7");
  for (int verb = 0; verb <= static_cast<int>(Verb::scatter); ++verb)
    CHECK_THAT(comm::describe({.count = 1, .verb = static_cast<Verb>(verb)}), StartsWith(comm::name(static_cast<Verb>(verb))));
}

}  // namespace concepts_test
