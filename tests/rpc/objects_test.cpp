#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "rpc/job.hpp"

namespace objects_test {

namespace comm = pdp::comm;
namespace rpc = pdp::rpc;
using namespace std::chrono_literals;
using rpc_job::message_of;

namespace {

std::atomic<int> alive{0};  // counted over all ranks, which are threads

class Counter {
 public:
  Counter() { ++alive; }
  explicit Counter(int start) : count_{start} {
    if (start < 0) throw pdp::ConfigError{"a counter must not start below 0"};
    ++alive;
  }
  Counter(const Counter& other) : count_{other.count_}, history_{other.history_} { ++alive; }
  Counter& operator=(const Counter&) = default;
  ~Counter() { --alive; }

  int add(int by) {
    history_.push_back(by);
    return count_ += by;
  }
  int count() const { return count_; }
  std::vector<int> history() const { return history_; }
  Counter doubled() const { return Counter{2 * count_}; }
  Counter plus(int by) const {
    std::this_thread::sleep_for(20ms);
    return Counter{count_ + by};
  }
  void travel(auto&& visit) { visit(count_, history_); }

 private:
  int count_ = 0;
  std::vector<int> history_;
};

/// An object that refers to other objects and calls them.
class Friend {
 public:
  int count_of(rpc::Remote<Counter> other) const { return other.sync<&Counter::count>(); }
  void keep(rpc::Remote<Counter> other) { kept_.push_back(std::move(other)); }
  rpc::Remote<Counter> kept() const { return kept_.front(); }
  void meet(rpc::Remote<Friend> other) { other_ = std::move(other); }
  int ask(int depth) const { return depth == 0 ? 0 : 1 + other_.sync<&Friend::ask>(depth - 1); }
  void forget() { *this = {}; }
  int value_of(const Counter& counter) const { return counter.count(); }
  /// Returns 0 if the counter does not change while this call waits.
  int change_of(const Counter& counter) const {
    const int before = counter.count();
    static_cast<void>(other_.sync<&Friend::rest>());
    return counter.count() - before;
  }
  int rest() const {
    std::this_thread::sleep_for(50ms);
    return 0;
  }
  int is_same(const Friend& other) const { return &other == this ? 1 : 0; }
  rpc::Remote<Counter> make(int start) const { return kept_.front().remote<&Counter::plus>(start); }
  int pass(int x) const { return x; }
  /// Waits for a call that needs the result of a call of this object, which waits for the end of this one.
  int tie(rpc::Remote<Friend> self) const {
    auto mine = self.async<&Friend::pass>(1);
    return other_.sync<&Friend::pass>(mine);
  }
  /// Calls again after an error of a cycle.
  int recover(int depth) const {
    try {
      return depth == 0 ? other_.sync<&Friend::recover>(1) : other_.sync<&Friend::ask>(0);
    } catch (const pdp::Error&) {
      return kept_.front().sync<&Counter::count>();
    }
  }
  void travel(auto&& visit) { visit(kept_, other_); }

 private:
  std::vector<rpc::Remote<Counter>> kept_;
  rpc::Remote<Friend> other_;
};

}  // namespace

TEMPLATE_TEST_CASE("Remote objects keep their state and run calls in the order of arrival", "[rpc]", comm::Thread, comm::Shm, comm::Tcp) {
  std::vector<int> counts, history;
  rpc_job::run<TestType>(3, [&](rpc::Node& node) {
    auto counter = node.remote<Counter>("worker1", 10);
    auto other = node.remote<Friend>("worker2");
    for (int i = 1; i <= 100; ++i) counter.template one_way<&Counter::add>(i);
    counts.push_back(counter.template sync<&Counter::count>());
    counts.push_back(other.template sync<&Friend::count_of>(counter));
    counts.push_back(counter.to_here().count());
    history = counter.template sync<&Counter::history>();
    counts.push_back(counter.owner());
  });
  CHECK(counts == std::vector{5060, 5060, 5060, 1});
  REQUIRE(history.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(history[static_cast<std::size_t>(i)] == i + 1);
  CHECK(alive == 0);
}

TEST_CASE("A result can stay at its owner, be called there, and be an argument on any rank", "[rpc]") {
  std::vector<int> counts;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto counter = node.remote<Counter>("worker1", 4);
    auto doubled = counter.remote<&Counter::doubled>();
    doubled.one_way<&Counter::add>(1);
    for (const char* worker : {"master", "worker1", "worker2"})
      counts.push_back(node.remote<Friend>(worker).sync<&Friend::value_of>(doubled));
    counts.push_back(doubled.owner());
    counts.push_back(counter.sync<&Counter::count>());
  });
  CHECK(counts == std::vector{9, 9, 9, 1, 4});
  CHECK(alive == 0);
}

TEMPLATE_TEST_CASE("An object lives until its last reference on any rank ends", "[rpc]", comm::Thread, comm::Tcp) {
  std::vector<int> counts;
  rpc_job::run<TestType>(3, [&](rpc::Node& node) {
    auto other = node.remote<Friend>("worker2");
    {
      auto counter = node.remote<Counter>("worker1", 5);
      auto copy = counter;
      other.template sync<&Friend::keep>(copy);
    }
    counts.push_back(other.template sync<&Friend::kept>().template sync<&Counter::add>(1));
    counts.push_back(alive);
    other.template sync<&Friend::forget>();
    // worker2 has released its references in messages to worker1. They arrive sooner or later.
    for (int i = 0; i < 10'000 && alive > 0; ++i) {
      node.progress();
      std::this_thread::sleep_for(1ms);
    }
    counts.push_back(alive);
  });
  CHECK(counts == std::vector{6, 1, 0});
}

TEST_CASE("A reference can be passed on any number of times", "[rpc]") {
  int last = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto counter = node.remote<Counter>("worker1", 0);
    auto other = node.remote<Friend>("worker1");
    for (int i = 0; i < 200; ++i) {
      for (int pass = 0; pass < 50; ++pass) other.one_way<&Friend::keep>(counter);
      counter = other.sync<&Friend::kept>();  // with a part of the weight of a part
      other.sync<&Friend::forget>();
      other = node.remote<Friend>("worker1");
      other.sync<&Friend::keep>(counter);
    }
    last = counter.sync<&Counter::add>(1);
  });
  CHECK(last == 1);
  CHECK(alive == 0);
}

TEST_CASE("Results that are references give nothing away when they are measured", "[rpc]") {
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto holder = node.remote<Friend>("worker1");
    holder.sync<&Friend::keep>(node.remote<Counter>("worker1", 1));
    for (int i = 0; i < 10; ++i) static_cast<void>(holder.async<&Friend::kept>().get().sync<&Counter::count>());
  });
  CHECK(alive == 0);
}

TEST_CASE("A release that overtakes the construction of its object is not lost", "[rpc]") {
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto busy = node.remote<Friend>("worker1");
    auto maker = node.remote<Friend>("worker2");
    maker.sync<&Friend::keep>(node.remote<Counter>("worker1", 1));
    for (int i = 0; i < 5; ++i) {
      auto slow = busy.async<&Friend::rest>();
      static_cast<void>(maker.sync<&Friend::make>(i));  // the reference ends here, while worker1 is busy
    }
  });
  CHECK(alive == 0);
}

TEST_CASE("Tens of thousands of references of one rank to an object are counted", "[rpc]") {
  int count = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto counter = node.remote<Counter>("worker1", 1);
    auto holder = node.remote<Friend>("worker1");
    for (int i = 0; i < 20'000; ++i) holder.one_way<&Friend::keep>(counter);
    holder.sync<&Friend::forget>();
    count = counter.sync<&Counter::add>(1);
  });
  CHECK(count == 2);
  CHECK(alive == 0);
}

TEST_CASE("An object that is an argument on its own rank does not change during the call", "[rpc]") {
  std::vector<int> results;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto counter = node.remote<Counter>("worker1", 1);
    auto user = node.remote<Friend>("worker1"), other = node.remote<Friend>("worker2");
    user.sync<&Friend::meet>(other);
    auto change = user.async<&Friend::change_of>(counter);
    counter.one_way<&Counter::add>(5);
    results = {change.get(), counter.sync<&Counter::count>(), user.sync<&Friend::is_same>(user)};
  });
  CHECK(results == std::vector{0, 6, 1});
}

TEST_CASE("local() is the object itself on its owner, and an error on other ranks", "[rpc]") {
  std::string elsewhere, broken;
  int count = 0;
  rpc_job::run<comm::Thread>(2, [&](rpc::Node& node) {
    auto here = node.remote<Counter>("master", 1);
    here.local().add(2);
    count = here.sync<&Counter::count>();
    auto there = node.remote<Counter>("worker1", 1);
    elsewhere = message_of<pdp::ConfigError>([&] { there.local().add(1); });
    auto bad = node.remote<Counter>("master", -1);
    broken = message_of<pdp::ConfigError>([&] { bad.local().add(1); });
  });
  CHECK(count == 3);
  CHECK_THAT(elsewhere, Contains("local() on rank 0 (master): the object lives on rank 1 (worker1)"));
  CHECK_THAT(broken, EndsWith("Counter on rank 0 (master): a counter must not start below 0"));
}

TEST_CASE("An error of a constructor reaches each call of the object, or the end of the job if there is none", "[rpc]") {
  std::vector<std::string> messages;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto bad = node.remote<Counter>("worker1", -1);
    auto other = node.remote<Friend>("worker2");
    messages = {message_of<pdp::ConfigError>([&] { static_cast<void>(bad.sync<&Counter::count>()); }),
                message_of<pdp::ConfigError>([&] { static_cast<void>(bad.to_here()); }),
                message_of<pdp::ConfigError>([&] { static_cast<void>(other.sync<&Friend::count_of>(bad)); }),
                message_of<pdp::ConfigError>([&] { static_cast<void>(other.sync<&Friend::value_of>(bad)); })};
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, EndsWith("Counter on rank 1 (worker1): a counter must not start below 0"));
  CHECK_THAT(message_of<pdp::ConfigError>(
                 [] { rpc_job::run<comm::Thread>(2, [](rpc::Node& node) { static_cast<void>(node.remote<Counter>("worker1", -1)); }); }),
             EndsWith("a counter must not start below 0"));
}

TEST_CASE("An empty Remote throws EmptyReference in every call", "[rpc]") {
  const rpc::Remote<Counter> none;
  CHECK_FALSE(none);
  CHECK_THAT(message_of<rpc::EmptyReference>([&] { static_cast<void>(none.sync<&Counter::count>()); }), Contains("refers to no object"));
  CHECK_THROWS_AS(none.one_way<&Counter::add>(1), rpc::EmptyReference);
  CHECK_THROWS_AS(none.to_here(), rpc::EmptyReference);
  CHECK_THROWS_AS(none.owner(), rpc::EmptyReference);
}

TEMPLATE_TEST_CASE("A method may call back objects of its caller, which waits", "[rpc]", comm::Thread, comm::Shm, comm::Tcp) {
  int count = 0;
  rpc_job::run<TestType>(2, [&](rpc::Node& node) {
    auto mine = node.remote<Counter>("master", 7);
    count = node.remote<Friend>("worker1").template sync<&Friend::count_of>(mine);
  });
  CHECK(count == 7);
}

TEMPLATE_TEST_CASE("Objects that wait for each other get an error that names the calls and ranks", "[rpc]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const std::pair<const char*, const char*> owners =
      GENERATE(std::pair{"worker1", "worker2"}, std::pair{"worker1", "worker1"}, std::pair{"master", "worker1"});
  std::string message;
  int after = 0;
  rpc_job::run<TestType>(3, [&](rpc::Node& node) {
    auto first = node.remote<Friend>(owners.first), second = node.remote<Friend>(owners.second);
    first.template sync<&Friend::meet>(second);
    second.template sync<&Friend::meet>(first);
    message = message_of<pdp::Error>([&] { static_cast<void>(first.template sync<&Friend::ask>(2)); });
    after = first.template sync<&Friend::ask>(1);  // the objects are usable
    first.template sync<&Friend::forget>();
    second.template sync<&Friend::forget>();
  });
  CHECK_THAT(message, Contains("remote calls wait for each other: ") && Contains("Friend::ask") && Contains(owners.first));
  CHECK(after == 1);
}

TEST_CASE("Calls that wait for each other through an argument get an error", "[rpc]") {
  std::string message;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto first = node.remote<Friend>("worker1"), second = node.remote<Friend>("worker2");
    first.sync<&Friend::meet>(second);
    message = message_of<pdp::Error>([&] { static_cast<void>(first.sync<&Friend::tie>(first)); });
  });
  CHECK_THAT(message, Contains("remote calls wait for each other: "));
}

TEST_CASE("A method that catches the error of a circle can make further calls", "[rpc]") {
  int count = 0;
  rpc_job::run<comm::Thread>(3, [&](rpc::Node& node) {
    auto first = node.remote<Friend>("worker1"), second = node.remote<Friend>("worker2");
    first.sync<&Friend::meet>(second);
    second.sync<&Friend::meet>(first);
    for (const auto& each : {first, second}) each.sync<&Friend::keep>(node.remote<Counter>("worker1", 9));
    count = first.sync<&Friend::recover>(0);
    first.sync<&Friend::forget>();
    second.sync<&Friend::forget>();
  });
  CHECK(count == 9);
}

}  // namespace objects_test
