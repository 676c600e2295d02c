#pragma once

#include <cstdint>
#include <string>

#include <pdp/launch/options.hpp>

namespace examples {

/// What the MNIST examples are told on the command line.
struct Flags {
  pdp::launch::Options launch;
  int epochs = 3;
  std::int64_t batch_size = 128;  // of a rank; the whole batch where it is scattered over devices
  std::uint64_t seed = 0;
  std::string data;            // folder of the digits
  std::string save;            // parameters are written here after each epoch
  std::string load;            // and read from here before the first
  std::string log;             // one JSON object an epoch
  std::string losses;          // step,loss for each step
  std::string timeline;        // a step as it ran
  std::string device = "cpu";  // or cuda
  bool plan = false;           // what each rank holds and does is printed, and nothing trained

  int stage = 1;                                          // of ZeRO
  bool pipelined = false;                                 // in pieces of at most 20 samples
  std::string schedule = "1f1b";                          // of a pipeline
  int micro_batches = 4;                                  // of a pipeline
  int data_axis = 0, pipeline_axis = 1, tensor_axis = 1;  // of a mesh; data_axis 0: as many as there are ranks for
};

/// Which flags a program takes beside those of all programs.
struct Takes {
  bool ranks = false;    // all that start ranks
  bool devices = false;  // of one process, over which a batch is scattered
  bool stage = false, pipelined = false, schedule = false, mesh = false;
};

/// Reads the command line. Ends the program with 0 after --help, and with 2 after a flag that is wrong.
Flags parse(int argc, char** argv, const std::string& description, Takes takes);

}  // namespace examples
