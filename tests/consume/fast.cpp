#include <cstdio>

bool multiplies_by_onednn();  // in a library

int main() { std::printf("%s\n", multiplies_by_onednn() ? "oneDNN" : "Eigen"); }
