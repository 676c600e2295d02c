#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pdp/core/shape.hpp>
#include <pdp/launch/options.hpp>

namespace examples {

/// What toy_mlp is told on the command line.
struct ToyFlags {
  pdp::launch::Options launch;
  std::string strategy = "ddp";
  int stage = 1;          // of ZeRO
  int micro_batches = 4;  // of a pipeline

  pdp::Index layers = 4;
  pdp::Index dim_in = 1024;
  pdp::Index dim_hidden = 256;
  pdp::Index classes = 32;
  bool says_classes = false;  // whether --n-classes was given
  pdp::Index train_size = 10'000;
  pdp::Index batch_size = 64;
  float learning_rate = 0.1f;
  std::int64_t steps = 1000;
  std::uint64_t seed = 0;
  std::string device = "cpu";  // or cuda

  std::string data;      // train and test sets are read from here
  std::string init;      // and parameters, before the first step
  std::string losses;    // step,loss for each step
  std::string timeline;  // a step as it ran
  bool plan = false;     // what each rank holds and does is printed, and nothing trained
  bool check = false;    // after each step, whether ranks hold the same parameters
};

/// Reads the command line. Ends the program as examples::parse does.
ToyFlags parse_toy(int argc, char** argv);

}  // namespace examples
