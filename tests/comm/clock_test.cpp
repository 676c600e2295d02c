#include <pdp/comm/clock.hpp>
#include <pdp/comm/wait_until.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace std::chrono_literals;
using pdp::comm::Clock;
using pdp::comm::RunningTime;
using pdp::comm::TimePoint;

TEST_CASE("RunningTime equals steady time if it is read often", "[comm][clock]") {
  RunningTime time;
  for (auto steady = 5'000'000ns; steady < 20s; steady += 249ms) CHECK(time.at(steady) == steady);
}

TEST_CASE("RunningTime counts a gap between readings as at most one second", "[comm][clock]") {
  RunningTime time;
  CHECK(time.at(100s) == 100s);
  CHECK(time.at(101s) == 101s);
  CHECK(time.at(500s) == 102s);  // stopped for 399 s
  CHECK(time.at(500'250ms) == 102'250ms);
  CHECK(time.at(600s) == 103'250ms);
  CHECK(time.at(601s) == 104'250ms);
}

TEST_CASE("RunningTime does not go back if a thread uses an old reading", "[comm][clock]") {
  RunningTime time;
  static_cast<void>(time.at(10s));
  const auto now = time.at(100s);
  CHECK(now == 11s);
  CHECK(time.at(50s) >= 10s);
  CHECK(time.at(100s) == now);
}

TEST_CASE("RunningTime skips a gap once if several threads notice it", "[comm][clock]") {
  RunningTime time;
  std::atomic<std::int64_t> steady{1};  // ms
  std::atomic<bool> went_back{false};
  constexpr std::int64_t stops = 50, between = 400, stop = 60'000;
  const auto read = [&] { return time.at(std::chrono::milliseconds{steady}); };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&](const std::stop_token& token) {
        for (auto before = read(); !token.stop_requested();) {
          const auto now = read();
          if (now < before - 10ms) went_back = true;  // the time is accurate to 10 ms
          before = now;
        }
      });
    for (int i = 0; i < stops; ++i) {
      for (int part = 0; part < 10; ++part) {
        steady += between / 10;
        static_cast<void>(read());
        std::this_thread::yield();
      }
      steady += stop;
      static_cast<void>(read());
    }
    for (auto& each : threads) each.request_stop();
  }
  CHECK_FALSE(went_back);
  // Each stop counts as one second, or as less if a thread took a reading before the stop and used it after.
  CHECK(read() <= std::chrono::milliseconds{stops * (between + 1000) + 1});
  CHECK(read() >= std::chrono::milliseconds{stops * between});
}

TEST_CASE("Clock advances, and time_left is at most one slice", "[comm][clock]") {
  const TimePoint before = Clock::now();
  std::this_thread::sleep_for(20ms);
  CHECK(Clock::now() - before >= 20ms);
  const auto in_ns = [](timespec time) { return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}; };
  CHECK(in_ns(pdp::comm::time_left(Clock::now() + 1h)) == Clock::slice);
  CHECK(in_ns(pdp::comm::time_left(TimePoint::max())) == Clock::slice);
  CHECK(in_ns(pdp::comm::time_left(Clock::now() + 100ms)) <= 100ms);
  CHECK(in_ns(pdp::comm::time_left(TimePoint{})) == 0ns);
}

TEST_CASE("later gives the last point in time for a deadline that the clock cannot express", "[comm][clock]") {
  using pdp::comm::later;
  CHECK(later(TimePoint{5s}, 3s) == TimePoint{8s});
  CHECK(later(TimePoint{5s}, pdp::comm::Duration::max()) == TimePoint::max());
  CHECK(later(TimePoint{5s}, pdp::comm::Duration::max() - 5s) == TimePoint::max());
  CHECK(later(TimePoint::max(), 1ns) == TimePoint::max());
  CHECK(later(TimePoint{-5s}, 3s) == TimePoint{-2s});
}

TEST_CASE("wait_until returns at its deadline or as soon as the predicate is true", "[comm][clock]") {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  std::unique_lock lock{mutex};
  const TimePoint until = Clock::now() + 300ms;
  CHECK_FALSE(pdp::comm::wait_until(changed, lock, until, [&] { return ready; }));
  CHECK(Clock::now() >= until);
  const std::jthread setter{[&] {
    const std::lock_guard other{mutex};
    ready = true;
    changed.notify_all();
  }};
  CHECK(pdp::comm::wait_until(changed, lock, Clock::now() + 1h, [&] { return ready; }));
}
