// error: pdp: this argument of a remote call cannot travel to another rank
#include <pdp/rpc/node.hpp>

inline int first(const std::vector<int*>& x) { return *x.front(); }

inline int call(pdp::rpc::Node& node) { return node.sync<&first>("worker", std::vector<int*>{}); }
