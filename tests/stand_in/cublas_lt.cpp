#include <cublasLt.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <pdp/core/dtype.hpp>

#include "inside.hpp"

// Matrices are column-major; see NVIDIA's manual of cublasLtMatmul().

struct cublasLtContext {};
struct cublasLtMatmulPreference {
  std::size_t workspace = 0;
  std::uint32_t alignment = 256;  // the smallest of all operands, in bytes
  std::uint32_t scheme = 7;       // mask of the allowed ways to add up parts of a sum
};
struct cublasLtMatrixLayout {
  cudaDataType_t type;
  std::uint64_t rows, cols;
  std::int64_t stride;
  friend bool operator==(const cublasLtMatrixLayout&, const cublasLtMatrixLayout&) = default;
};
struct cublasLtMatmulDesc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;  // elements have the type of the result
};

using namespace stand_in;

namespace {

struct Sizes {
  std::uint64_t m, n, k;
};
std::size_t bytes_of(cudaDataType_t type) { return type == CUDA_R_32F ? sizeof(float) : 2; }
float get(const void* values, cudaDataType_t type, std::uint64_t at) {
  if (type == CUDA_R_16BF) return static_cast<float>(static_cast<const pdp::BFloat16*>(values)[at]);
  if (type == CUDA_R_16F) return static_cast<float>(static_cast<const pdp::Float16*>(values)[at]);
  return static_cast<const float*>(values)[at];
}
void set(void* values, cudaDataType_t type, std::uint64_t at, double value) {
  if (type == CUDA_R_16BF)
    static_cast<pdp::BFloat16*>(values)[at] = pdp::BFloat16{static_cast<float>(value)};
  else if (type == CUDA_R_16F)
    static_cast<pdp::Float16*>(values)[at] = static_cast<pdp::Float16>(static_cast<float>(value));
  else
    static_cast<float*>(values)[at] = static_cast<float>(value);
}
/// Rounds to TF32, which has 10 bits of fraction.
float in_tf32(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000) & ~std::uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}
/// Copies a matrix so that the terms of each sum are consecutive. `across`: in the matrix they are a stride apart.
std::vector<double> terms(const void* matrix, const cublasLtMatrixLayout& layout, bool across, bool is_tf32) {
  std::vector<double> found(layout.rows * layout.cols);
  for (std::uint64_t col = 0; col < layout.cols; ++col)
    for (std::uint64_t row = 0; row < layout.rows; ++row) {
      const float value = get(matrix, layout.type, col * static_cast<std::uint64_t>(layout.stride) + row);
      found[across ? row * layout.cols + col : col * layout.rows + row] = static_cast<double>(is_tf32 ? in_tf32(value) : value);
    }
  return found;
}
Sizes sizes_of(const cublasLtMatmulDesc& desc, const cublasLtMatrixLayout& a, const cublasLtMatrixLayout& b,
               const cublasLtMatrixLayout& d) {
  const bool a_t = desc.a == CUBLAS_OP_T, b_t = desc.b == CUBLAS_OP_T;
  const Sizes sizes{a_t ? a.cols : a.rows, b_t ? b.rows : b.cols, a_t ? a.rows : a.cols};
  if ((b_t ? b.cols : b.rows) != sizes.k || d.rows != sizes.m || d.cols != sizes.n) misuse("cublasLtMatmul of matrices that do not fit");
  if (a.type != b.type || (a.type == CUDA_R_32F && d.type != CUDA_R_32F)) misuse("cublasLtMatmul of types that it cannot multiply");
  if (desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type != CUDA_R_32F) misuse("cublasLtMatmul in TF32 of values that are no floats");
  for (const cublasLtMatrixLayout* each : {&a, &b, &d})
    if (each->stride < static_cast<std::int64_t>(each->rows) || each->rows == 0 || each->cols == 0)
      misuse("an empty matrix layout, or one with too small a stride");
  return sizes;
}
bool takes_bias(const cublasLtMatmulDesc& desc) {
  return desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT && desc.epilogue != CUBLASLT_EPILOGUE_RELU;
}
void check_memory(const void* memory, const cublasLtMatrixLayout& layout) {
  if (block_of(memory, (static_cast<std::uint64_t>(layout.stride) * (layout.cols - 1) + layout.rows) * bytes_of(layout.type)) == nullptr)
    misuse("cublasLtMatmul of memory that is not device memory");
}

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  const std::lock_guard lock{everything().mutex};
  ++everything().live;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  const std::lock_guard lock{everything().mutex};
  --everything().live;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t) {
  *made = new cublasLtMatmulDesc{compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  const auto set = [&](auto& to) {
    if (bytes != sizeof to) misuse("an attribute of a product of another size");
    std::memcpy(&to, value, bytes);
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      set(desc->a);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      set(desc->b);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      set(desc->epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      set(desc->bias);
      break;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t rows, std::uint64_t cols,
                                          std::int64_t stride) {
  *made = new cublasLtMatrixLayout{type, rows, cols, stride};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = new cublasLtMatmulPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  const bool is_workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  const bool is_scheme = attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK;
  if (bytes != (is_workspace ? sizeof preference->workspace : sizeof preference->alignment)) misuse("a preference of another size");
  std::uint32_t* const number = is_scheme ? &preference->scheme : &preference->alignment;
  std::memcpy(is_workspace ? static_cast<void*>(&preference->workspace) : number, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* found,
                                              int* count) {
  static_cast<void>(sizes_of(*desc, *a, *b, *d));
  refuse_in_capture("an algorithm of cuBLASLt is asked for");
  if (preference->scheme != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE && preference->scheme != CUBLASLT_REDUCTION_SCHEME_NONE)
    misuse("an algorithm that may round partial sums");
  if (*c != *d || wanted < 1) misuse("cublasLtMatmulAlgoGetHeuristic with nothing to find, or with matrices c and d that differ");
  *count = 0;
  if (takes_bias(*desc) && (desc->bias == nullptr || reinterpret_cast<std::uintptr_t>(desc->bias) % 16 != 0))
    misuse("an algorithm for an epilogue without its vector, or with one that is not aligned");
  if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !settings().epilogues) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(wanted, 2);
  if (*count == 2) *found++ = {{}, 0, CUBLAS_STATUS_NOT_SUPPORTED};  // a result without an algorithm
  found->state = CUBLAS_STATUS_SUCCESS;
  found->workspaceSize = preference->workspace;
  found->algo.data[0] = preference->alignment;  // the algorithm requires this alignment
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  if (algorithm == nullptr || c != d || *layout_c != *layout_d) misuse("cublasLtMatmul without an algorithm, or not in place");
  if (algorithm->data[0] == 0) misuse("cublasLtMatmul with an invalid algorithm");
  for (const void* const operand : {a, b, static_cast<const void*>(d)})
    if (reinterpret_cast<std::uintptr_t>(operand) % algorithm->data[0] != 0)
      misuse("cublasLtMatmul of an operand that is not aligned as its algorithm requires");
  const float by = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  const Sizes sizes = sizes_of(*desc, *layout_a, *layout_b, *layout_d);
  if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !settings().epilogues_run) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::lock_guard lock{everything().mutex};
  check_memory(a, *layout_a);
  check_memory(b, *layout_b);
  check_memory(d, *layout_d);
  if (block_of(workspace, workspace_bytes) == nullptr) misuse("cublasLtMatmul with a workspace that is not device memory");
  const bool has_bias = takes_bias(*desc);
  if (has_bias && block_of(desc->bias, sizes.m * bytes_of(layout_d->type)) == nullptr)
    misuse("cublasLtMatmul with a bias that is not device memory");
  ++everything().products[desc->epilogue];
  stream_here(stream, "cublasLtMatmul").enqueue([=, product = *desc, of_a = *layout_a, of_b = *layout_b, of_d = *layout_d](Lock& own) {
    Everything& all = everything();
    if (const int wanted = settings().products_to_meet; wanted > 0) {
      all.products_met = all.products_met || ++all.products_at_work >= wanted;
      all.changed.notify_all();
      all.changed.wait_for(own, std::chrono::seconds{10}, [&] { return all.products_met; });
      --all.products_at_work;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{settings().product_milliseconds};
    everything().changed.wait_until(own, end, [end] { return std::chrono::steady_clock::now() >= end; });
    const bool is_tf32 = product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const std::vector<double> left = terms(a, of_a, product.a == CUBLAS_OP_N, is_tf32),
                              right = terms(b, of_b, product.b == CUBLAS_OP_T, is_tf32);
    for (std::uint64_t row = 0; row < sizes.m; ++row)
      for (std::uint64_t col = 0; col < sizes.n; ++col) {
        const double* const of_row = left.data() + row * sizes.k;
        const double sum = std::inner_product(of_row, of_row + sizes.k, right.data() + col * sizes.k, 0.0);
        const std::uint64_t out = col * static_cast<std::uint64_t>(of_d.stride) + row;
        double value = static_cast<double>(by) * sum;
        if (keep != 0) value += static_cast<double>(keep * get(d, of_d.type, out));  // d may be uninitialised if it is not read
        if (product.epilogue == CUBLASLT_EPILOGUE_BIAS || product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
          value += static_cast<double>(get(product.bias, of_d.type, row));
        if (product.epilogue == CUBLASLT_EPILOGUE_RELU || product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) value = std::max(0.0, value);
        set(d, of_d.type, out, value);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}
