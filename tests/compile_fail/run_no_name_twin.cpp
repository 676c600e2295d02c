#include <pdp/comm/self.hpp>
#include <pdp/launch/run.hpp>

/// A communicator of one rank that has a name.
class Alone : public pdp::comm::BasicCommunicator<pdp::comm::Self::Erased> {
 public:
  static constexpr std::string_view name{"alone"};
  Alone() : BasicCommunicator{pdp::comm::Self{}.release()} {}
};

int main(int argc, char** argv) {
  return pdp::launch::run<pdp::comm::Self, Alone>(argc, argv, [](auto&) {});
}
