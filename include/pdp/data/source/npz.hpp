#pragma once

/// Definitions for pdp/data/npz.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<zip.h>)
#error ".npz files need libzip 1.7 (Debian: libzip-dev), and the CMake target pdp::npz"
#include <see the error above>
#endif
#include <zip.h>
#ifndef LIBZIP_VERSION_MAJOR
#error ".npz files need libzip 1.7 (Debian: libzip-dev); the header zip.h that was found is of another library"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/input.hpp>
#include <pdp/data/mapped.hpp>
#include <pdp/data/npz.hpp>
#include <pdp/data/shown.hpp>

namespace pdp::data {

/// An open archive: libzip's handle, and the arrays.
class Npz::State {
 public:
  struct Array {
    std::string name{};
    zip_uint64_t index = 0;
    zip_stat_t about{};
  };

  explicit State(Input input) : input_{std::move(input)} {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = nullptr;
    int code = 0;
    if (input_.descriptor() < 0) {
      source = zip_source_buffer_create(input_.memory().data(), input_.memory().size(), 0, &error);
      if (source != nullptr) zip_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
      if (zip_ == nullptr) zip_source_free(source);
    } else {
      const int copy = ::fcntl(input_.descriptor(), F_DUPFD_CLOEXEC, 0);  // which libzip closes
      if (copy >= 0) zip_.reset(zip_fdopen(copy, ZIP_RDONLY, &code));
      if (zip_ == nullptr) {
        if (copy >= 0) ::close(copy);
        zip_error_fini(&error);
        zip_error_init_with_code(&error, copy < 0 ? ZIP_ER_OPEN : code);
      }
    }
    const std::string reason = zip_ == nullptr ? zip_error_strerror(&error) : "";
    zip_error_fini(&error);
    if (zip_ == nullptr)
      throw FileError{text(input_.name(), ": expected a .npz file, found no archive that can be read (", reason,
                           "). Give a whole file, as numpy.savez writes it.")};
    list_arrays();
  }

  [[nodiscard]] const std::string& name() const { return input_.name(); }
  [[nodiscard]] const std::vector<Array>& arrays() const { return arrays_; }

  [[nodiscard]] const Array& array(std::string_view name) const {
    const auto found = std::ranges::find(arrays_, name, &Array::name);
    if (found != arrays_.end()) return *found;
    std::string names;
    for (const Array& each : std::span{arrays_}.first(std::min<std::size_t>(arrays_.size(), 8)))
      names += text(names.empty() ? "" : ", ", in_quotes(detail::shown(each.name)));
    throw FileError{text(input_.name(), ": expected an array ", in_quotes(name), ", found ", names.empty() ? "no arrays" : names,
                         arrays_.size() > 8 ? " and others" : "", ". Name one that the file has.")};
  }

  [[nodiscard]] std::vector<std::byte> read(const Array& array) const {
    check(array);
    const std::unique_ptr<zip_file_t, Close> file{zip_fopen_index(zip_.get(), array.index, 0)};
    if (file == nullptr) damaged(array, zip_strerror(zip_.get()));
    std::vector<std::byte> bytes(array.about.size);
    for (std::size_t done = 0; done < bytes.size();) {
      const zip_int64_t count = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
      if (count < 0) damaged(array, zip_file_strerror(file.get()));
      if (count == 0) damaged(array, "it is shorter than the archive says");
      done += static_cast<std::size_t>(count);
    }
    std::byte further{};
    const zip_int64_t count = zip_fread(file.get(), &further, 1);  // at the end, libzip compares the checksum
    if (count < 0) damaged(array, zip_file_strerror(file.get()));
    if (count > 0) damaged(array, "it is longer than the archive says");
    return bytes;
  }

 private:
  struct Discard {
    void operator()(zip_t* archive) const { zip_discard(archive); }
  };
  struct Close {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };

  void list_arrays() {
    constexpr std::string_view ending = ".npy";
    const zip_int64_t entries = zip_get_num_entries(zip_.get(), 0);
    for (zip_int64_t entry = 0; entry < entries; ++entry) {
      Array array{.index = static_cast<zip_uint64_t>(entry)};
      if (zip_stat_index(zip_.get(), array.index, 0, &array.about) != 0 || array.about.name == nullptr) continue;
      const std::string_view file = array.about.name;
      if (!file.ends_with(ending)) continue;
      array.name = file.substr(0, file.size() - ending.size());
      array.about.name = nullptr;
      arrays_.push_back(std::move(array));
    }
    std::vector<std::string_view> sorted;
    for (const Array& each : arrays_) sorted.push_back(each.name);
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      throw FileError{text(input_.name(), ": expected arrays of different names, found ", in_quotes(detail::shown(*twice)),
                           " twice. Save the file again with numpy.savez.")};
  }

  /// Throws FileError if an array cannot be read, or has a size that its compressed bytes cannot have.
  void check(const Array& array) const {
    constexpr zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    const zip_stat_t& about = array.about;
    if ((about.valid & wanted) != wanted) damaged(array, "the archive does not say its size");
    if (about.encryption_method != ZIP_EM_NONE)
      throw FileError{text(shown(array), ": expected an array that is not encrypted. Save it with numpy.savez.")};
    if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE)
      throw FileError{text(shown(array), ": expected an array that is stored or compressed by deflate, found compression method ",
                           about.comp_method, ". Save it with numpy.savez or numpy.savez_compressed.")};
    const zip_uint64_t largest_ratio = about.comp_method == ZIP_CM_STORE ? 1 : 1032;  // of deflate
    if (about.comp_size > input_.size() || about.size / largest_ratio > about.comp_size)
      damaged(array, text("the archive says that its ", about.comp_size, " bytes become ", about.size));
  }
  [[noreturn]] void damaged(const Array& array, std::string_view reason) const {
    throw FileError{text(shown(array), ": expected an array, found that it is damaged: ", reason, ". Copy or save the file again.")};
  }
  [[nodiscard]] std::string shown(const Array& array) const { return text(name(), ", array ", in_quotes(detail::shown(array.name))); }

  Input input_;
  std::unique_ptr<zip_t, Discard> zip_;
  std::vector<Array> arrays_;
};

PDP_INLINE Npz::Npz(Input input) : state_{std::make_unique<State>(std::move(input))} {}
PDP_INLINE Npz::Npz(Npz&& other) noexcept = default;
PDP_INLINE Npz::~Npz() = default;

PDP_INLINE std::vector<std::string> Npz::names() const {
  std::vector<std::string> names;
  for (const State::Array& each : state_->arrays()) names.push_back(each.name);
  return names;
}

PDP_INLINE std::vector<std::byte> Npz::npy_file(std::string_view name) const { return state_->read(state_->array(name)); }

PDP_INLINE std::string Npz::shown_name(std::string_view name) const {
  return text(state_->name(), ", array ", in_quotes(detail::shown(name)));
}

template <TargetElement T>
InMemory<T> read_npz(const Npz& file, const NpzOptions& options) {
  const std::vector<std::byte> x = file.npy_file(options.inputs), y = file.npy_file(options.targets);
  return in_memory(Mapped<T>{map_npy(Input{x, file.shown_name(options.inputs)}), map_npy(Input{y, file.shown_name(options.targets)})});
}

}  // namespace pdp::data
