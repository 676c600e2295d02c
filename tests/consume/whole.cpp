#include <pdp/cpu/gemm.hpp>

bool multiplies_by_onednn() { return pdp::cpu::has_onednn({}); }
