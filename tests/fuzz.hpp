#pragma once

#include <cstddef>
#include <cstdlib>

/// Helpers of all fuzzers.
namespace fuzz {

inline thread_local std::size_t allocated = 0;  // bytes, by malloc and operator new

extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                                       void (*on_free)(const volatile void*));

/// Aborts the fuzzer if more bytes are allocated during its lifetime than the given bound. Counts only under a sanitizer, since its
/// allocator reports each call.
class AllocationBound {
 public:
  explicit AllocationBound(std::size_t most) : most_{most} {
    static const bool counted = __sanitizer_install_malloc_and_free_hooks != nullptr &&
                                __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t size) { allocated += size; },
                                                                          [](const volatile void*) {}) != 0;
    static_cast<void>(counted);
    before_ = allocated;
  }
  AllocationBound(const AllocationBound&) = delete;
  AllocationBound& operator=(const AllocationBound&) = delete;
  ~AllocationBound() {
    if (allocated - before_ > most_) std::abort();
  }
  void allow(std::size_t more) { most_ += more; }

 private:
  std::size_t most_;
  std::size_t before_ = 0;
};

}  // namespace fuzz
