#include <pdp/host/gemm.hpp>

#include <cstdio>

int main() { std::printf("%s\n", pdp::host::has_onednn({}) ? "oneDNN" : "Eigen"); }
