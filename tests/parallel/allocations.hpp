// Counts every allocation of the program but those of oneDNN, on all of its threads: malloc and its kin, and with them operator new, which
// calls them. For one source of an executable only. A sanitizer keeps its own malloc; then nothing is counted.
#pragma once

#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#if defined(__clang__) && __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // declares posix_memalign, and must do so before the definition
#endif

namespace allocations {

constexpr bool are_counted = !PDP_TEST_SANITIZED;
inline std::atomic<long> count{0};

/// Counts an allocation that this address asks for. oneDNN packs the operands of each product in memory that it takes and gives back; what
/// it does is its own matter.
inline void note(void* caller) {
  static thread_local bool looks = false;  // dladdr may allocate
  Dl_info place{};
  if (!looks) {
    looks = true;
    const bool is_onednn = dladdr(caller, &place) != 0 && place.dli_fname != nullptr && std::strstr(place.dli_fname, "dnnl") != nullptr;
    looks = false;
    if (is_onednn) return;
  }
  ++count;
}

}  // namespace allocations

#if !PDP_TEST_SANITIZED

// glibc's own, which ours stand before.
extern "C" {
void* __libc_malloc(std::size_t bytes);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t elements, std::size_t bytes);     // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t elements, std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  return __libc_calloc(elements, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  allocations::note(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}

#endif
