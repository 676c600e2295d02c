#include <pdp/plan/schedule.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

namespace schedule_test {

using namespace pdp::plan;
using Kind = Action::Kind;

namespace {

/// Returns actions as text, such as "F0 F1 B0 I1 W1": F for forward, B for backward, I for backward_input, W for backward_weight, each with
/// the number of the micro-batch. Actions of the rank's second stage end with "'", those of its third with "''".
std::string words(const std::vector<Action>& actions) {
  std::string joined;
  for (const Action& each : actions)
    joined += pdp::text(joined.empty() ? "" : " ", "FBIW"[static_cast<std::size_t>(each.kind)], each.micro_batch,
                        std::string(static_cast<std::size_t>(each.chunk), '\''));
  return joined;
}

/// Simulates a step and returns its duration, or 0 if the ranks deadlock. Forward of a micro-batch through all stages of a rank takes one
/// unit of time, and so does each half of backward. Messages take no time.
template <Schedule S>
double makespan(const S& schedule, int ranks, int micro_batches) {
  const int chunks = schedule.chunks, stages = ranks * chunks;
  const double part = 1.0 / chunks;
  const auto size = static_cast<std::size_t>(stages * micro_batches);
  const auto at = [&](int stage, int m) { return static_cast<std::size_t>(stage * micro_batches + m); };
  std::vector<double> forward(size, -1), backward(size, -1);  // end times
  std::vector<std::vector<Action>> lists;
  for (int rank = 0; rank < ranks; ++rank) lists.push_back(schedule.actions({rank, ranks, micro_batches}));
  std::vector<std::size_t> next(static_cast<std::size_t>(ranks), 0);
  std::vector<double> clock(static_cast<std::size_t>(ranks), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
      while (next[rank] < lists[rank].size()) {
        const Action& action = lists[rank][next[rank]];
        const int stage = action.chunk * ranks + static_cast<int>(rank), m = action.micro_batch;
        double ready = 0, duration = part;
        if (action.kind == Kind::forward) {
          ready = stage == 0 ? 0 : forward[at(stage - 1, m)];
        } else if (action.kind == Kind::backward_weight) {
          ready = backward[at(stage, m)];
        } else {
          ready = stage + 1 == stages ? forward[at(stage, m)] : backward[at(stage + 1, m)];
          if (action.kind == Kind::backward) duration = 2 * part;
        }
        if (ready < 0) break;
        clock[rank] = std::max(clock[rank], ready) + duration;
        if (action.kind == Kind::forward) forward[at(stage, m)] = clock[rank];
        if (action.kind == Kind::backward || action.kind == Kind::backward_input) backward[at(stage, m)] = clock[rank];
        ++next[rank];
        moved = true;
      }
  }
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    if (next[rank] < lists[rank].size()) return 0;
  return *std::ranges::max_element(clock);
}

/// Returns the maximum number of micro-batches whose activations a rank holds at once, summed over its stages.
int most_held(const std::vector<Action>& actions) {
  int held = 0, most = 0;
  for (const Action& each : actions) {
    if (each.kind == Kind::forward) most = std::max(most, ++held);
    if (each.kind == Kind::backward || each.kind == Kind::backward_weight) --held;
  }
  return most;
}

template <Schedule S>
void check_complete(const S& schedule, PipelinePlace at) {
  const auto actions = schedule.actions(at);
  const auto count = [&](Kind kind, int m, int chunk) { return std::ranges::count(actions, Action{kind, m, chunk}); };
  for (int m = 0; m < at.micro_batches; ++m)
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      CHECK(count(Kind::forward, m, chunk) == 1);
      const auto whole = count(Kind::backward, m, chunk);
      CHECK((whole == 0 || whole == 1));
      CHECK(count(Kind::backward_input, m, chunk) == 1 - whole);
      CHECK(count(Kind::backward_weight, m, chunk) == 1 - whole);
    }
  const auto each = std::ranges::count_if(actions, [](const Action& action) { return action.kind == Kind::forward; });
  CHECK(each == at.micro_batches * schedule.chunks);
}

template <Schedule S>
void check_all(const S& schedule) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int m = 1; m <= 20; ++m) {
      CAPTURE(ranks, m, schedule.chunks);
      for (int rank = 0; rank < ranks; ++rank) check_complete(schedule, {rank, ranks, m});
      CHECK(makespan(schedule, ranks, m) >= 3 * m - 1e-9);
    }
}

}  // namespace

TEST_CASE("Every schedule runs each micro-batch once forward and backward in each stage without deadlock", "[parallel][schedule]") {
  check_all(GPipe{});
  check_all(OneForwardOneBackward{});
  check_all(ZeroBubble{});
  for (const int chunks : {1, 2, 3, 4}) check_all(Interleaved{chunks});
}

TEST_CASE("Schedules order their actions as in their papers", "[parallel][schedule]") {
  CHECK(words(GPipe{}.actions({1, 3, 3})) == "F0 F1 F2 B0 B1 B2");
  CHECK(words(OneForwardOneBackward{}.actions({0, 4, 6})) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  CHECK(words(OneForwardOneBackward{}.actions({3, 4, 3})) == "F0 B0 F1 B1 F2 B2");
  CHECK(words(OneForwardOneBackward{}.actions({0, 4, 2})) == "F0 F1 B0 B1");
  CHECK(words(Interleaved{}.actions({0, 2, 4})) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  CHECK(words(Interleaved{}.actions({1, 2, 4})) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
  CHECK(words(ZeroBubble{}.actions({0, 3, 4})) == "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  CHECK(words(ZeroBubble{}.actions({2, 3, 4})) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

TEST_CASE("join_weights groups the backward_weight actions of several micro-batches", "[parallel][schedule]") {
  const auto joined = [](const auto& schedule, PipelinePlace at, int count) { return words(join_weights(schedule.actions(at), count)); };
  CHECK(joined(OneForwardOneBackward{}, {0, 2, 3}, 1) == "F0 F1 I0 W0 F2 I1 W1 I2 W2");
  CHECK(joined(OneForwardOneBackward{}, {0, 2, 3}, 2) == "F0 F1 I0 F2 I1 W0 W1 I2 W2");
  CHECK(joined(GPipe{}, {1, 2, 3}, 8) == "F0 F1 F2 I0 I1 I2 W0 W1 W2");
  CHECK(joined(ZeroBubble{}, {1, 2, 5}, 3) == "F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 F4 I4 W3 W4");
  struct Joined {
    Interleaved schedule;
    int count;
    int chunks = schedule.chunks;
    [[nodiscard]] std::vector<Action> actions(PipelinePlace at) const { return join_weights(schedule.actions(at), count); }
  };
  for (const int count : {1, 2, 5, 100})
    for (const int m : {1, 4, 7})
      for (const int rank : {0, 1, 2}) check_complete(Joined{{}, count}, {rank, 3, m});
}

TEST_CASE("Schedules take as long for a step as their papers say", "[parallel][schedule]") {
  for (int p = 1; p <= 8; ++p)
    for (int m = p; m <= 4 * p; m += p) {
      CAPTURE(p, m);
      CHECK(makespan(GPipe{}, p, m) == 3 * (m + p - 1));
      CHECK(makespan(OneForwardOneBackward{}, p, m) == 3 * (m + p - 1));
      if (m > p) CHECK(makespan(ZeroBubble{}, p, m) == 3 * m + p - 1);
      for (const int chunks : {2, 3}) CHECK(makespan(Interleaved{chunks}, p, m) == Approx(3 * m + 3.0 * (p - 1) / chunks));
    }
}

TEST_CASE("Schedules hold no more micro-batches at once on a rank than they promise", "[parallel][schedule]") {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      for (int rank = 0; rank < p; ++rank) {
        CAPTURE(p, m, rank);
        CHECK(most_held(GPipe{}.actions({rank, p, m})) == m);
        CHECK(most_held(OneForwardOneBackward{}.actions({rank, p, m})) == std::min(m, p - rank));
        CHECK(most_held(ZeroBubble{}.actions({rank, p, m})) <= std::min(m, p));
      }
}

}  // namespace schedule_test
