#include <pdp/comm/message/algorithm/two_level.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "catch.hpp"

namespace comm = pdp::comm;
using comm::Schedule, comm::Step, comm::Verb;

// Simulates the schedules of all ranks without a transport, under the strictest rule: a send completes only when its receive has been
// posted. Values are counts, so terms that a sum holds twice or not at all are detected.

namespace {

/// Counts the contributions of each rank separately: three bits for each of up to 21 ranks.
using Count = std::uint64_t;
constexpr Count once(int rank) { return Count{1} << (3 * rank); }
constexpr Count once_each(int size) {
  Count all = 0;
  for (int rank = 0; rank < size; ++rank) all += once(rank);
  return all;
}

constexpr Count add(Count left, Count right) { return left + right; }

/// Values for append(), which is neither commutative nor associative, so that its result shows the order of ranks.
constexpr Count digit(int rank) { return static_cast<Count>(rank) + 1; }
constexpr Count append(Count left, Count right) { return left * 6364136223846793005ULL + (right ^ 0x9e3779b9U); }
constexpr Count in_order(int size) {
  Count all = digit(0);
  for (int rank = 1; rank < size; ++rank) all = append(all, digit(rank));
  return all;
}

struct Rank {
  Schedule schedule;
  std::vector<Count> input, output, scratch;
  bool in_place = false;  // input and output are the same buffer
  int host = 0;           // ranks of one host execute `together` steps in shared memory
  std::size_t begun = 0;  // number of steps in this and earlier rounds
  std::vector<char> done;

  constexpr std::vector<Count>& buffer(Step::Buffer which) {
    if (which == Step::Buffer::scratch) return scratch;
    return which == Step::Buffer::input && !in_place ? input : output;
  }
};

class Simulation {
 public:
  constexpr explicit Simulation(std::vector<Rank> ranks, Count (*combine)(Count, Count)) : ranks_{std::move(ranks)}, combine_{combine} {
    for (Rank& rank : ranks_) {
      rank.scratch.assign(rank.schedule.scratch(), 0);
      rank.done.assign(rank.schedule.steps().size(), 0);
    }
  }

  /// Returns null if every rank completes its schedule, else a description of the fault.
  constexpr const char* run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_)
        while (begin_round(rank)) moved = true;
      if (fault_ != nullptr) return fault_;
      for (std::size_t from = 0; from < ranks_.size(); ++from)
        for (std::size_t to = 0; to < ranks_.size(); ++to) moved |= deliver(static_cast<int>(from), static_cast<int>(to));
      for (const Rank& rank : ranks_) moved |= meet(rank.host);
      if (fault_ != nullptr) return fault_;
    }
    for (const Rank& rank : ranks_)
      if (std::find(rank.done.begin(), rank.done.end(), 0) != rank.done.end()) return "a rank waits for ever";
    return nullptr;
  }

  [[nodiscard]] constexpr const std::vector<Count>& output(int rank) const { return ranks_[static_cast<std::size_t>(rank)].output; }

 private:
  static constexpr bool is_local(const Step& step) { return step.action == Step::Action::copy || step.action == Step::Action::add; }
  static constexpr bool overlap(const Step& a, const Step& b) { return a.offset < b.offset + b.count && b.offset < a.offset + a.count; }

  /// Begins a rank's next round if the previous one is complete. Returns whether it did.
  constexpr bool begin_round(Rank& rank) {
    const auto& steps = rank.schedule.steps();
    if (rank.begun == steps.size()) return false;
    for (std::size_t i = 0; i < rank.begun; ++i)
      if (!rank.done[i]) return false;
    const std::size_t first = rank.begun;
    const int round = steps[first].round;
    bool messages = false;
    for (; rank.begun < steps.size() && steps[rank.begun].round == round; ++rank.begun) {
      const Step& step = steps[rank.begun];
      if (!is_local(step)) {
        messages = true;
        if (step.offset + step.count > rank.buffer(step.buffer).size()) fault_ = "a message lies outside its buffer";
        continue;
      }
      if (messages) fault_ = "a local step comes after messages of its round";
      auto &to = rank.buffer(step.buffer), &from = rank.buffer(step.source);
      if (step.offset + step.count > to.size() || step.source_offset + step.count > from.size()) {
        fault_ = "a copy lies outside its buffers";
        return false;
      }
      const std::vector<Count> part(from.begin() + static_cast<std::ptrdiff_t>(step.source_offset),
                                    from.begin() + static_cast<std::ptrdiff_t>(step.source_offset + step.count));
      for (std::size_t i = 0; i < part.size(); ++i) {
        Count& into = to[step.offset + i];
        into = step.action == Step::Action::add ? combine_(into, part[i]) : part[i];
      }
      rank.done[rank.begun] = 1;
    }
    for (std::size_t a = first; a < rank.begun; ++a)
      for (std::size_t b = first; b < rank.begun; ++b)
        if (a != b && !is_local(steps[a]) && !is_local(steps[b]) && steps[b].action != Step::Action::send &&
            &rank.buffer(steps[a].buffer) == &rank.buffer(steps[b].buffer) && overlap(steps[a], steps[b]))
          fault_ = "a message is written while another of its round uses the same memory";
    return true;
  }

  /// Delivers the first message that both ends have posted. Returns whether there is one.
  constexpr bool deliver(int from, int to) {
    Rank &sender = ranks_[static_cast<std::size_t>(from)], &receiver = ranks_[static_cast<std::size_t>(to)];
    const auto first = [](const Rank& rank, int peer, bool sends) {
      std::size_t i = 0;
      for (; i < rank.begun; ++i) {
        const Step& step = rank.schedule.steps()[i];
        if (!rank.done[i] && step.peer == peer && step.action != Step::Action::together && (step.action == Step::Action::send) == sends)
          break;
      }
      return i;
    };
    const std::size_t sent = first(sender, to, true), received = first(receiver, from, false);
    if (sent == sender.begun || received == receiver.begun) return false;
    const Step &out = sender.schedule.steps()[sent], &in = receiver.schedule.steps()[received];
    if (out.count != in.count) fault_ = "a message is longer than its receive";
    if (fault_ != nullptr) return false;
    for (std::size_t i = 0; i < out.count; ++i) {
      Count& into = receiver.buffer(in.buffer)[in.offset + i];
      const Count value = sender.buffer(out.buffer)[out.offset + i];
      into = in.action == Step::Action::combine ? combine_(into, value) : value;
    }
    sender.done[sent] = receiver.done[received] = 1;
    return true;
  }

  /// Returns the step in which a rank waits for the others of its host, or the number of its steps if it does not wait.
  static constexpr std::size_t meeting(const Rank& rank) {
    for (std::size_t i = 0; i < rank.begun; ++i)
      if (!rank.done[i] && rank.schedule.steps()[i].action == Step::Action::together) return i;
    return rank.done.size();
  }
  /// Reduces the values of all ranks of a host in the order of ranks, if all have arrived. Returns whether it did.
  constexpr bool meet(int host) {
    std::vector<Rank*> here;
    for (Rank& rank : ranks_)
      if (rank.host == host) here.push_back(&rank);
    for (const Rank* rank : here)
      if (meeting(*rank) == rank->done.size()) return false;
    std::vector<Count> total;
    for (Rank* rank : here) {
      const Step& step = rank->schedule.steps()[meeting(*rank)];
      for (std::size_t i = 0; i < step.count; ++i) {
        const Count value = rank->buffer(step.buffer)[step.offset + i];
        if (rank == here.front())
          total.push_back(value);
        else
          total[i] = combine_(total[i], value);
      }
    }
    for (Rank* rank : here) {
      const std::size_t at = meeting(*rank);
      const Step& step = rank->schedule.steps()[at];
      for (std::size_t i = 0; i < step.count; ++i) rank->buffer(step.buffer)[step.offset + i] = total[i];
      rank->done[at] = 1;
    }
    return true;
  }

  std::vector<Rank> ranks_;
  Count (*combine_)(Count, Count);
  const char* fault_ = nullptr;
};

constexpr Count unwritten = ~Count{0};
/// Element `i` of a rank's input for verbs that do not reduce.
constexpr Count mark(int rank, std::size_t i) { return static_cast<Count>(rank) * 1000 + i + 1; }

/// Returns null if the schedules that `write(schedule, rank)` writes implement the verb, else a description of the fault.
template <class Write>
constexpr const char* faults(Verb verb, int size, int root, std::size_t count, const Write& write, bool ordered = false,
                             const std::vector<int>& host_of = {}) {
  const auto brings = [ordered](int rank) { return ordered ? digit(rank) : once(rank); };
  const std::size_t all = count * static_cast<std::size_t>(size);
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) {
    Rank made;
    write(made.schedule, rank);
    made.host = host_of.empty() ? rank : host_of[static_cast<std::size_t>(rank)];
    const bool is_root = rank == root;
    made.in_place = verb == Verb::broadcast || verb == Verb::reduce || verb == Verb::all_reduce;
    made.output.assign(verb == Verb::all_gather || verb == Verb::all_to_all || (verb == Verb::gather && is_root) ? all : count, unwritten);
    if (verb == Verb::gather && !is_root) made.output.clear();
    if (verb == Verb::reduce || verb == Verb::all_reduce) made.output.assign(count, brings(rank));
    if (verb == Verb::broadcast)
      for (std::size_t i = 0; i < count; ++i) made.output[i] = mark(rank, i);
    if (verb == Verb::reduce_scatter) made.input.assign(all, brings(rank));
    if (verb == Verb::all_gather || verb == Verb::gather)
      for (std::size_t i = 0; i < count; ++i) made.input.push_back(mark(rank, i));
    if (verb == Verb::all_to_all)
      for (std::size_t i = 0; i < all; ++i) made.input.push_back(mark(rank, i));
    if (verb == Verb::scatter && is_root)
      for (std::size_t i = 0; i < all; ++i) made.input.push_back(mark(root, i));
    ranks.push_back(std::move(made));
  }
  Simulation simulation{std::move(ranks), ordered ? append : add};
  if (const char* fault = simulation.run(); fault != nullptr) return fault;
  for (int rank = 0; rank < size; ++rank) {
    const auto& output = simulation.output(rank);
    for (std::size_t i = 0; i < output.size(); ++i) {
      Count expected = ordered ? in_order(size) : once_each(size);  // for reductions
      if (verb == Verb::reduce && rank != root) expected = brings(rank);
      if (verb == Verb::broadcast) expected = mark(root, i);
      if (verb == Verb::all_gather || verb == Verb::gather) expected = mark(static_cast<int>(i / count), i % count);
      if (verb == Verb::all_to_all) expected = mark(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
      if (verb == Verb::scatter) expected = mark(root, static_cast<std::size_t>(rank) * count + i);
      if (output[i] != expected) return "a value is counted twice, not at all, or in the wrong place";
    }
  }
  return nullptr;
}

constexpr comm::algorithm::Extent extent(std::size_t count) {
  return {.count = count, .shards = comm::Shards{count}, .received = comm::Shards{count}};
}

/// As faults(), for the algorithm that select() chooses for the count.
constexpr const char* faults_of_chosen(Verb verb, int size, int root, std::size_t count, std::size_t element_bytes = 1) {
  return faults(verb, size, root, count, [&](Schedule& schedule, int rank) {
    comm::algorithm::select(schedule, verb, rank, size, root, extent(count), element_bytes);
  });
}

constexpr std::array reductions_and_moves{Verb::broadcast,  Verb::reduce, Verb::all_reduce, Verb::reduce_scatter,
                                          Verb::all_gather, Verb::gather, Verb::scatter,    Verb::all_to_all};

constexpr bool sound_for(int size) {
  for (const Verb verb : reductions_and_moves)
    if (faults_of_chosen(verb, size, size - 1, 3) != nullptr) return false;
  return faults_of_chosen(Verb::all_reduce, size, -1, 5, /*large*/ 1 << 20) == nullptr;
}
static_assert(sound_for(1) && sound_for(2) && sound_for(3) && sound_for(4), "the compiler carries them out as well");

}  // namespace

TEST_CASE("Every schedule completes under rendezvous sends and counts each value once on up to 17 ranks", "[comm][schedule]") {
  for (int size = 1; size <= 17; ++size)
    for (const Verb verb : reductions_and_moves)
      for (int root = 0; root < size; ++root)
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{17}, std::size_t{40}}) {
          const char* fault = faults_of_chosen(verb, size, root, count);
          if (fault != nullptr)
            FAIL_CHECK(comm::name(verb) << " on " << size << " ranks, root " << root << ", count " << count << ": " << fault);
        }
}

TEST_CASE("Every algorithm of all_reduce is correct for any count, also with fewer elements than ranks", "[comm][schedule]") {
  using enum comm::algorithm::AllReduce;
  for (int size = 1; size <= 17; ++size)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{16}, std::size_t{18}, std::size_t{53}})
      for (const auto algorithm : {one_shot, recursive_doubling, rabenseifner, ring}) {
        INFO(size << " ranks, count " << count << ", algorithm " << static_cast<int>(algorithm));
        CHECK(faults(Verb::all_reduce, size, -1, count, [&](Schedule& schedule, int rank) {
                comm::algorithm::all_reduce(schedule, algorithm, rank, size, count);
              }) == nullptr);
      }
}

TEST_CASE("Order::of_ranks combines values in the order of ranks on every rank and for every root", "[comm][schedule]") {
  for (int size = 1; size <= 12; ++size)
    for (const Verb verb : {Verb::reduce, Verb::all_reduce, Verb::reduce_scatter})
      for (int root = 0; root < size; ++root) {
        INFO(comm::name(verb) << " on " << size << " ranks, root " << root);
        const auto write = [&](comm::algorithm::Order order) {
          return [=](Schedule& schedule, int rank) { comm::algorithm::select(schedule, verb, rank, size, root, extent(3), 1, order); };
        };
        CHECK(faults(verb, size, root, 3, write(comm::algorithm::Order::of_ranks), /*ordered*/ true) == nullptr);
        CHECK(faults(verb, size, root, 3, write(comm::algorithm::Order::of_ranks)) == nullptr);
        if (size > 3) CHECK(faults(verb, size, root, 3, write(comm::algorithm::Order::any), /*ordered*/ true) != nullptr);
      }
}

TEST_CASE("TwoLevel collectives are correct for different placements of ranks on hosts", "[comm][schedule]") {
  const auto layout = [](int kind, int size) {
    std::vector<int> host_of;
    for (int rank = 0; rank < size; ++rank) {
      const int host = kind == 0 ? rank / 2 : kind == 1 ? rank % 3 : kind == 2 ? rank * rank % 5 : rank == size - 1;
      host_of.push_back(host);
    }
    std::vector<int> met;  // hosts are numbered in the order of their first ranks
    for (int& host : host_of) {
      const auto found = std::find(met.begin(), met.end(), host);
      if (found == met.end()) met.push_back(host);
      host = static_cast<int>(std::find(met.begin(), met.end(), host) - met.begin());
    }
    return host_of;
  };
  for (int size = 2; size <= 13; ++size)
    for (int kind = 0; kind < 4; ++kind)
      for (const Verb verb : {Verb::broadcast, Verb::reduce, Verb::all_reduce})
        for (int root = 0; root < (verb == Verb::all_reduce ? 1 : size); ++root)
          for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{19}}) {
            const std::vector<int> host_of = layout(kind, size);
            std::vector<comm::algorithm::Levels> levels;
            for (int rank = 0; rank < size; ++rank) levels.push_back(comm::algorithm::Levels::of(host_of, rank));
            const auto write = [&](Schedule& schedule, int rank) {
              comm::algorithm::TwoLevel{schedule, levels[static_cast<std::size_t>(rank)], rank}.select(
                  verb, verb == Verb::all_reduce ? -1 : root, count, /*large*/ count == 19 ? 1 << 20 : 1);
            };
            const char* const fault = faults(verb, size, root, count, write, false, host_of);
            if (fault != nullptr)
              FAIL_CHECK(comm::name(verb) << " on " << size << " ranks, layout " << kind << ", root " << root << ", count " << count << ": "
                                          << fault);
          }
}

TEST_CASE("Rabenseifner's algorithm sends as few bytes as a ring, in fewer rounds", "[comm][schedule]") {
  const auto cost = [](comm::algorithm::AllReduce algorithm, int rank) {
    Schedule schedule;
    comm::algorithm::all_reduce(schedule, algorithm, rank, 8, 800);
    std::size_t sent = 0;
    for (const Step& step : schedule.steps())
      if (step.action == Step::Action::send) sent += step.count;
    return std::pair{sent, schedule.steps().back().round + 1};
  };
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(cost(comm::algorithm::AllReduce::rabenseifner, rank) == std::pair{std::size_t{1400}, 6});
    CHECK(cost(comm::algorithm::AllReduce::ring, rank) == std::pair{std::size_t{1400}, 14});
  }
}

TEST_CASE("all_reduce_choices is sorted, and choose returns the algorithm of the matching row", "[comm][schedule]") {
  const auto& rows = comm::algorithm::all_reduce_choices;
  for (const auto& row : rows) CHECK(comm::algorithm::choose(row.ranks, row.bytes) == row.algorithm);
  for (std::size_t i = 1; i < rows.size(); ++i)
    CHECK((rows[i - 1].ranks < rows[i].ranks || (rows[i - 1].ranks == rows[i].ranks && rows[i - 1].bytes < rows[i].bytes)));
}

TEST_CASE("No rank leaves a barrier before every rank has entered it", "[comm][schedule]") {
  for (int size = 1; size <= 17; ++size) {
    // known[rank] has a bit for each rank that it knows to have entered, directly or through others.
    std::vector<Schedule> schedules(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
      comm::algorithm::select(schedules[static_cast<std::size_t>(rank)], Verb::barrier, rank, size, -1, {}, 1);
    std::vector<std::uint32_t> known;
    for (int rank = 0; rank < size; ++rank) known.push_back(1u << rank);
    const int rounds = schedules[0].steps().empty() ? 0 : schedules[0].steps().back().round + 1;
    for (int round = 0; round < rounds; ++round) {
      const auto before = known;
      for (std::size_t rank = 0; rank < schedules.size(); ++rank)
        for (const Step& step : schedules[rank].steps()) {
          if (step.round != round || step.action == Step::Action::send) continue;
          const auto& theirs = schedules[static_cast<std::size_t>(step.peer)].steps();
          CHECK(std::ranges::any_of(theirs, [&](const Step& sent) {
            return sent.action == Step::Action::send && sent.round == round && sent.peer == static_cast<int>(rank);
          }));
          known[rank] |= before[static_cast<std::size_t>(step.peer)];
        }
    }
    for (const std::uint32_t heard : known) CHECK(heard == (1u << size) - 1);
  }
}

TEST_CASE("Simulation detects deadlocks, wrong sizes, overlapping messages and wrong sums", "[comm][schedule]") {
  const auto exchange = [](bool receive_first, std::size_t received) {
    return [=](Schedule& schedule, int rank) {
      if (receive_first) {
        schedule.combine(1 - rank, Step::Buffer::output, 0, received);
        schedule.next_round();
      }
      schedule.copy(Step::Buffer::scratch, 0, Step::Buffer::output, 0, 2);
      schedule.send(1 - rank, Step::Buffer::scratch, 0, 2);
      if (!receive_first) schedule.combine(1 - rank, Step::Buffer::output, 0, received);
    };
  };
  const auto found = [](const auto& write) { return std::string{faults(Verb::all_reduce, 2, -1, 2, write)}; };
  CHECK(faults(Verb::all_reduce, 2, -1, 2, exchange(false, 2)) == nullptr);
  CHECK(found(exchange(true, 2)) == "a rank waits for ever");
  CHECK(found(exchange(false, 1)) == "a message is longer than its receive");
  CHECK(found([](Schedule& schedule, int rank) {
          schedule.send(1 - rank, Step::Buffer::output, 0, 2);
          schedule.combine(1 - rank, Step::Buffer::output, 0, 2);
        }) == "a message is written while another of its round uses the same memory");
  CHECK(found([](Schedule&, int) {}) == "a value is counted twice, not at all, or in the wrong place");
  CHECK(found([](Schedule& schedule, int) { schedule.copy(Step::Buffer::output, 1, Step::Buffer::input, 0, 2); }) ==
        "a copy lies outside its buffers");
}
