#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <pdp/core/shape.hpp>
#include <pdp/launch/options.hpp>

namespace examples {

/// The options of every program that trains.
struct TrainingFlags {
  pdp::launch::Options launch;
  std::uint64_t seed = 0;
  pdp::Index batch_size = 128;  // of each rank, where ranks share the data; else of a step
  std::string data;             // where the samples are
  std::string losses;           // step,loss for each step
  std::string timeline;         // a step as it ran
  std::string device = "cpu";   // or cuda
  bool plan = false;            // prints what each rank holds and does, and trains nothing
  int stage = 1;                // of ZeRO
  int micro_batches = 4;        // of a pipeline
};

/// The options of the MNIST programs.
struct Flags : TrainingFlags {
  int epochs = 3;
  std::string save;                                       // the parameters are written here after each epoch
  std::string load;                                       // and read from here before the first
  std::string log;                                        // one JSON object an epoch
  bool pipelined = false;                                 // in pieces of at most 20 samples
  std::string schedule = "1f1b";                          // of a pipeline
  int data_axis = 0, pipeline_axis = 1, tensor_axis = 1;  // of a mesh; data_axis 0: as many as there are ranks for
};

/// Which flags an MNIST program takes beside those of all of them.
struct Takes {
  bool ranks = false;    // all that start ranks
  bool devices = false;  // of one process, over which a batch is scattered
  bool stage = false, pipelined = false, schedule = false, mesh = false;
};

/// Reads the command line of an MNIST program, then calls `check`, which throws if the flags do not fit together. Ends the program with 0
/// after --help, and with 2 after a flag that is wrong.
Flags parse(int argc, char** argv, const std::string& description, Takes takes, const std::function<void(Flags&)>& check = {});

}  // namespace examples
