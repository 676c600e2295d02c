#pragma once

#include <cstdint>
#include <string>

#include <pdp/core/shape.hpp>
#include <pdp/launch/options.hpp>

namespace examples {

/// The options of every example that trains.
struct TrainingFlags {
  pdp::launch::Options launch;
  std::uint64_t seed = 0;
  std::string losses;          // step,loss for each step
  std::string timeline;        // a step as it ran
  std::string device = "cpu";  // or cuda
  bool plan = false;           // prints what each rank holds and does, and trains nothing
  int stage = 1;               // of ZeRO
  int micro_batches = 4;       // of a pipeline
};

/// The options of the MNIST examples.
struct Flags : TrainingFlags {
  int epochs = 3;
  std::int64_t batch_size = 128;                          // of a rank; the whole batch if it is scattered over devices
  std::string data;                                       // folder of the digits
  std::string save;                                       // the parameters are written here after each epoch
  std::string load;                                       // and read from here before the first
  std::string log;                                        // one JSON object an epoch
  bool pipelined = false;                                 // in pieces of at most 20 samples
  std::string schedule = "1f1b";                          // of a pipeline
  int data_axis = 0, pipeline_axis = 1, tensor_axis = 1;  // of a mesh; data_axis 0: as many as there are ranks for
};

/// Which flags an MNIST example takes beside those of all of them.
struct Takes {
  bool ranks = false;    // all that start ranks
  bool devices = false;  // of one process, over which a batch is scattered
  bool stage = false, pipelined = false, schedule = false, mesh = false;
};

/// The options of toy_mlp.
struct ToyFlags : TrainingFlags {
  std::string strategy = "ddp";
  pdp::Index layers = 4;
  pdp::Index dim_in = 1024;
  pdp::Index dim_hidden = 256;
  pdp::Index classes = 32;
  bool says_classes = false;  // whether --n-classes was given
  pdp::Index train_size = 10'000;
  pdp::Index batch_size = 64;
  float learning_rate = 0.1f;
  std::int64_t steps = 1000;
  std::string data;    // train and test sets are read from here
  std::string init;    // and parameters, before the first step
  bool check = false;  // after each step, whether ranks hold the same parameters
};

/// The options of a program that multiplies matrices: C[m, n] = A[m, k] B[k, n].
struct ProductFlags {
  pdp::launch::Options launch;
  pdp::Index m = 1024;
  pdp::Index n = 1024;
  pdp::Index k = 1024;
};

/// Each reads a command line. Ends the program with 0 after --help, and with 2 after a flag that is wrong.
Flags parse(int argc, char** argv, const std::string& description, Takes takes);
ToyFlags parse_toy(int argc, char** argv);
/// For programs that show how ranks communicate: two ranks unless the command line or the environment says otherwise.
pdp::launch::Options parse_ranks(int argc, char** argv, const std::string& description);
ProductFlags parse_product(int argc, char** argv, const std::string& description);

}  // namespace examples
