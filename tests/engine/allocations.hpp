// Counts the allocations of all threads of a program, except those of oneDNN: operator new, malloc and its relatives. Only one source of
// an executable may include this file. Under a sanitizer, which has its own malloc, nothing is counted.
#pragma once

#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__clang__) && __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // declares posix_memalign, which must come before the definition
#endif

namespace allocations {

constexpr bool are_counted = !PDP_TEST_SANITIZED;
inline std::atomic<long> count{0};

/// Counts an allocation made by the code at this address, unless it belongs to oneDNN. oneDNN allocates and frees memory in each product,
/// to list or pack a kernel's operands. pdp cannot change that.
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

// glibc's allocation functions, to which the replacements below forward.
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

// Replaced because malloc would see the C++ library as its caller instead of the code that uses new. All other forms of operator new
// call these two, and operator delete calls free.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations::note(__builtin_return_address(0));
  if (void* const memory = __libc_malloc(bytes)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations::note(__builtin_return_address(0));
  if (void* const memory = __libc_memalign(static_cast<std::size_t>(alignment), bytes)) return memory;
  throw std::bad_alloc{};
}

#endif
