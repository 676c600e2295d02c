#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/cuda/detail/cublas.hpp>
#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// The form of a product c = left right or c += left right, [rows, depth] x [depth, cols] -> [rows, cols]. It is the key under which the
/// product's algorithm is stored. Operands may lie transposed in memory.
struct ProductForm {
  /// Work on the result in the same kernel: a bias is added to each row of c, relu is applied to c, or both.
  enum class Epilogue { none, add_bias, relu, add_bias_relu };

  Index rows, cols, depth;
  bool left_is_transposed, right_is_transposed, accumulate;
  Epilogue epilogue = Epilogue::none;
  DType type = DType::float32;    // of both operands
  DType result = DType::float32;  // of c, and of a bias
  std::uint32_t alignment = 4;    // in bytes, of all operands: a batch may start anywhere in its caller's memory
  friend auto operator<=>(const ProductForm&, const ProductForm&) = default;
};

/// Products of matrices by cuBLASLt. cuBLASLt's matrices are column-major, so it computes c^T = right^T left^T.
class Products {
 public:
  Products(int device, bool tf32) : device_{device}, tf32_{tf32} {
    const OnDevice on{device};
    check_cublas("cublasLtCreate", blas_.create(&handle_));
    if (const cudaError_t result = cudaMalloc(&workspaces_, streams * workspace_bytes); result != cudaSuccess) {
      blas_.destroy(handle_);
      check_room("cudaMalloc", result, device, streams * workspace_bytes);
    }
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products() {
    const OnDevice on{device_, std::nothrow};
    plans_.clear();
    cudaFree(workspaces_);
    blas_.destroy(handle_);
  }

  /// The number of streams on which products may run at the same time.
  static constexpr std::size_t streams = 2;

  /// Computes a product on `stream`. `bias`: the vector that the form's epilogue adds, or null. `number`: the stream's number, below
  /// `streams`, which selects a workspace. Returns false, and does nothing, if cuBLASLt has no kernel for the form's epilogue.
  bool run(ProductForm form, const void* left, const void* right, void* c, const void* bias, cudaStream_t stream, std::size_t number) {
    const OnDevice on{device_};
    const bool has_epilogue = form.epilogue != ProductForm::Epilogue::none, has_bias = bias != nullptr;
    if (has_bias && reinterpret_cast<std::uintptr_t>(bias) % bias_alignment != 0) return false;
    form.alignment = alignment_of(left, right, c);
    auto found = plans_.find(form);
    if (found == plans_.end()) found = plans_.emplace(form, make_plan(form, bias)).first;
    if (!found->second) return false;
    Plan& plan = *found->second;
    if (has_bias) set_bias(plan.product.get(), bias);
    const float one = 1, add = form.accumulate ? 1.0f : 0.0f;
    std::byte* const workspace = static_cast<std::byte*>(workspaces_) + number * workspace_bytes;
    const cublasStatus_t status = blas_.multiply(handle_, plan.product.get(), &one, right, plan.right.get(), left, plan.left.get(), &add, c,
                                                 plan.c.get(), c, plan.c.get(), &plan.algorithm, workspace, workspace_bytes, stream);
    if (has_epilogue && cannot(status)) {
      found->second.reset();
      return false;
    }
    check_cublas("cublasLtMatmul", status);
    return true;
  }

 private:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // recommended by cuBLAS for Hopper
  static constexpr Index short_sum = 128;                                // terms
  static constexpr std::uintptr_t bias_alignment = 16;  // bytes; fixed, as an algorithm that was chosen for one bias also runs with others

  struct Free {
    void operator()(cublasLtMatmulDesc_t each) const { cublas_lt().destroy_product(each); }
    void operator()(cublasLtMatrixLayout_t each) const { cublas_lt().destroy_layout(each); }
    void operator()(cublasLtMatmulPreference_t each) const { cublas_lt().destroy_preference(each); }
  };
  template <class Pointer>
  using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Free>;
  using Layout = Owned<cublasLtMatrixLayout_t>;
  struct Plan {
    Owned<cublasLtMatmulDesc_t> product;
    Layout left, right, c;
    cublasLtMatmulAlgo_t algorithm;
  };

  /// Returns the common alignment of all operands in bytes, up to cuBLASLt's default of 256.
  static std::uint32_t alignment_of(const void* left, const void* right, const void* c) {
    const auto bits = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
    return std::uint32_t{1} << std::countr_zero(bits(left) | bits(right) | bits(c) | std::uintptr_t{256});
  }

  static void set_bias(cublasLtMatmulDesc_t product, const void* bias) {
    check_cublas("cublasLtMatmulDescSetAttribute", cublas_lt().set_product(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }

  /// Returns whether a status means that the epilogue is not possible, so that the product must be computed alone.
  static bool cannot(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH;
  }

  static cublasLtEpilogue_t epilogue(ProductForm::Epilogue of) {
    switch (of) {
      case ProductForm::Epilogue::add_bias:
        return CUBLASLT_EPILOGUE_BIAS;
      case ProductForm::Epilogue::relu:
        return CUBLASLT_EPILOGUE_RELU;
      case ProductForm::Epilogue::add_bias_relu:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
      default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
  }
  static cudaDataType_t type_of(DType type) {
    return type == DType::float32 ? CUDA_R_32F : type == DType::bfloat16 ? CUDA_R_16BF : CUDA_R_16F;
  }
  static Layout layout(DType type, Index rows, Index cols) {
    cublasLtMatrixLayout_t made = nullptr;
    check_cublas("cublasLtMatrixLayoutCreate",
                 cublas_lt().create_layout(&made, type_of(type), static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), rows));
    return Layout{made};
  }

  /// Returns nullopt if there is no algorithm for the form's epilogue. Throws DeviceError if there is no algorithm for a product without
  /// one.
  [[nodiscard]] std::optional<Plan> make_plan(const ProductForm& form, const void* bias) const {
    Plan made;
    cublasLtMatmulDesc_t product = nullptr;
    const bool is_tf32 = tf32_ && form.type == DType::float32;
    check_cublas("cublasLtMatmulDescCreate",
                 blas_.create_product(&product, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    made.product.reset(product);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      check_cublas("cublasLtMatmulDescSetAttribute", blas_.set_product(product, attribute, &value, sizeof value));
    };
    const auto operation = [](bool is_transposed) { return is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(form.right_is_transposed));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(form.left_is_transposed));
    using enum ProductForm::Epilogue;
    if (form.epilogue != none) set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(form.epilogue));
    if (bias != nullptr) set_bias(product, bias);
    made.right = form.right_is_transposed ? layout(form.type, form.depth, form.cols) : layout(form.type, form.cols, form.depth);
    made.left = form.left_is_transposed ? layout(form.type, form.rows, form.depth) : layout(form.type, form.depth, form.rows);
    made.c = layout(form.result, form.cols, form.rows);

    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas("cublasLtMatmulPreferenceCreate", blas_.create_preference(&preference));
    const Owned<cublasLtMatmulPreference_t> owned{preference};
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_cublas("cublasLtMatmulPreferenceSetAttribute", blas_.set_preference(preference, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    // The parts of a long sum are added in float and rounded once. A short sum is not split: cuBLASLt would often split it, but a second
    // kernel that adds the parts takes longer than the split saves.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(form.depth <= short_sum ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(operand, form.alignment);
    std::array<cublasLtMatmulHeuristicResult_t, 8> found{};  // the best one first
    int count = 0;
    const cublasStatus_t status = blas_.find_algorithms(handle_, product, made.right.get(), made.left.get(), made.c.get(), made.c.get(),
                                                        preference, as_int(found.size()), found.data(), &count);
    if (form.epilogue != none && cannot(status)) return {};
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_cublas("cublasLtMatmulAlgoGetHeuristic", status);
    const auto end = found.begin() + (status == CUBLAS_STATUS_SUCCESS ? count : 0);
    const auto best = std::find_if(found.begin(), end, [](const auto& each) { return each.state == CUBLAS_STATUS_SUCCESS; });
    if (best == end && form.epilogue != none) return {};
    if (best == end)
      throw DeviceError{text("cuBLASLt has no algorithm for a product of ", form.rows, " x ", form.depth, " by ", form.depth, " x ",
                             form.cols, " in ", name(form.type), " on GPU ", device_)};
    made.algorithm = best->algo;
    return made;
  }

  const CublasLt& blas_ = cublas_lt();
  int device_;
  bool tf32_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspaces_ = nullptr;
  std::map<ProductForm, std::optional<Plan>> plans_;
};

}  // namespace pdp::cuda
