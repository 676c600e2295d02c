#include <pdp/comm/join/roll_call.hpp>
#include <pdp/launch/store/in_process_store.hpp>

#include <array>
#include <chrono>
#include <numeric>
#include <thread>

#include "catch.hpp"

namespace comm = pdp::comm;
using namespace std::chrono_literals;

namespace {

/// Runs a roll call in a world of 4 in which only the ranks `there` take part. Returns each rank's result, or its error text.
std::array<std::string, 4> call(const std::vector<int>& there, std::array<comm::Duration, 4> patience) {
  pdp::launch::InProcessStore store;
  std::array<std::string, 4> heard;
  std::vector<std::jthread> threads;
  for (const int rank : there)
    threads.emplace_back([&, rank] {
      const auto r = static_cast<std::size_t>(rank);
      const comm::StoreView view{store};
      const comm::RollCall roll_call{view, "word/", "words", rank, 4, comm::Clock::now() + patience[r]};
      try {
        roll_call.say(pdp::text("w", rank));
        heard[r] = roll_call.hear(
            [](const std::vector<std::string>& words) { return std::accumulate(words.begin(), words.end(), std::string{}); });
      } catch (const pdp::Timeout& late) {
        heard[r] = late.what();
      }
    });
  threads.clear();
  return heard;
}

}  // namespace

TEST_CASE("RollCall gives every rank the result that rank 0 computes from all words", "[comm][roll_call]") {
  for (const std::string& each : call({0, 1, 2, 3}, {20s, 20s, 20s, 20s})) CHECK(each == "w0w1w2w3");
}

TEST_CASE("RollCall names the missing ranks on every other rank, whichever times out first", "[comm][roll_call]") {
  const auto first = GENERATE(0u, 2u);
  std::array<comm::Duration, 4> patience{20s, 20s, 20s, 20s};
  patience[first] = 200ms;
  if (first == 2) patience[0] = 400ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto heard = call({0, 2}, patience);
  for (const std::size_t rank : {0u, 2u})
    CHECK_THAT(heard[rank], StartsWith(pdp::text("rank ", rank, " has not heard from rank 1, rank 3 (of 4 ranks)")));
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("RollCall names rank 0 if it is missing", "[comm][roll_call]") {
  const auto heard = call({1, 2, 3}, {200ms, 200ms, 200ms, 200ms});
  for (const std::size_t rank : {1u, 2u, 3u}) CHECK_THAT(heard[rank], Contains("has not heard from rank 0 (of 4 ranks)"));
}
