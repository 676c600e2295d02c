// Every kind of strategy on few ranks, for tests that compare each with serial training.
#pragma once

#include <pdp/strategy/any_strategy.hpp>
#include <pdp/strategy/data_parallel.hpp>
#include <pdp/strategy/hybrid.hpp>
#include <pdp/strategy/pipeline.hpp>
#include <pdp/strategy/tensor_parallel.hpp>
#include <pdp/strategy/zero.hpp>

#include <string>
#include <vector>

namespace ways_test {

struct Way {
  std::string name;
  int ranks;
  pdp::strategy::AnyStrategy strategy;
};

inline std::vector<Way> ways() {
  namespace strategy = pdp::strategy;
  using Schedule = strategy::OneForwardOneBackward;
  std::vector<Way> all;
  for (const int ranks : {2, 3}) {
    all.push_back({"data", ranks, strategy::DataParallel{}});
    for (const int stage : {1, 2, 3}) all.push_back({"zero " + std::to_string(stage), ranks, strategy::Zero{.stage = stage}});
    all.push_back({"pipeline", ranks, strategy::Pipeline<Schedule>{.micro_batches = 3}});
  }
  all.push_back({"tensor", 2, strategy::TensorParallel{}});
  all.push_back({"hybrid", 8, strategy::Hybrid<Schedule>{.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2}});
  return all;
}

}  // namespace ways_test
