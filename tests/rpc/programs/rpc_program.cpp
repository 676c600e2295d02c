// A program for the tests of rpc::run, with a master and two workers. Its first argument is a mode; see main.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <pdp/comm/hierarchical.hpp>
#include <pdp/comm/shm.hpp>
#include <pdp/comm/tcp.hpp>
#include <pdp/rpc/run.hpp>

namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int process() { return static_cast<int>(::getpid()); }

/// A step of a ring of three objects.
class Link {
 public:
  void connect(pdp::rpc::Remote<Link> next) { next_ = std::move(next); }
  int pass(int hops) {
    ++passed_;
    return hops == 0 ? passed_ : next_.sync<&Link::count>() + passed_;
  }
  int count() const { return passed_; }
  void sleep() const {
    while (true) std::this_thread::sleep_for(std::chrono::seconds{1});
  }
  void disconnect() { next_ = {}; }

 private:
  pdp::rpc::Remote<Link> next_;
  int passed_ = 0;
};

void master(pdp::rpc::Node& node, std::string_view mode) {
  auto first = node.remote<Link>("worker1"), second = node.remote<Link>("worker2");
  first.sync<&Link::connect>(second);
  if (mode == "sum") {
    for (int i = 0; i < 10; ++i) second.one_way<&Link::pass>(0);
    second.sync<&Link::count>();  // the calls of worker1 may overtake those of the master
    const int sum = first.sync<&Link::pass>(1);
    first.sync<&Link::disconnect>();
    say(pdp::text("sum ", sum));
    return;
  }
  if (mode == "fail") throw std::runtime_error{"the master has had enough"};
  say(pdp::text("workers ", node.sync<&process>("worker1"), " ", node.sync<&process>("worker2")));
  if (mode == "wait") second.sync<&Link::sleep>();
  while (true) first.sync<&Link::pass>(1);  // until a worker is killed
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "sum";
  return pdp::rpc::run<pdp::comm::Default, pdp::comm::Shm, pdp::comm::Tcp>(argc, argv, {"master", "worker1", "worker2"},
                                                                           [mode](pdp::rpc::Node& node) { master(node, mode); });
}
