// error(g++): required for the satisfaction of .*WritableElements<.*const std::vector<float
// error(clang): 'const std::vector<float> &' does not satisfy 'WritableElements'
#include <vector>

#include <pdp/comm/self.hpp>

void sum(pdp::comm::Self& world, const std::vector<float>& values) { world.all_reduce(values, pdp::comm::Sum{}); }
