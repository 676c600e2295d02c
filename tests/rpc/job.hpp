#pragma once

#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/run.hpp>
#include <pdp/testing/ranks.hpp>

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Shared by the tests of remote objects.
namespace rpc_job {

/// Runs master(node) on rank 0 of `size` ranks, which are threads. The others serve as worker1, worker2, ...
template <class C>
void run(int size, const std::function<void(pdp::rpc::Node&)>& master, pdp::comm::Duration deadline = pdp::testing::default_deadline) {
  std::vector<std::string> names{"master"};
  while (static_cast<int>(names.size()) < size) names.push_back("worker" + std::to_string(names.size()));
  pdp::testing::ranks<C>(
      size, [&](C& world) { pdp::rpc::serve(world, names, master); }, deadline);
}

/// Returns the message of the exception of type E that f throws, or a text that says that it has not thrown one.
template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    const bool expected = dynamic_cast<const E*>(&error) != nullptr;
    return expected ? error.what() : std::string{"another type was thrown: "} + error.what();
  }
  return "nothing was thrown";
}

}  // namespace rpc_job
