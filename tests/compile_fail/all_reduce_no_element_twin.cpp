#include <vector>

#include <pdp/comm/self.hpp>

void sum(pdp::comm::Self& world, std::vector<int>& values) { world.all_reduce(values, pdp::comm::Sum{}); }
