#pragma once

#include <chrono>
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
  pdp::Index batch_size = 128;        // per rank if the ranks share the data, else per step
  std::string data;                   // path of the samples
  std::string losses;                 // output file: step,loss of each step
  std::string timeline;               // output file: the timeline of one step
  std::string report;                 // output file: a page about the training
  std::string checkpoint;             // folder of checkpoints
  pdp::Index checkpoint_every = 0;    // steps between checkpoints
  std::chrono::seconds stop_after{};  // 0: never
  std::string device = "cpu";         // or cuda
  bool plan = false;                  // print what each rank holds and does; do not train
  bool compare = false;               // with `plan`: print a table of several strategies instead
  int stage = 1;                      // of ZeRO
  int micro_batches = 4;              // of a pipeline
};

/// The options of the MNIST programs.
struct Flags : TrainingFlags {
  int epochs = 3;
  std::string save;                                       // output file: the parameters after each epoch
  std::string load;                                       // input file: the parameters before the first epoch
  std::string log;                                        // output file: one JSON object per epoch
  bool pipelined = false;                                 // cut batches into micro-batches of at most 20 samples
  std::string schedule = "1f1b";                          // of a pipeline
  int data_axis = 0, pipeline_axis = 1, tensor_axis = 1;  // of a mesh; data_axis 0: as large as the number of ranks allows
};

/// The flags that an MNIST program takes besides those that all of them take.
struct Takes {
  bool ranks = false;    // all flags that start ranks
  bool devices = false;  // devices of one process, over which a batch is scattered
  bool stage = false, pipelined = false, schedule = false, mesh = false;
  int epochs = 3;               // default of --epochs
  pdp::Index batch_size = 128;  // default of --batch-size
};

/// Parses the command line of an MNIST program, then calls `check`, which throws if the flags do not fit together. Exits with 0 after
/// --help, and with 2 after an invalid flag.
Flags parse(int argc, char** argv, const std::string& description, Takes takes, const std::function<void(Flags&)>& check = {});

}  // namespace examples
