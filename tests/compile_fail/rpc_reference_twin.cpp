#include <pdp/rpc/node.hpp>

struct Shift {
  std::vector<int> by_one(std::vector<int> x) const {
    ++x.front();
    return x;
  }
};

inline void call(const pdp::rpc::Remote<Shift>& shift, std::vector<int>& x) { x = shift.sync<&Shift::by_one>(x); }
