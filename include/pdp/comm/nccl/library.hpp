#pragma once

#if __has_include(<nccl.h>)
#include <nccl.h>
#if NCCL_VERSION_CODE < 22700
#error "pdp needs NCCL 2.27 or newer: with earlier ones a thread cannot use two non-blocking communicators at once"
#endif
#else
#error "pdp over NCCL needs NVIDIA's NCCL and the CUDA toolkit, and the CMake target pdp::nccl"
#include <see the error above>
#endif

#include <string>

#include <pdp/comm/operation.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cuda/detail/library.hpp>

namespace pdp::comm::nccl {

/// Returns the ncclDataType_t of an element type.
inline ncclDataType_t type_of(DType type) {
  switch (type) {
    case DType::int8:
      return ncclInt8;
    case DType::int32:
      return ncclInt32;
    case DType::int64:
      return ncclInt64;
    case DType::float16:
      return ncclFloat16;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::float32:
      return ncclFloat32;
    case DType::float64:
      return ncclFloat64;
    case DType::byte:
      break;
  }
  return ncclUint8;
}

/// Returns NCCL's operation for a reduction, or ncclNumOps if NCCL has none.
inline ncclRedOp_t operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return ncclSum;
    case Reduction::product:
      return ncclProd;
    case Reduction::min:
      return ncclMin;
    case Reduction::max:
      return ncclMax;
    case Reduction::average:
      return ncclAvg;
    case Reduction::none:
    case Reduction::bit_and:
    case Reduction::bit_or:
      break;
  }
  return ncclNumOps;
}

/// Returns NCCL's description of a result, followed by its last error message if there is one.
inline std::string describe_error(ncclResult_t result, ncclComm_t comm) {
  const char* const more = ncclGetLastError(comm);
  return text(ncclGetErrorString(result), more != nullptr && *more != '\0' ? text(" (", more, ")") : "");
}

/// Returns "2.28.9" for 22809.
inline std::string version_text(int number) { return text(number / 10000, '.', number / 100 % 100, '.', number % 100); }

/// Throws ConfigError if the loaded NCCL library is older than 2.27, whatever version the program was built with.
inline void check_version(int rank) {
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess && version >= 22700) return;
  throw ConfigError{text("rank ", rank, " cannot use NCCL: this program was built with NCCL ", version_text(NCCL_VERSION_CODE),
                         " and needs 2.27 or newer, but has found ", version_text(version),
                         " (LD_LIBRARY_PATH, or an older package); install a newer one, or choose another communicator")};
}

inline void check_cuda(const char* function, cudaError_t result) {
  if (result != cudaSuccess) [[unlikely]]
    throw CommunicationError{text(function, " failed: ", cudaGetErrorString(result))};
}

using cuda::OnDevice;

}  // namespace pdp::comm::nccl
