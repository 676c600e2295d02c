// error: pdp: a remote call passes copies
#include <pdp/rpc/node.hpp>

struct Shift {
  void by_one(std::vector<int>& x) const { ++x.front(); }
};

inline void call(const pdp::rpc::Remote<Shift>& shift, std::vector<int>& x) { shift.sync<&Shift::by_one>(x); }
