// Loads cuBLASLt of the CUDA toolkit, which needs no GPU. Prints a line if its functions work, and it was not loaded before.
#include <pdp/cuda/detail/cublas.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main() {
  try {
    const std::string file = pdp::text("libcublasLt.so.", CUBLAS_VER_MAJOR);
    if (::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr) {
      std::puts("the program has loaded cuBLASLt at its start");
      return 1;
    }
    std::printf("loaded: %s\n", pdp::cuda::cublas_lt().status_text(CUBLAS_STATUS_NOT_SUPPORTED));
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 1;
  }
}
