// A program for the tests of Gloo between processes. The first argument is its mode: sum, small or large.
#include <cstdio>
#include <string>
#include <vector>

#include <pdp/comm/gloo.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/launch/run.hpp>

#include "../thread_sanitizer.hpp"

namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  namespace comm = pdp::comm;
  const std::string mode = argc > 1 ? argv[1] : "sum";
  return pdp::launch::run<comm::Shm, comm::Tcp, comm::Gloo>(argc, argv, [&](comm::Any& world) {
    std::vector<double> values(mode == "large" ? 4 << 20 : 1000, world.rank() + 1.0);
    world.all_reduce(values, comm::Sum{});
    if (mode == "sum") {
      if (world.rank() == 0) say(pdp::text(world.name(), " on ", world.size(), " ranks, sum ", static_cast<int>(values.back())));
      return 0;
    }
    if (world.rank() == 0) say("ready");
    while (true) world.all_reduce(values, comm::Average{});
  });
}
