#include <cstdio>

bool multiplies_by_onednn();  // defined in a library

int main() { std::printf("%s\n", multiplies_by_onednn() ? "oneDNN" : "Eigen"); }
