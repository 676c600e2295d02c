#include <pdp/comm/shm/connect.hpp>
#include <pdp/core/random.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>

#include "catch.hpp"
#include "comm/stream_ranks.hpp"

using namespace stream_test;
namespace comm = pdp::comm;
namespace shm = pdp::comm::shm;
using Address = shm::Address;

namespace {

/// The address that rank 0 of a world of `size`, made by this process, gives to the others; the world stays incomplete until `rest`.
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
  std::jthread zero;  // last, as it uses the others
};

/// A process that is killed when this goes.
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

/// Rank 0 here and rank 1 in a process of its own, which does `function`.
struct TwoProcesses {
  explicit TwoProcesses(const std::function<void(ShmTransport&)>& function)
      : nonce{shm::draw_nonce()}, segment{std::make_shared<shm::Segment>(shm::Segment::create(2, nonce))}, one{[&] {
          ShmTransport transport = enter(1);
          function(transport);
        }} {}

  /// The process is a copy of this one, so it has the memory without a store.
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

TEST_CASE("shm: the address of the ranks' memory survives being written and read", "[comm][shm]") {
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

TEST_CASE("shm: a rank that never comes is named when the time is over", "[comm][shm]") {
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
  // The first of the two to give up leaves, which the other one may see before its own time is over.
  CHECK((is<pdp::Timeout>(thrown[0]) || is<pdp::Timeout>(thrown[1])));
  for (const auto& each : thrown)
    if (is<pdp::Timeout>(each))
      CHECK_THAT(words(each), Contains("rank 1") && Contains("rank 3") && Contains("of 4 ranks") && !Contains("rank 2,"));
    else
      CHECK((lost_rank(each) == 0 || lost_rank(each) == 2));
}

TEST_CASE("shm: without rank 0, the others say so", "[comm][shm]") {
  pdp::launch::InProcessStore store;
  CHECK_THROWS_WITH(ShmTransport::connect(store, 1, 2, Clock::now() + std::chrono::milliseconds{50}),
                    Contains("rank 1 has heard nothing of rank 0 (of 2 ranks)"));
}

TEST_CASE("shm: memory that is not the job's is refused", "[comm][shm]") {
  Incomplete job{2, std::chrono::milliseconds{500}};
  const Address address = Address::parse(job.store.wait("shm/segment", patience()));
  pdp::launch::InProcessStore other;
  Address wrong = address;
  SECTION("of another job") {
    wrong.nonce[3] ^= 1;
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 2, patience()), Contains("is not theirs"));
  }
  SECTION("a file of another kind") {
    const comm::Descriptor file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    wrong.file = file.get();
    other.set("shm/segment", wrong.to_string());
    CHECK_THROWS_WITH(ShmTransport::connect(other, 1, 2, patience()), Contains("is not theirs"));
  }
  SECTION("a process that is not there") {
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

TEST_CASE("shm: two processes that were started as one rank are told so", "[comm][shm]") {
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

TEST_CASE("shm: a process that is killed is lost for a rank that waits for it", "[comm][shm][faults]") {
  TwoProcesses job{sleep_for_ever};
  ShmTransport zero = job.enter(0);
  SECTION("and is busy looking") {
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
  SECTION("and sleeps") {
    std::exception_ptr thrown;
    {
      const std::jthread waiter{[&] { thrown = failure_of(zero); }};
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
      job.one.kill();
    }
    CHECK(lost_rank(thrown) == 1);
    CHECK_THAT(words(thrown), Contains("rank 1 is gone"));
  }
  SECTION("and has more to say than there is room for") {
    const std::vector<std::byte> values(8 << 20);
    SendRequest request;
    fill(request, 1, values);
    zero.post(request);
    job.one.kill();
    CHECK(lost_rank(failure_of(zero)) == 1);
    CHECK_FALSE(request.done);
  }
}

TEST_CASE("shm: what a process has sent before it is killed arrives", "[comm][shm][faults]") {
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

TEST_CASE("shm: a rank that is killed while the job starts is lost for those who wait for the others", "[comm][shm][faults]") {
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

TEST_CASE("shm: ranks that are threads on one mapping exchange messages around the ends of their rings", "[comm][shm]") {
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
            const std::size_t bytes = static_cast<std::size_t>(round * 12'347 % 400'000);
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

TEST_CASE("shm: counters that make no sense end the world and touch nothing beyond the ring", "[comm][shm]") {
  const auto segment = std::make_shared<shm::Segment>(shm::Segment::create(2, shm::draw_nonce()));
  segment->map_rings_of(0);
  ShmTransport zero{0, shm::Rings{segment, 0, shm::Processes{2}}};
  segment->counters(1, 0).written.store(std::uint64_t{1} << 60);
  const auto thrown = failure_of(zero);
  CHECK(lost_rank(thrown) == 1);
  CHECK_THAT(words(thrown), Contains("rank 0 cannot make sense of what rank 1 sent"));
}

TEST_CASE("shm: a collective of all ranks is moved to the same bits everywhere, whoever is asked to move it and when", "[comm][shm]") {
  const int size = GENERATE(2, 3, 5);
  const std::size_t count = GENERATE(as<std::size_t>{}, 0, 1, 2, 3, 1000, 1025, 16'384, 16'385, 200'003);
  const auto segment = std::make_shared<shm::Segment>(shm::Segment::create(size, shm::draw_nonce()));
  std::vector<shm::Together> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(*segment, rank);
  std::uint64_t dice = 7;
  for (std::uint64_t call = 1; call <= 3; ++call) {
    std::vector<std::vector<float>> values;
    std::vector<comm::GroupRequest> requests(ranks.size());
    std::vector<float> sums(count);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<float>& own = values.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) {
        own[i] = static_cast<float>(i % 97 + call) / static_cast<float>(rank + 3);
        sums[i] = rank == 0 ? own[i] : sums[i] + own[i];
      }
      requests[rank].envelope = {.channel = comm::Envelope::world,
                                 .sequence = call,
                                 .count = count,
                                 .bytes = count * sizeof(float),
                                 .verb = count == 0 ? comm::Verb::barrier : comm::Verb::all_reduce,
                                 .type = pdp::DType::float32,
                                 .reduction = comm::Reduction::sum};
      requests[rank].values = reinterpret_cast<std::byte*>(own.data());
      requests[rank].combine = comm::combine<float, comm::Sum>;
      requests[rank].element = sizeof(float);
      requests[rank].done = false;
    }
    const auto all_done = [&] { return std::ranges::all_of(requests, &comm::GroupRequest::done); };
    for (std::size_t begun = 0; !all_done();) {
      dice = pdp::random::mix(dice);
      if (begun < ranks.size() && dice % 3 == 0) {
        ranks[begun].begin(requests[begun]);
        ++begun;
      }
      shm::Together& any = ranks[dice / 3 % ranks.size()];
      const bool ready = any.ready(), pending = any.request() != nullptr;
      CHECK((ready || !pending || any.missing() >= 0));
      CHECK(any.advance() == ready);  // a call that is complete has moved, or its rank would go to sleep for it
    }
    for (const std::vector<float>& each : values) CHECK(each == sums);
  }
}

TEST_CASE("shm: ranks that have made different calls find out in a collective without messages", "[comm][shm][mismatch]") {
  const auto segment = std::make_shared<shm::Segment>(shm::Segment::create(2, shm::draw_nonce()));
  shm::Together zero{*segment, 0}, one{*segment, 1};
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
