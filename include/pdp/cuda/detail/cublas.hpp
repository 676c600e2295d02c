#pragma once

#include <cublasLt.h>
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <type_traits>

#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/library.hpp>

namespace pdp::cuda {

/// Returns the folder of the shared CUDA runtime that this program has loaded; empty if there is none.
inline std::filesystem::path folder_of_runtime() {
  void* const runtime = ::dlopen(text("libcudart.so.", CUDART_VERSION / 1000).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (runtime == nullptr) return {};
  link_map* loaded = nullptr;
  const std::filesystem::path file = ::dlinfo(runtime, RTLD_DI_LINKMAP, &loaded) == 0 ? loaded->l_name : "";
  ::dlclose(runtime);
  std::error_code ignored;
  return std::filesystem::canonical(file, ignored).parent_path();
}

/// Returns a handle of a shared library, from a folder that the system's loader searches for this program, or else from that of the CUDA
/// runtime. Throws DeviceError if it cannot be loaded.
inline void* load_library(const std::string& file) {
  if (void* const found = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL)) return found;
  const std::string reason = ::dlerror();
  if (const auto folder = folder_of_runtime(); !folder.empty())
    if (void* const beside = ::dlopen((folder / file).c_str(), RTLD_LAZY | RTLD_LOCAL)) return beside;
  throw DeviceError{text("cannot load ", file, ", which computes products on a GPU: ", reason,
                         "; install cuBLAS of the CUDA toolkit, or add its folder to LD_LIBRARY_PATH")};
}

/// The functions of cuBLASLt that pdp calls. The library takes 0.1 s and 90 MB to load. So pdp does not link it, or programs would pay for
/// it at each start, also without a GPU.
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

/// Returns cuBLASLt. The first call loads the library, of the major version that pdp was compiled with. If it cannot be loaded, a program
/// that contains and exports the functions uses these. Throws DeviceError otherwise.
inline const CublasLt& cublas_lt() {
  static const CublasLt all = [] {
    try {
      return CublasLt{load_library(text("libcublasLt.so.", CUBLAS_VER_MAJOR))};
    } catch (const DeviceError&) {
      if (::dlsym(RTLD_DEFAULT, "cublasLtCreate") == nullptr) throw;
      return CublasLt{RTLD_DEFAULT};
    }
  }();
  return all;
}

/// Throws DeviceError if a function of cuBLASLt reports an error. `function`: its name.
inline void check_cublas(const char* function, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw DeviceError{text(function, " failed: ", cublas_lt().status_text(status))};
}

}  // namespace pdp::cuda
