// error: pdp: if a program has several communicators, each needs a name for --comm
#include <pdp/comm/self.hpp>
#include <pdp/launch/run.hpp>

/// A communicator of one rank that has no name.
class Alone : public pdp::comm::BasicCommunicator<pdp::comm::Self::Erased> {
 public:
  Alone() : BasicCommunicator{pdp::comm::Self{}.release()} {}
};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Self, Alone>(argc, argv, [](auto&) {});
}
