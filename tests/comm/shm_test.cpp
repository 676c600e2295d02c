#include <pdp/comm/shm.hpp>
#include <pdp/comm/shm/connect.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/core/random.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <numeric>

#include "catch.hpp"
#include "comm/behaviour.hpp"
#include "comm/findings.hpp"
#include "comm/stream_ranks.hpp"
#include "data/files.hpp"

using namespace stream_test;
namespace comm = pdp::comm;
namespace shm = pdp::comm::shm;
using Address = shm::Address;

namespace {

/// Rank 0 of a world of `size`, in a thread. It publishes its address in `store` and waits up to `patience` for the other ranks.
struct Incomplete {
  explicit Incomplete(int size, comm::Duration patience)
      : zero{[this, size, patience] {
          try {
            ShmTransport::connect(store, 0, size, Clock::now() + patience);
          } catch (...) {
            thrown = std::current_exception();
          }
        }} {}

  pdp::launch::InProcessStore store;
  std::exception_ptr thrown;
  std::jthread zero;  // last, since it uses the members above
};

/// A child process that runs `function`. The destructor kills it.
struct Process {
  explicit Process(const std::function<void()>& function) : id{::fork()} {
    if (id != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    function();
    ::_exit(0);
  }
  Process(Process&&) = delete;
  ~Process() { kill(); }
  void kill() {
    if (id <= 0) return;
    ::kill(id, SIGKILL);
    ::waitpid(std::exchange(id, -1), nullptr, 0);
  }
  pid_t id;
};

/// A world of two. Rank 1 runs `function` in a child process. The test enters as rank 0.
struct TwoProcesses {
  explicit TwoProcesses(const std::function<void(ShmTransport&)>& function)
      : nonce{shm::draw_nonce()}, segment{std::make_shared<shm::Segment>(shm::Segment::create(2, nonce))}, one{[&] {
          ShmTransport transport = enter(1);
          function(transport);
        }} {}

  /// The child is a fork of this process, so it has the segment without a store.
  [[nodiscard]] ShmTransport enter(int rank) const {
    segment->map_rings_of(rank);
    shm::Entrance entrance{*segment, rank};
    return ShmTransport{rank, shm::Rings{segment, rank, entrance.wait(patience())}};
  }

  shm::Nonce nonce;
  std::shared_ptr<shm::Segment> segment;
  Process one;
};

void sleep_for_ever(ShmTransport&) {
  while (true) ::pause();
}

}  // namespace

TEST_CASE("shm::Address::parse restores an address from its text and rejects malformed text", "[comm][shm]") {
  const Address address{.process = 4194304, .file = 17, .host = "host/pid:[1]", .nonce = shm::draw_nonce()};
  const Address read = Address::parse(address.to_string());
  CHECK(read.process == address.process);
  CHECK(read.file == address.file);
  CHECK(read.host == address.host);
  CHECK(read.nonce == address.nonce);
  const std::string whole = address.to_string();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) CHECK_THROWS_AS(Address::parse(whole.substr(0, bytes)), pdp::ConfigError);
  CHECK_THROWS_AS(Address::parse(whole + "x"), pdp::ConfigError);
  CHECK_THROWS_AS(Address::parse("x" + whole), pdp::ConfigError);
}

TEST_CASE("shm::check_proc throws if /proc belongs to another PID namespace", "[comm][shm]") {
  CHECK_NOTHROW(shm::check_proc());
  CHECK_NOTHROW(shm::check_proc("/no/such/file"));
  const files::TemporaryFolder folder;
  const std::string link = folder / "self";
  REQUIRE(::symlink("1234567890", link.c_str()) == 0);
  CHECK_THROWS_AS(shm::check_proc(link.c_str()), pdp::ConfigError);
  CHECK_THROWS_WITH(shm::check_proc(link.c_str()), Contains("this process is 1234567890") && Contains("unshare --mount-proc"));
}

TEST_CASE("ShmTransport::connect names the missing ranks at the deadline", "[comm][shm]") {
  pdp::launch::InProcessStore store;
  std::exception_ptr thrown[2];
  {
    std::vector<std::jthread> threads;
    for (const int rank : {0, 2})
      threads.emplace_back([&, rank] {
        try {
          ShmTransport::connect(store, rank, 4, Clock::now() + std::chrono::milliseconds{300});
        } catch (...) {
          thrown[rank / 2] = std::current_exception();
        }
      });
  }
  // The first of the two to time out leaves. The other may notice that before its own deadline.
  CHECK((is<pdp::Timeout>(thrown[0]) || is<pdp::Timeout>(thrown[1])));
  for (const auto& each : thrown)
    if (is<pdp::Timeout>(each))
      CHECK_THAT(words(each), Contains("rank 1") && Contains("rank 3") && Contains("of 4 ranks") && !Contains("rank 2,"));
    else
      CHECK((lost_rank(each) == 0 || lost_rank(each) == 2));
}

TEST_CASE("ShmTransport::connect names rank 0 if it is missing", "[comm][shm]") {
  pdp::launch::InProcessStore store;
  CHECK_THROWS_WITH(ShmTransport::connect(store, 1, 2, Clock::now() + std::chrono::milliseconds{50}),
                    Contains("rank 1 has not heard from rank 0 (of 2 ranks)"));
}

TEST_CASE("ShmTransport::connect rejects a segment that is not the job's", "[comm][shm]") {
  Incomplete job{2, std::chrono::milliseconds{500}};
  const Address address = Address::parse(job.store.wait("shm/segment", patience()));
  pdp::launch::InProcessStore other;
  Address wrong = address;
  SECTION("of another job") {
    wrong.nonce[3] ^= 1;
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 2, patience()), Contains("does not belong to these ranks"));
  }
  SECTION("a file of another kind") {
    const comm::Descriptor file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    wrong.file = file.get();
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 2, patience()), Contains("does not belong to these ranks"));
  }
  SECTION("of a process that does not exist") {
    wrong.process = 0x7fffffff;
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_AS(ShmTransport::connect(other, 1, 2, patience()), pdp::PeerLost);
  }
  SECTION("of another host") {
    wrong.host = "another";
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 2, patience()),
                      Contains("rank 1 is on another host than rank 0") && Contains("use another communicator, such as tcp"));
  }
  SECTION("of a world of another size") {
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 3, patience()), Contains("is for 2 ranks") && Contains("this rank expects 3 ranks"));
  }
}

TEST_CASE("ShmTransport::connect throws on one of two processes that were started as the same rank", "[comm][shm]") {
  Incomplete job{3, std::chrono::milliseconds{500}};
  std::vector<std::exception_ptr> thrown(2);
  {
    std::vector<std::jthread> twins;
    for (std::exception_ptr& each : thrown)
      twins.emplace_back([&] {
        try {
          ShmTransport::connect(job.store, 1, 3, Clock::now() + std::chrono::milliseconds{300});
        } catch (...) {
          each = std::current_exception();
        }
      });
  }
  CHECK(is<pdp::ConfigError>(thrown[0]) != is<pdp::ConfigError>(thrown[1]));
  CHECK_THAT(words(thrown[is<pdp::ConfigError>(thrown[0]) ? 0 : 1]), Contains("two processes were started as the same rank"));
}

TEST_CASE("ShmTransport reports a killed process as lost", "[comm][shm][faults]") {
  TwoProcesses job{sleep_for_ever};
  ShmTransport zero = job.enter(0);
  SECTION("to a rank that polls") {
    job.one.kill();
    std::vector<std::byte> values(8);
    ReceiveRequest request;
    fill(request, 1, values);
    zero.post(request);
    std::exception_ptr thrown;
    for (const auto until = patience(); !thrown && Clock::now() < until;) try {
        zero.progress();
      } catch (...) {
        thrown = std::current_exception();
      }
    CHECK(lost_rank(thrown) == 1);
  }
  SECTION("to a rank that sleeps") {
    std::exception_ptr thrown;
    {
      const std::jthread waiter{[&] { thrown = failure_of(zero); }};
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
      job.one.kill();
    }
    CHECK(lost_rank(thrown) == 1);
    CHECK_THAT(words(thrown), Contains("rank 1 is gone"));
  }
  SECTION("to a rank whose message does not fit into the ring") {
    const std::vector<std::byte> values(8 << 20);
    SendRequest request;
    fill(request, 1, values);
    zero.post(request);
    job.one.kill();
    CHECK(lost_rank(failure_of(zero)) == 1);
    CHECK_FALSE(request.done);
  }
}

TEST_CASE("ShmTransport delivers a message that was sent before its sender was killed", "[comm][shm][faults]") {
  TwoProcesses job{[](ShmTransport& transport) {
    send(transport, 0, pattern(1000, 3));
    sleep_for_ever(transport);
  }};
  ShmTransport zero = job.enter(0);
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  job.one.kill();
  CHECK(receive(zero, 1, 1000) == pattern(1000, 3));
  CHECK(lost_rank(failure_of(zero)) == 1);
}

TEST_CASE("shm::Entrance reports a rank that is killed during the start as lost", "[comm][shm][faults]") {
  const shm::Nonce nonce = shm::draw_nonce();
  const shm::Segment segment = shm::Segment::create(3, nonce);
  Process one{[&] {
    shm::Entrance entrance{segment, 1};
    entrance.wait(patience());
  }};
  while (segment.seat(1).stage.load() != shm::Seat::joined) std::this_thread::yield();
  shm::Entrance entrance{segment, 0};
  std::exception_ptr thrown;
  {
    const std::jthread waiter{[&] {
      try {
        entrance.wait(patience());
      } catch (...) {
        thrown = std::current_exception();
      }
    }};
    one.kill();
  }
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("its process ended while the job was still starting"));
}

TEST_CASE("shm::Entrance names the missing rank, not the rank that gave up waiting for it", "[comm][shm][faults]") {
  const shm::Segment segment = shm::Segment::create(3, shm::draw_nonce());
  shm::Entrance entrance{segment, 1, 0, /*world_ranks*/ {4, 5, 7}};
  { const shm::Entrance gives_up{segment, 0, 0, {4, 5, 7}}; }
  std::string said;
  try {
    entrance.wait(patience());
  } catch (const pdp::Timeout& error) {
    said = error.what();
  }
  CHECK_THAT(said, StartsWith("rank 5 has not heard from rank 7 (of 3 ranks)"));
}

TEST_CASE("ShmTransport carries messages across the ends of its rings between threads on one mapping", "[comm][shm]") {
  constexpr int size = 3;
  const auto segment = std::make_shared<shm::Segment>(shm::Segment::create(size, shm::draw_nonce()));
  for (int rank = 0; rank < size; ++rank) segment->map_rings_of(rank);
  std::vector<std::exception_ptr> thrown(size);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          shm::Entrance entrance{*segment, rank};
          ShmTransport transport{rank, shm::Rings{segment, rank, entrance.wait(patience())}};
          const int next = (rank + 1) % size, before = (rank + size - 1) % size;
          for (int round = 0; round < 40; ++round) {
            const std::size_t bytes = static_cast<std::size_t>(round * 312'347 % 7'000'000);
            const auto values = pattern(bytes, rank);
            std::vector<std::byte> got(bytes);
            SendRequest out;
            ReceiveRequest in;
            fill(out, next, values);
            fill(in, before, got);
            transport.post(out);
            transport.post(in);
            finish(transport, out);
            finish(transport, in);
            require(got == pattern(bytes, before), "other bytes arrived");
          }
        } catch (...) {
          thrown[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const auto& each : thrown)
    if (each) std::rethrow_exception(each);
}

TEST_CASE("Shm sends a message of 1.9 MB while its receiver does not poll", "[comm][shm]") {
  check_on_ranks<comm::Shm>(2, [](comm::Shm& world, Findings& findings) {
    std::vector<float> values(480'000, 1);
    for (int round = 0; round < 3; ++round) {
      if (world.rank() == 0) {
        auto work = world.send_async(values, 1);
        findings.expect(work.done(), "a message of 1.9 MB is on its way as a whole");
        work.wait();
      }
      world.barrier();
      if (world.rank() == 1) world.recv(values, 0);
      world.barrier();
    }
  });
}

TEST_CASE("ShmTransport reports the peer as lost if a counter of its ring is out of range", "[comm][shm]") {
  const auto segment = std::make_shared<shm::Segment>(shm::Segment::create(2, shm::draw_nonce()));
  segment->map_rings_of(0);
  ShmTransport zero{0, shm::Rings{segment, 0, shm::Processes{2}}};
  segment->counters(1, 0).written.store(std::uint64_t{1} << 60);
  const auto thrown = failure_of(zero);
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("rank 0 received malformed data from rank 1"));
}

namespace {

using Meeting = comm::together::Meeting<shm::Arenas, shm::Bell>;

/// The shared state of all ranks of a world. The test acts for each rank.
struct Table {
  explicit Table(int size) : segment{shm::Segment::create(size, shm::draw_nonce())}, arenas(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) bells.emplace_back(segment.seat(rank).parking);
    std::vector<comm::together::Partner<shm::Bell>> partners;
    for (int rank = 0; rank < size; ++rank) partners.push_back({rank, &segment.board(rank), &bells[static_cast<std::size_t>(rank)]});
    for (int rank = 0; rank < size; ++rank)
      ranks.emplace_back(comm::Envelope::world, partners, rank, arenas[static_cast<std::size_t>(rank)]);
  }

  /// Makes an arena, which is memory of each rank that all ranks map. Returns each rank's region of it.
  std::vector<comm::Region> make_arena(std::uint64_t number, std::size_t bytes) {
    std::vector<int> all(arenas.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<shm::Memory> owned;
    for (std::size_t rank = 0; rank < all.size(); ++rank) owned.push_back(shm::Memory::create(bytes));
    std::vector<comm::Region> regions;
    for (const int rank : all) {
      std::vector<shm::Memory> seen;
      for (const int other : all) seen.push_back(shm::Memory::open(owned[static_cast<std::size_t>(other)].address(), bytes));
      regions.push_back(arenas[static_cast<std::size_t>(rank)].add({number, all, rank, std::move(seen)}));
    }
    return regions;
  }

  shm::Segment segment;
  std::vector<shm::Bell> bells;
  std::vector<shm::Arenas> arenas;
  std::vector<Meeting> ranks;
};

}  // namespace

TEST_CASE("Meeting sums to equal bits on all ranks for any mix of memory and any order of begin and advance", "[comm][shm]") {
  const int size = GENERATE(2, 3, 5);
  const std::size_t count = GENERATE(as<std::size_t>{}, 0, 1, 2, 3, 1000, 1025, 16'384, 16'385, 200'003);
  const std::size_t bytes = count * sizeof(float);
  Table table{size};
  const std::vector<comm::Region> one = table.make_arena(71, bytes + 4096), two = table.make_arena(72, bytes + 4096);
  std::uint64_t dice = 7;
  for (std::uint64_t call = 1; call <= 12; ++call) {
    std::vector<std::vector<float>> own;
    std::vector<float*> values;
    std::vector<comm::GroupRequest> requests(table.ranks.size());
    std::vector<float> sums(count);
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) {
      // Values lie in the ranks' own memory, in one arena, or in any mixture of these, at equal or different offsets.
      dice = pdp::random::mix(dice);
      const std::uint64_t where = call % 4 == 1 ? 0 : call % 4 == 2 ? 1 : dice % 3;
      const std::size_t offset = call % 3 == 0 ? dice / 7 % 1024 : 16;
      values.push_back(where == 0 ? own.emplace_back(count).data()
                                  : reinterpret_cast<float*>((where == 1 ? one : two)[rank].data()) + offset);
      for (std::size_t i = 0; i < count; ++i) {
        values[rank][i] = static_cast<float>(i % 97 + call) / static_cast<float>(rank + 3);
        sums[i] = rank == 0 ? values[rank][i] : sums[i] + values[rank][i];
      }
      requests[rank].envelope = {.channel = comm::Envelope::world,
                                 .sequence = call,
                                 .count = count,
                                 .bytes = bytes,
                                 .verb = count == 0 ? comm::Verb::barrier : comm::Verb::all_reduce,
                                 .type = pdp::DType::float32,
                                 .reduction = comm::Reduction::sum};
      requests[rank].values = reinterpret_cast<std::byte*>(values[rank]);
      requests[rank].combine = comm::combine<float, comm::Sum>;
      requests[rank].element = sizeof(float);
      requests[rank].done = false;
    }
    const auto all_done = [&] { return std::ranges::all_of(requests, &comm::GroupRequest::done); };
    for (std::size_t begun = 0; !all_done();) {
      dice = pdp::random::mix(dice);
      if (begun < table.ranks.size() && dice % 3 == 0) {
        table.ranks[begun].begin(requests[begun]);
        ++begun;
      }
      Meeting& any = table.ranks[dice / 3 % table.ranks.size()];
      const bool ready = any.ready(), pending = any.request() != nullptr;
      CHECK((ready || !pending || any.missing() >= 0));
      CHECK(any.advance() == ready);  // must report progress for a ready call, or its rank would go to sleep
    }
    for (const float* each : values) CHECK(std::equal(sums.begin(), sums.end(), each));
  }
}

TEST_CASE("Shm reduces several groups at once in memory that the groups or the world allocated", "[comm][shm][split]") {
  check_on_ranks<comm::Shm>(5, [](comm::Shm& world, Findings& findings) {
    comm::Shm part = world.split(world.rank() % 2, 0), all = world.split(0, -world.rank());
    auto of_world = world.allocate<double>(30'000), of_part = part.allocate<double>(20'000);
    for (int round = 0; round < 3; ++round) {
      std::ranges::fill(of_world, 1);
      std::ranges::fill(of_part, 1);
      std::vector<double> own(9000, 1);
      auto one = part.all_reduce_async(of_part, comm::Sum{});
      auto two = all.all_reduce_async(of_world.span().first(20'000), comm::Sum{});
      auto three = world.all_reduce_async(own, comm::Sum{});
      if (world.rank() % 2 == 0) two.wait();
      one.wait();
      two.wait();
      three.wait();
      const double members = world.rank() % 2 == 0 ? 3 : 2;
      findings.expect(std::ranges::count(of_part, members) == 20'000, "the sum of a part");
      findings.expect(std::ranges::count(of_world, 5.0) == 20'000 && std::ranges::count(own, 5.0) == 9000, "sums of all");
      part.all_reduce(of_world.span().subspan(1, 8000), comm::Sum{});
      findings.expect(of_world[0] == 5 && of_world[1] == 5 * members && of_world[8000] == 5 * members && of_world[8001] == 5,
                      "the sum of a part in the world's memory");
      // The values of one sum over the world lie in the arenas of both parts, and on rank 4 in its own memory.
      std::ranges::fill(of_part, 2);
      std::vector<double> mixed(10'000, 2);
      world.all_reduce(world.rank() == 4 ? std::span{mixed} : of_part.span().first(10'000), comm::Sum{});
      findings.expect((world.rank() == 4 ? mixed[9999] : of_part[9999]) == 10, "a sum over memory of all kinds");
    }
  });
}

TEMPLATE_TEST_CASE("Registered::of gives access to the memory of other ranks on the same host", "[comm][allocate]", comm::Shm,
                   comm::Thread) {
  const int size = GENERATE(1, 2, 3, 5);
  check_on_ranks<TestType>(size, [size](TestType& world, Findings& findings) {
    behaviour::common_memory(world, findings, size > 1);
    TestType part = world.split(world.rank() % 2, -world.rank());
    behaviour::common_memory(part, findings, part.size() > 1);
    comm::Registered<float> empty = world.template allocate<float>(0);
    findings.expect(!empty.is_common() && empty.size() == 0, "an empty one");
  });
}

TEST_CASE("Tcp shares no memory between ranks", "[comm][tcp][allocate]") {
  check_on_ranks<comm::Tcp>(2, [](comm::Tcp& world, Findings& findings) { behaviour::common_memory(world, findings, false); });
}

TEST_CASE("Shm::allocate throws on every rank if the sizes differ, and the world remains usable", "[comm][shm][allocate]") {
  check_on_ranks<comm::Shm>(3, [](comm::Shm& world, Findings& findings) {
    for (const std::size_t other : {std::size_t{0}, std::size_t{4000}}) {
      std::string told;
      try {
        static_cast<void>(world.allocate<float>(world.rank() == 1 ? other : 10));
      } catch (const pdp::ConfigError& error) {
        told = error.what();
      }
      findings.expect(told == pdp::text("rank 0 of a group of 3 ranks requested 40 bytes of shared memory, but rank 1 requested ",
                                        4 * other, "; all ranks must request the same size"),
                      told);
    }
    auto memory = world.allocate<float>(10);
    std::ranges::fill(memory, 1.0F);
    world.all_reduce(memory, comm::Sum{});
    findings.expect(memory[9] == 3, "the sum of three");
  });
}

TEST_CASE("Meeting reports calls with different sequence numbers on both ranks", "[comm][shm][mismatch]") {
  Table table{2};
  Meeting &zero = table.ranks[0], &one = table.ranks[1];
  comm::GroupRequest requests[2];
  for (comm::GroupRequest& each : requests) {
    each.envelope = {.channel = comm::Envelope::world, .sequence = 1, .verb = comm::Verb::barrier};
    each.done = false;
  }
  requests[1].envelope.sequence = 2;
  zero.begin(requests[0]);
  one.begin(requests[1]);
  for (int looks = 0; looks < 2; ++looks) {
    zero.advance();
    one.advance();
  }
  REQUIRE(zero.fault());
  REQUIRE(one.fault());
  CHECK_FALSE((requests[0].done || requests[1].done));
  CHECK_THAT(one.fault()->message, Contains("barrier on rank 0 (call 1 of its group)") && Contains("barrier on rank 1 (call 2"));
}
