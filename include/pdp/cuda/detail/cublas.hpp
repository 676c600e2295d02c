#pragma once

#include <cublasLt.h>
#include <dlfcn.h>

#include <string>
#include <type_traits>

#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// Returns a handle of a shared library, from the system's folders or from that of the CUDA runtime. Throws DeviceError if it cannot be
/// loaded.
inline void* load_library(const std::string& file) {
  if (void* const found = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL)) return found;
  const std::string reason = ::dlerror();
  Dl_info runtime{};
  if (::dladdr(reinterpret_cast<const void*>(&cudaGetDevice), &runtime) != 0 && runtime.dli_fname != nullptr) {
    const std::string path = runtime.dli_fname;
    if (void* const beside = ::dlopen((path.substr(0, path.rfind('/') + 1) + file).c_str(), RTLD_LAZY | RTLD_LOCAL)) return beside;
  }
  throw DeviceError{text("cannot load ", file, ", which computes products on a GPU: ", reason,
                         "; install cuBLAS of the CUDA toolkit, or add its folder to LD_LIBRARY_PATH")};
}

/// The functions of cuBLASLt that pdp calls. The library takes 0.1 s and 90 MB to load, so a program that links it would pay for it at each
/// start, also without a GPU.
struct CublasLt {
  /// Throws DeviceError if the library lacks a function. `library`: as for dlsym.
  explicit CublasLt(void* library) {
    const auto find = [library](auto& function, const char* name) {
      void* const found = ::dlsym(library, name);
      if (found == nullptr) throw DeviceError{text("cuBLASLt has no function ", name, "; pdp needs that of CUDA 12 or newer")};
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find(status_text, "cublasLtGetStatusString");
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(multiply, "cublasLtMatmul");
    find(find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
    find(create_product, "cublasLtMatmulDescCreate");
    find(destroy_product, "cublasLtMatmulDescDestroy");
    find(set_product, "cublasLtMatmulDescSetAttribute");
    find(create_layout, "cublasLtMatrixLayoutCreate");
    find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    find(create_preference, "cublasLtMatmulPreferenceCreate");
    find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
  }

  decltype(&::cublasLtGetStatusString) status_text = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmul) multiply = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) find_algorithms = nullptr;
  decltype(&::cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
};

/// Returns cuBLASLt, of the version that pdp was compiled with. Loads it at the first call, unless the program itself links it. Throws
/// DeviceError if it cannot be loaded.
inline const CublasLt& cublas_lt() {
  static const CublasLt all = [] {
    const bool is_linked = ::dlsym(RTLD_DEFAULT, "cublasLtCreate") != nullptr;
    return CublasLt{is_linked ? RTLD_DEFAULT : load_library(text("libcublasLt.so.", CUBLAS_VER_MAJOR))};
  }();
  return all;
}

/// Throws DeviceError if a function of cuBLASLt reports an error. `function`: its name.
inline void check_cublas(const char* function, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw DeviceError{text(function, " failed: ", cublas_lt().status_text(status))};
}

}  // namespace pdp::cuda
