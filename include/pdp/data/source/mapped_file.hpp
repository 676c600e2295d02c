#pragma once

/// Definitions for pdp/data/mapped_file.hpp; see pdp/core/separate_compilation.hpp.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/mapped_file.hpp>

namespace pdp::data {

PDP_INLINE MappedFile::MappedFile(Input input) : input_{std::move(input)}, bytes_{input_.memory()} {
  const std::size_t size = input_.size();
  if (input_.descriptor() < 0 || size == 0) return;
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, input_.descriptor(), 0);
  if (begin == MAP_FAILED)
    throw FileError{text(name(), ": cannot map its ", size, " bytes into memory: ", std::generic_category().message(errno),
                         ". Check the limit of the address space (ulimit -v), or copy the file to another file system.")};
  // Samples are read in random order. Without this, the system would also read the pages around each sample.
  ::madvise(begin, size, MADV_RANDOM);
  bytes_ = {static_cast<const std::byte*>(begin), size};
}

PDP_INLINE MappedFile::~MappedFile() {
  if (input_.descriptor() >= 0 && !bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

PDP_INLINE void MappedFile::check_size() const {
  if (input_.descriptor() < 0) return;
  struct stat about {};
  if (::fstat(input_.descriptor(), &about) != 0)
    throw FileError{text(name(), ": cannot examine it: ", std::generic_category().message(errno), ". Check the file system.")};
  if (static_cast<std::uint64_t>(about.st_size) < input_.size())
    throw FileError{text(name(), ": expected ", input_.size(), " bytes, found ", about.st_size,
                         ": it has shrunk since it was opened. Keep the file unchanged during the training.")};
}

PDP_INLINE void MappedFile::prefetch(std::uint64_t offset, std::uint64_t size) const {
  if (input_.descriptor() < 0) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, offset + size - begin, MADV_WILLNEED);
}

}  // namespace pdp::data
