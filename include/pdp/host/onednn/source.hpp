#pragma once

/// What product.hpp and parallel.hpp declare, compiled once for a program: one source of it includes this file. CMake's target pdp::onednn
/// adds that source.

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <optional>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/host/onednn/kernels.hpp>
#include <pdp/host/onednn/parallel.hpp>
#include <pdp/host/onednn/product.hpp>

namespace pdp::host::onednn {

namespace detail {

/// The number of threads that OpenMP gives to what the calling thread starts, while it lives; then what it was before. Looked up, since
/// oneDNN brings the OpenMP that it was built with, or none: then there is nothing to say.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads) {
    static const auto get = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    static const auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (get == nullptr || set == nullptr) return;
    before_ = get();
    if (before_ == threads) return;
    set(threads);
    set_ = set;
  }
  ~OpenMpThreads() {
    if (set_ != nullptr) set_(before_);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_ = 0;
  void (*set_)(int) = nullptr;
};

}  // namespace detail

void product(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads) {
  const detail::OpenMpThreads guard{threads};
  thread_local Kernels kernels;  // for a call has no state of its own to keep them in
  const auto plain = [&] {
    const auto letter = [](const Operand& operand) { return operand.is_transposed ? 'T' : 'N'; };
    return dnnl_sgemm(letter(left), letter(right), c.rows, c.cols, depth, 1, left.data, left.stride, right.data, right.stride,
                      accumulate ? 1 : 0, c.data, c.cols);
  };
  const std::optional<dnnl_status_t> by_kernel = kernels.run(left, right, c, depth, accumulate, threads);
  const dnnl_status_t status = by_kernel ? *by_kernel : plain();
  if (status != dnnl_success)
    throw Error{text("oneDNN refused to multiply a matrix of ", c.rows, " x ", depth, " by one of ", depth, " x ", c.cols,
                     " (dnnl_status_t ", static_cast<int>(status),
                     "); a program that is not linked with pdp::onednn multiplies with Eigen")};
}

namespace detail {

/// What GCC makes of `#pragma omp parallel`; the OpenMP of Clang and Intel has it, too. Null where there is none.
inline auto gomp_parallel() {
  static const auto found = reinterpret_cast<void (*)(void (*)(void*), void*, unsigned, unsigned)>(::dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  return found;
}

}  // namespace detail

bool has_threads() { return detail::gomp_parallel() != nullptr; }

void parallel(int threads, void (*work)(void* context), void* context) {
  detail::gomp_parallel()(work, context, static_cast<unsigned>(threads), 0);
}

std::string name() {
  const dnnl_version_t* const version = dnnl_version();
  const bool has_openmp = version->cpu_runtime == DNNL_RUNTIME_OMP;
  return text("oneDNN ", version->major, ".", version->minor, ".", version->patch,
              has_openmp ? "" : " (built without OpenMP, so it decides itself how many threads it takes)");
}

}  // namespace pdp::host::onednn
