#include <pdp/comm/thread.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/train/column_statistics.hpp>

auto statistics(pdp::comm::Thread& world, const pdp::data::InMemory<float>& set) { return pdp::column_statistics(world, set); }
