#include <pdp/host/gemm.hpp>

bool multiplies_by_onednn() { return pdp::host::has_onednn({}); }
