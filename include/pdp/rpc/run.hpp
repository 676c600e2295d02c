#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/any.hpp>
#include <pdp/comm/hierarchical.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/run.hpp>
#include <pdp/rpc/call/fault.hpp>
#include <pdp/rpc/node.hpp>

namespace pdp::rpc {

/// Makes this rank a node of a job with remote objects, inside a program with its own main. `names`: as for Node. On rank 0, calls
/// master(node) and ends the job when that returns. On other ranks, runs calls until then.
template <class Comm, std::invocable<Node&> F>
void serve(Comm& world, std::vector<std::string> names, F&& master, const NodeOptions& options = {}) {
  Node node{world, std::move(names), options};
  try {
    if (world.rank() == 0) {
      master(node);
      node.end();
    } else {
      node.serve();
    }
  } catch (...) {  // before the node ends its messages, which would hide the reason
    node.abort(Fault::current(text("rank ", world.rank(), " (", node.name(), ") has failed")).message);
    throw;
  }
}

/// Runs a job with remote objects and returns the exit code for main. The ranks are started as by launch::run: by a launcher such as srun,
/// mpirun or torchrun, or here by --ranks N or --threads N. There must be as many ranks as names. Calls master(node) on rank 0, the master.
/// The others are workers, which run calls until the master returns. The exit code and the reports of errors are those of launch::run.
template <class Comm = comm::Default, class... Others, std::invocable<Node&> F>
int run(int argc, char** argv, std::vector<std::string> names, F&& master, const NodeOptions& options = {}) {
  return launch::run<Comm, Others...>(argc, argv, [&](comm::Any& world) { serve(world, names, master, options); });
}

}  // namespace pdp::rpc
