#include "every.hpp"

template class pdp::comm::Member<pdp::comm::TcpTransport>;

pdp::comm::Default join(pdp::comm::StoreView store) { return pdp::comm::Default::connect(store, 0, 1, pdp::comm::Clock::now()); }
int start(const pdp::launch::Options& options) { return pdp::launch::run_processes(options); }
