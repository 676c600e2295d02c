#include <pdp/comm/self.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/comm/thread.hpp>

#include "comm/conformance.hpp"

namespace comm = pdp::comm;

TEMPLATE_TEST_CASE("every verb gives what a serial program gives, in every type and by every operation", "[comm]", comm::Thread, comm::Shm,
                   comm::Tcp) {
  const int size = GENERATE(1, 2, 3, 4, 7, 8);
  check_on_ranks<TestType>(size, [](TestType& world, Findings& findings) { conformance::every_call(world, findings); });
}

TEST_CASE("a rank alone makes every call with itself", "[comm]") {
  check_on_ranks<comm::Self>(1, [](comm::Self& world, Findings& findings) {
    conformance::every_call(world, findings);
    comm::Self part = world.split(3, 1);
    findings.expect(part.rank() == 0 && part.size() == 1, "a group of its own");
  });
}
