#pragma once

/// Definitions of the functions declared in product.hpp, convolution.hpp and parallel.hpp. Included by pdp/cpu/onednn.hpp, or by the
/// library that CMake's target pdp::onednn links. The symbols are weak, so several sources of a program may hold them.

#if !__has_include(<oneapi/dnnl/dnnl.h>)
#error "products by oneDNN need oneDNN 2 or newer (Debian: libdnnl-dev), and the CMake target pdp::onednn"
#include <see the error above>
#endif
#include <oneapi/dnnl/dnnl.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include <pdp/core/buffer.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/onednn/convolution.hpp>
#include <pdp/cpu/onednn/convolutions.hpp>
#include <pdp/cpu/onednn/kernels.hpp>
#include <pdp/cpu/onednn/parallel.hpp>
#include <pdp/cpu/onednn/product.hpp>

namespace pdp::cpu::onednn {

namespace detail {

/// Sets the number of threads that OpenMP gives to parallel regions of the calling thread, and restores it at the end of its lifetime.
/// oneDNN divides its work by the number that OpenMP promises, and computes wrong results if it gets fewer. So no more are promised than
/// OpenMP may give (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS), and it may not choose to give fewer (OMP_DYNAMIC). OpenMP's functions are
/// looked up by name, since oneDNN brings the OpenMP that it was built with, or none. Without OpenMP nothing is set.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int wanted) : threads_{wanted} {
    const Functions& openmp = functions();
    if (!openmp.complete()) return;
    const bool is_serial = openmp.get_active_level() >= openmp.get_max_active_levels();
    threads_ = is_serial ? 1 : std::clamp(openmp.get_thread_limit(), 1, wanted);
    before_ = openmp.get_max_threads();
    if (before_ != threads_) openmp.set_num_threads(threads_);
    was_dynamic_ = threads_ > 1 && openmp.get_dynamic() != 0;
    if (was_dynamic_) openmp.set_dynamic(0);
  }
  ~OpenMpThreads() {
    const Functions& openmp = functions();
    if (!openmp.complete()) return;
    if (was_dynamic_) openmp.set_dynamic(1);
    if (before_ != threads_) openmp.set_num_threads(before_);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

  /// Returns the number of threads that there will be: those that were wanted, or fewer.
  [[nodiscard]] int count() const { return threads_; }

 private:
  using Get = int (*)();
  using Set = void (*)(int);
  struct Functions {
    Get get_active_level, get_max_active_levels, get_thread_limit, get_max_threads, get_dynamic;
    Set set_num_threads, set_dynamic;
    [[nodiscard]] bool complete() const {
      return get_active_level && get_max_active_levels && get_thread_limit && get_max_threads && get_dynamic && set_num_threads &&
             set_dynamic;
    }
  };
  static const Functions& functions() {
    const auto find = [](const char* name) { return ::dlsym(RTLD_DEFAULT, name); };
    const auto get = [&](const char* name) { return reinterpret_cast<Get>(find(name)); };
    const auto set = [&](const char* name) { return reinterpret_cast<Set>(find(name)); };
    static const Functions found{get("omp_get_active_level"), get("omp_get_max_active_levels"), get("omp_get_thread_limit"),
                                 get("omp_get_max_threads"),  get("omp_get_dynamic"),           set("omp_set_num_threads"),
                                 set("omp_set_dynamic")};
    return found;
  }

  int threads_, before_ = 0;
  bool was_dynamic_ = false;
};

}  // namespace detail

namespace detail {

inline dnnl_status_t plain_product(const Operand& left, const Operand& right, float* c, Index c_stride, Index rows, Index cols, Index depth,
                                   bool accumulate) {
  const auto letter = [](const Operand& operand) { return operand.is_transposed ? 'T' : 'N'; };
  return dnnl_sgemm(letter(left), letter(right), rows, cols, depth, 1, left.data, left.stride, right.data, right.stride, accumulate ? 1 : 0,
                    c, c_stride);
}

inline Kernels& kernels() {
  thread_local Kernels of_thread;  // thread_local, since a call has no state to keep them in
  return of_thread;
}
/// Returns nothing, and leaves c as it is, if the kernels do not compute the product.
template <class In, class Out>
std::optional<dnnl_status_t> run_kernel(const OperandOf<In>& left, const OperandOf<In>& right, Matrix<Out> c, Index depth, bool accumulate,
                                        int threads) {
  try {
    return kernels().run(left, right, c, depth, accumulate, threads);
  } catch (const dnnl::error&) {  // nothing was computed yet
    return {};
  }
}

/// Throws Error if oneDNN has failed to compute a product.
inline void check(dnnl_status_t status, Index rows, Index depth, Index cols) {
  if (status != dnnl_success)
    throw Error{text("oneDNN failed to multiply a matrix of ", rows, " x ", depth, " by one of ", depth, " x ", cols, " (dnnl_status_t ",
                     as_int(status), "); to use Eigen instead, do not link pdp::onednn")};
}

template <class Out>
bool product_of_bfloat16(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<Out> c, Index depth, bool accumulate,
                         int threads) {
  const OpenMpThreads given{threads};
  const std::optional<dnnl_status_t> tried = run_kernel(left, right, c, depth, accumulate, given.count());
  if (tried) check(*tried, c.rows, depth, c.cols);
  return tried.has_value();
}

}  // namespace detail

// NOLINTBEGIN(misc-definitions-in-headers): they are weak, as declared there, so several sources may hold them
void product(const Operand& left, const Operand& right, Matrix<float> c, Index depth, bool accumulate, int threads) {
  const detail::OpenMpThreads given{threads};
  const std::optional<dnnl_status_t> tried = detail::run_kernel(left, right, c, depth, accumulate, given.count());
  detail::check(tried ? *tried : detail::plain_product(left, right, c.data, c.cols, c.rows, c.cols, depth, accumulate), c.rows, depth,
                c.cols);
}

bool prefers_bfloat16() {
  const auto has = [isa = dnnl_get_effective_cpu_isa()](dnnl_cpu_isa_t wanted) { return (isa & wanted) == wanted; };
#ifdef __x86_64__
  const bool is_intel = __builtin_cpu_is("intel") != 0;
#else
  constexpr bool is_intel = false;
#endif
  return has(dnnl_cpu_isa_avx512_core_amx) || (has(dnnl_cpu_isa_avx512_core_bf16) && !is_intel);
}

bool product_of_bfloat16(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<BFloat16> c, Index depth,
                         bool accumulate, int threads) {
  return detail::product_of_bfloat16(left, right, c, depth, accumulate, threads);
}
bool product_of_bfloat16(const OperandOf<BFloat16>& left, const OperandOf<BFloat16>& right, Matrix<float> c, Index depth, bool accumulate,
                         int threads) {
  return detail::product_of_bfloat16(left, right, c, depth, accumulate, threads);
}

bool block_product(const Operand& left, const Operand& right, float* c, Index c_stride, Index rows, Index cols, Index depth,
                   bool accumulate) {
  const detail::OpenMpThreads given{1};
  return detail::plain_product(left, right, c, c_stride, rows, cols, depth, accumulate) == dnnl_success;
}

namespace detail {

inline ConvolutionKernels& convolution_kernels() {
  thread_local ConvolutionKernels kernels;  // thread_local, since a call has no state to keep them in
  return kernels;
}
/// Returns memory for at least `count` floats, which stays valid until the next call of the thread.
inline Buffer<float>& convolution_sums(Index count) {
  thread_local Buffer<float> sums;
  if (count > sums.size()) sums = Buffer<float>{count};
  return sums;
}
/// Returns false if oneDNN cannot make its engine or a kernel. pdp then computes the convolution.
inline bool run(const ConvolutionForm& form, std::span<const float* const> inputs, std::span<float* const> results) {
  try {
    return convolution_kernels().run(form, inputs, results);
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace detail

bool convolve(const Convolution& how, Index rows, const float* x, const float* weight, const float* bias, float* y, int threads) {
  const detail::OpenMpThreads given{threads};
  return detail::run({ConvolutionForm::Result::y, how, rows, bias != nullptr, given.count()}, std::array{x, weight, bias}, std::array{y});
}

bool convolve_backward_input(const Convolution& how, Index rows, const float* weight, const float* gradient_y, float* gradient_x,
                             int threads) {
  const detail::OpenMpThreads given{threads};
  return detail::run({ConvolutionForm::Result::gradient_x, how, rows, false, given.count()}, std::array{weight, gradient_y},
                     std::array{gradient_x});
}

bool convolve_backward_weight(const Convolution& how, Index rows, const float* x, const float* gradient_y, float* gradient_weight,
                              float* gradient_bias, bool accumulate, int threads) {
  const detail::OpenMpThreads given{threads};
  const ConvolutionForm form{ConvolutionForm::Result::gradient_weight, how, rows, gradient_bias != nullptr, given.count()};
  const std::array inputs{x, gradient_y};
  if (!accumulate) return detail::run(form, inputs, std::array{gradient_weight, gradient_bias});
  const Index weights = how.filters * how.depth();
  float* const of_weight = detail::convolution_sums(weights + how.filters).data();
  float* const of_bias = of_weight + weights;
  if (!detail::run(form, inputs, std::array{of_weight, of_bias})) return false;
  for (Index i = 0; i < weights; ++i) gradient_weight[i] += of_weight[i];
  for (Index i = 0; gradient_bias != nullptr && i < how.filters; ++i) gradient_bias[i] += of_bias[i];
  return true;
}

namespace detail {

/// Returns the function behind GCC's `#pragma omp parallel`; the OpenMP of Clang and Intel has it, too. Null if there is none.
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
              has_openmp ? "" : " (built without OpenMP, so it chooses its own number of threads)");
}
// NOLINTEND(misc-definitions-in-headers)

}  // namespace pdp::cpu::onednn
