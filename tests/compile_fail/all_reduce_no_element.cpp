// error(g++): required for the satisfaction of .*Element<.*vector<char
// error(clang): 'char'\) does not satisfy 'Element'
#include <vector>

#include <pdp/comm/self.hpp>

void sum(pdp::comm::Self& world, std::vector<char>& values) { world.all_reduce(values, pdp::comm::Sum{}); }
