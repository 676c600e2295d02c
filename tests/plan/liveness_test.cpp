#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>
#include <pdp/nn/residual.hpp>
#include <pdp/nn/sequential.hpp>
#include <pdp/plan/liveness.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/single.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "engine/two_halves.hpp"

namespace nn = pdp::nn;
using namespace pdp::strategy;
using pdp::Index;

namespace {

nn::Outline plain() {
  return nn::outline(nn::Sequential{nn::Linear{5, 70}, nn::Tanh{}, nn::Linear{70, 33}, nn::Relu{}, nn::Linear{33, 4}}, pdp::Shape{5});
}
nn::Outline with_views() {
  return nn::outline(nn::Sequential{nn::Flatten{}, nn::Linear{12, 40}, nn::Tanh{}, nn::Flatten{}, nn::Linear{40, 3}}, pdp::Shape{3, 4});
}
nn::Outline with_residuals() {
  return nn::outline(
      nn::Sequential{nn::Linear{6, 20}, nn::Repeat{3, nn::Residual{nn::Sequential{nn::Linear{20, 20}, nn::Tanh{}, nn::Linear{20, 20}}}},
                     nn::Linear{20, 2}},
      pdp::Shape{6});
}

using Key = std::tuple<Kind, int, int>;  // kind, micro-batch, boundary or layer
struct Life {
  Index width = 0;
  std::vector<std::pair<std::size_t, std::size_t>> spans{};  // from first write to last read; one more span for each recomputation

  [[nodiscard]] bool meets(const Life& other) const {
    for (const auto& [first, last] : spans)
      for (const auto& [their_first, their_last] : other.spans)
        if (first <= their_last && their_first <= last) return true;
    return false;
  }
};

/// Computes the lifetime of each tensor that a list uses, independently of the class under test.
std::map<Key, Life> lives(const nn::Outline& model, const Instructions& list) {
  std::map<Key, Life> lives;
  const auto use = [&](Kind kind, int m, int number, std::size_t at, bool written = false) {
    const Index width = kind == Kind::saved ? model.layers[static_cast<std::size_t>(number)].saved : model.width(number);
    auto& [_, spans] = lives.try_emplace({kind, m, number}, Life{width}).first->second;
    if (spans.empty() || (written && spans.back().first != at)) spans.emplace_back(at, at);
    spans.back().second = at;
  };
  for (std::size_t at = 0; at < list.size(); ++at) {
    const Instruction& i = list[at];
    const int m = i.micro_batch;
    for (int layer = i.first; layer < i.last; ++layer) {
      if (i.op == Op::backward_input && !model.passes_gradient(layer)) continue;
      use(Kind::activation, m, layer, at);
      use(Kind::activation, m, layer + 1, at, i.op == Op::forward);
      use(Kind::saved, m, layer, at, i.op == Op::forward);
      if (i.op == Op::backward_input) use(Kind::gradient, m, layer, at);
      if (i.op == Op::backward_input || i.op == Op::backward_weight) use(Kind::gradient, m, layer + 1, at);
    }
    if (i.op == Op::loss) use(Kind::activation, m, i.first, at), use(Kind::gradient, m, i.first, at);
    const bool is_message = i.op == Op::send_start || i.op == Op::send_wait || i.op == Op::receive_start || i.op == Op::receive_wait;
    if (is_message) use(i.tensor == Tensor::activation ? Kind::activation : Kind::gradient, m, i.first, at);
  }
  return lives;
}

bool same_memory(const nn::Outline& model, const Key& a, const Key& b) {
  const auto source = [&](Key key) {
    auto& [kind, m, number] = key;
    while (kind != Kind::saved && number > 0 && model.layers[static_cast<std::size_t>(number) - 1].is_view) --number;
    return key;
  };
  return source(a) == source(b);
}

/// Whether only views and layers that work in place lie between the two activations.
bool may_share(const nn::Outline& model, const Key& a, const Key& b) {
  if (std::get<0>(a) != Kind::activation || std::get<0>(b) != Kind::activation || std::get<1>(a) != std::get<1>(b)) return false;
  const auto [first, last] = std::minmax(std::get<2>(a), std::get<2>(b));
  for (int layer = first; layer < last; ++layer)
    if (const auto& each = model.layers[static_cast<std::size_t>(layer)]; !each.is_view && !each.works_in_place) return false;
  return true;
}

/// Runs a list on simulated memory that knows which tensors it holds. Checks that each tensor is there when it is read.
class Rehearsed {
 public:
  Rehearsed(const nn::Outline& model, const Liveness& memory) : model_{model}, memory_{memory} {}

  void carry_out(const Instruction& i) {
    const int m = i.micro_batch;
    const Kind kind = i.tensor == Tensor::activation ? Kind::activation : Kind::gradient;
    switch (i.op) {
      case Op::forward:
        for (int layer = i.first; layer < i.last; ++layer) {
          read({Kind::activation, m, layer});
          if (!of(layer).is_view) write({Kind::activation, m, layer + 1});
          write({Kind::saved, m, layer});
        }
        break;
      case Op::loss:
        read({Kind::activation, m, i.first});
        write({Kind::gradient, m, i.first});
        break;
      case Op::backward_input:
        for (int layer = i.last - 1; layer >= i.first; --layer) {
          if (!model_.passes_gradient(layer) || of(layer).is_view) continue;
          read_forward(m, layer);
          write({Kind::gradient, m, layer});
        }
        break;
      case Op::backward_weight:
        for (int layer = i.last - 1; layer >= i.first; --layer)
          if (of(layer).parameters > 0) read_forward(m, layer);
        break;
      case Op::send_start:
      case Op::send_wait:
        read({kind, m, i.first});
        break;
      case Op::receive_wait:
        write({kind, m, i.first});
        break;
      default:
        break;
    }
  }

 private:
  [[nodiscard]] const nn::Outline::Layer& of(int layer) const { return model_.layers[static_cast<std::size_t>(layer)]; }
  void read_forward(int m, int layer) {
    if (!of(layer).works_in_place) read({Kind::activation, m, layer});
    if (!of(layer).forgets_output) read({Kind::activation, m, layer + 1});
    read({Kind::gradient, m, layer + 1});
    read({Kind::saved, m, layer});
  }
  [[nodiscard]] Key source(Key key) const {
    auto& [kind, m, number] = key;
    while (kind != Kind::saved && number > 0 && of(number - 1).is_view) --number;
    return key;
  }
  [[nodiscard]] Index width(const Key& key) const {
    return std::get<0>(key) == Kind::saved ? of(std::get<2>(key)).saved : model_.width(std::get<2>(key));
  }
  [[nodiscard]] Index offset(const Key& key) const { return memory_.offset(std::get<0>(key), std::get<1>(key), std::get<2>(key)); }

  void write(const Key& written) {
    const Key key = source(written);
    const Index begin = offset(key), end = begin + width(key);
    if (begin == Liveness::nowhere || begin == end) return;
    std::erase_if(there_, [&](const Key& other) { return offset(other) < end && begin < offset(other) + width(other); });
    there_.insert(key);
  }
  void read(const Key& read) {
    const Key key = source(read);
    if (width(key) == 0 || (std::get<0>(key) == Kind::activation && std::get<2>(key) == 0)) return;
    INFO("kind " << static_cast<int>(std::get<0>(key)) << " of micro-batch " << std::get<1>(key) << ", number " << std::get<2>(key));
    CHECK(there_.contains(key));
  }

  const nn::Outline& model_;
  const Liveness& memory_;
  std::set<Key> there_;
};

void check(const nn::Outline& model, const Plan& plan) {
  for (const bool training : {true, false}) {
    const Instructions& list = training ? plan.step : plan.evaluate;
    const int micro_batches = training ? plan.micro_batches : 1;
    const Liveness memory{model, list, micro_batches, !training};
    Rehearsed rehearsed{model, memory};
    for (const Instruction& i : list) rehearsed.carry_out(i);
    auto used = lives(model, list);
    if (!training && used.contains({Kind::activation, 0, model.size()}))
      used[{Kind::activation, 0, model.size()}].spans.back().second = list.size();
    const auto offset = [&](const Key& key) { return memory.offset(std::get<0>(key), std::get<1>(key), std::get<2>(key)); };
    for (const auto& [key, life] : used) {
      const bool of_batch = std::get<0>(key) == Kind::activation && same_memory(model, key, {Kind::activation, std::get<1>(key), 0});
      INFO("kind " << static_cast<int>(std::get<0>(key)) << " of micro-batch " << std::get<1>(key) << ", number " << std::get<2>(key));
      if (of_batch || life.width == 0) {
        CHECK(offset(key) == Liveness::nowhere);
        continue;
      }
      REQUIRE(offset(key) >= 0);
      const auto& [kind, m, number] = key;
      const bool continues = m > 0 && memory.offset(kind, m - 1, number) + life.width == offset(key);  // right after its predecessor
      CHECK((continues || offset(key) % (static_cast<Index>(pdp::alignment) / static_cast<Index>(sizeof(float))) == 0));
      CHECK(offset(key) + life.width <= memory.size());
      for (const auto& [other, their] : used) {
        if (other == key || their.width == 0 || offset(other) == Liveness::nowhere) continue;
        if (same_memory(model, key, other)) {
          CHECK(offset(key) == offset(other));
          continue;
        }
        if (may_share(model, key, other) && offset(key) == offset(other)) continue;
        const bool together = life.meets(their);
        const bool overlap = offset(key) < offset(other) + their.width && offset(other) < offset(key) + life.width;
        CHECK_FALSE((together && overlap));
      }
    }
  }
}

}  // namespace

TEST_CASE("Liveness never overlaps tensors that live at the same time, and puts views at their source", "[parallel][memory]") {
  for (const nn::Outline& model : {plain(), with_views(), with_residuals()}) {
    for (const int micro_batches : {1, 2, 4}) {
      check(model, Single{.accumulate = micro_batches}.plan(model, {}));
      check(model, DataParallel{.accumulate = micro_batches, .unit_elements = 1}.plan(model, {0, 2}));
      for (const int rank : {0, 1}) check(model, TwoHalves{.cut = 3, .micro_batches = micro_batches}.plan(model, {rank, 2}));
    }
    // A schedule that holds all micro-batches at once.
    Plan held = Single{.accumulate = 3}.plan(model, {});
    std::ranges::stable_partition(held.step, [](const Instruction& i) { return i.op == Op::forward; });
    check(model, held);
    for (const int join : {1, 2})  // two stages on one rank: one is recomputed between the backward halves of the next
      for (const int cut : {1, 2, 3, 4}) {
        const auto schedule =
            Pipeline<Interleaved>{.micro_batches = 2, .schedule = {2}, .cuts = {cut}, .recompute = true, .join_weights = join};
        check(model, schedule.plan(model, {}));
      }
    for (const int rank : {0, 1})  // recomputed activations
      for (const int micro_batches : {1, 2, 4}) {
        check(model, Pipeline<GPipe>{.micro_batches = micro_batches, .cuts = {3}, .recompute = true}.plan(model, {rank, 2}));
        check(model, Pipeline<ZeroBubble>{.micro_batches = micro_batches, .cuts = {3}, .recompute = true}.plan(model, {rank, 2}));
        check(model, Pipeline<GPipe>{.micro_batches = micro_batches, .cuts = {3}, .join_weights = 8}.plan(model, {rank, 2}));
        check(model, Pipeline<Interleaved>{.micro_batches = micro_batches, .schedule = {1}, .join_weights = 2}.plan(model, {rank, 2}));
        for (const int join : {2, 3, 4})
          for (const bool recompute : {false, true})
            check(model, Pipeline<>{.micro_batches = micro_batches, .cuts = {3}, .recompute = recompute, .join_weights = join}.plan(
                             model, {rank, 2}));
      }
  }
}

TEST_CASE("Liveness lets an in-place layer overwrite its input only if nothing reads the input later", "[parallel][memory]") {
  const auto offsets = [](const nn::Outline& model, const Instructions& list) {
    const Liveness memory{model, list, 1, false};
    std::vector<Index> all;
    for (int boundary = 0; boundary <= model.size(); ++boundary) all.push_back(memory.offset(Kind::activation, 0, boundary));
    return all;
  };
  const auto step = [&](const nn::Outline& model) { return offsets(model, Single{}.plan(model, {}).step); };
  const auto plain_step = step(plain());
  CHECK(plain_step[1] == plain_step[2]);
  CHECK(plain_step[3] == plain_step[4]);
  CHECK(plain_step[2] != plain_step[3]);

  const nn::Outline two = nn::outline(nn::Sequential{nn::Tanh{}, nn::Linear{8, 8}, nn::Tanh{}, nn::Flatten{}, nn::Relu{}}, pdp::Shape{8});
  const auto two_step = step(two);
  CHECK(two_step[0] == Liveness::nowhere);  // the batch, in memory of the caller
  CHECK(two_step[1] >= 0);
  CHECK(two_step[2] == two_step[3]);
  CHECK(two_step[3] == two_step[4]);
  CHECK(two_step[4] != two_step[5]);  // backward of Tanh reads the output that Relu would overwrite

  const nn::Outline model = plain();
  Instructions twice{compute(Op::forward, 0, 0, 2), compute(Op::forward, 0, 1, 5)};  // Tanh again, from the same input
  CHECK(offsets(model, twice)[1] != offsets(model, twice)[2]);
  Instructions again{compute(Op::forward, 0, 0, 2), compute(Op::forward, 0, 0, 5)};
  CHECK(offsets(model, again)[1] == offsets(model, again)[2]);
  Instructions lost{compute(Op::forward, 0, 0, 5), compute(Op::forward, 0, 0, 1), compute(Op::backward_weight, 0, 2, 3)};
  CHECK(offsets(model, lost)[1] != offsets(model, lost)[2]);
  Instructions sent{compute(Op::forward, 0, 0, 2)};
  CHECK(offsets(model, sent)[1] == offsets(model, sent)[2]);
  sent.push_back({.op = Op::send_start, .micro_batch = 0, .first = 1, .last = 1});
  CHECK(offsets(model, sent)[1] != offsets(model, sent)[2]);
}

TEST_CASE("Liveness needs no more memory for several accumulated micro-batches than for one", "[parallel][memory]") {
  for (const nn::Outline& model : {plain(), with_views(), with_residuals()}) {
    const auto elements = [&](int accumulate) {
      const Plan plan = Single{.accumulate = accumulate}.plan(model, {});
      return Liveness{model, plan.step, plan.micro_batches, false}.size();
    };
    CHECK(elements(1) > 0);
    CHECK(elements(4) == elements(1));
  }
}

TEST_CASE("Liveness reserves memory for each micro-batch that a schedule holds", "[parallel][memory]") {
  const nn::Outline model = plain();
  Plan held = Single{.accumulate = 3}.plan(model, {});
  std::ranges::stable_partition(held.step, [](const Instruction& i) { return i.op == Op::forward; });
  const Plan one = Single{}.plan(model, {});
  const Index activations = pdp::padded<float>(70) + pdp::padded<float>(33) + pdp::padded<float>(4);
  CHECK(Liveness{model, held.step, 3, false}.size() >= 3 * activations);
  CHECK(Liveness{model, one.step, 1, false}.size() <= 2 * activations);
}

TEST_CASE("Liveness reserves memory for recomputed activations of one micro-batch only", "[parallel][memory][pipeline]") {
  const nn::Outline model = nn::outline(nn::Sequential{nn::Linear{16, 16}, nn::Repeat{20, nn::Linear{16, 16}}}, pdp::Shape{16});
  const auto elements = [&](bool recompute, int rank) {
    const Plan plan = Pipeline<GPipe>{.micro_batches = 8, .cuts = {10}, .recompute = recompute}.plan(model, {rank, 2});
    return Liveness{model, plan.step, 8, false}.size();
  };
  // Rank 0 holds the 10 boundaries of one micro-batch and their gradients. Of the other micro-batches it holds only the activations that it
  // sends.
  CHECK(elements(false, 0) >= 8 * 10 * 16);
  CHECK(elements(true, 0) <= (10 + 2 + 8) * 16);
  CHECK(elements(true, 1) == elements(false, 1));  // the last stage recomputes nothing
}

TEST_CASE("Liveness needs less memory with recompute even if join_weights delays backward_weight", "[parallel][memory][pipeline]") {
  const nn::Outline model = nn::outline(nn::Sequential{nn::Linear{16, 16}, nn::Repeat{20, nn::Linear{16, 16}}}, pdp::Shape{16});
  const auto elements = [&](bool recompute, int join) {
    const Plan plan = Pipeline<>{.micro_batches = 16, .cuts = {10}, .recompute = recompute, .join_weights = join}.plan(model, {0, 2});
    return Liveness{model, plan.step, 16, false}.size();
  };
  CHECK(elements(true, 1) < elements(false, 1));
  CHECK(elements(true, 4) < elements(false, 4));
  CHECK(elements(false, 4) <= 6 * elements(false, 1));  // four micro-batches that wait, with gradients, and those in flight
}

TEST_CASE("Liveness puts the rows of joined backward_weight instructions next to each other", "[parallel][memory][pipeline]") {
  for (const nn::Outline& model : {plain(), with_views(), with_residuals()}) {
    const int micro_batches = 5, join = 3;
    const Plan plan = Pipeline<>{.micro_batches = micro_batches, .cuts = {3}, .join_weights = join}.plan(model, {1, 2});
    const Liveness memory{model, plan.step, micro_batches, false};
    int runs = 0;
    for (std::size_t at = 0; at < plan.step.size(); at += joined(plan.step, at)) {
      const Instruction& i = plan.step[at];
      const auto count = static_cast<int>(joined(plan.step, at));
      const nn::Outline::Layer& layer = model.layers[static_cast<std::size_t>(i.first)];
      if (count == 1 || layer.parameters == 0 || layer.saved > 0) continue;
      ++runs;
      CHECK(i.micro_batch % join == 0);
      CHECK(count == std::min(join, micro_batches - i.micro_batch));
      for (int m = i.micro_batch + 1; m < i.micro_batch + count; ++m) {
        const auto follows = [&](Kind kind, int number) {
          return memory.offset(kind, m, number) == memory.offset(kind, m - 1, number) + model.width(number);
        };
        CHECK(follows(Kind::activation, i.first));
        CHECK(follows(Kind::activation, i.first + 1));
        CHECK(follows(Kind::gradient, i.first + 1));
      }
    }
    CHECK(runs > 0);
  }
}

TEST_CASE("Liveness reserves two adjacent activations for a forward pass alone", "[parallel][memory]") {
  const nn::Outline model = nn::outline(nn::Sequential{nn::Linear{16, 16}, nn::Repeat{20, nn::Linear{16, 16}}}, pdp::Shape{16});
  Instructions list;
  for (int layer = 0; layer < model.size(); ++layer) list.push_back(compute(Op::forward, 0, layer, layer + 1));
  CHECK(Liveness{model, list, 1, true}.size() == 32);
}

TEST_CASE("Liveness::offset returns nowhere for tensors that the list does not use", "[parallel][memory]") {
  const nn::Outline model = plain();
  const Plan back = TwoHalves{.cut = 2}.plan(model, {1, 2});
  const Liveness memory{model, back.step, 1, false};
  CHECK(memory.offset(Kind::activation, 0, 1) == Liveness::nowhere);
  CHECK(memory.offset(Kind::gradient, 0, 1) == Liveness::nowhere);
  CHECK(memory.offset(Kind::activation, 0, 2) != Liveness::nowhere);
  CHECK(memory.offset(Kind::gradient, 0, 2) != Liveness::nowhere);
}
