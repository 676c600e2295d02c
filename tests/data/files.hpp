#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support.hpp"

/// Hand-made files for the tests of the readers, in a temporary folder.
namespace files {

/// A temporary folder. The destructor removes it with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "pdp_test_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder: " + name};
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Returns the names of the files in the folder.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{path_}) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file{path, std::ios::binary};
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

/// Returns an IDX file of unsigned bytes. Does not check that the values fit the extents.
inline std::string idx(const std::vector<std::uint32_t>& extents, std::string_view values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xff);
  return bytes.append(values);
}

/// Returns a .npy file of version `major`.0 with this dictionary, padded as numpy.save does.
inline std::string npy_of(const std::string& dictionary, std::string_view values, char major = 1) {
  const std::size_t prefix = major == 1 ? 10 : 12;
  const std::size_t length = (prefix + dictionary.size() + 1 + 63) / 64 * 64 - prefix;
  std::string bytes = std::string{"\x93NUMPY"} + major + '\0';
  for (std::size_t byte = 8; byte < prefix; ++byte) bytes += static_cast<char>(length >> 8 * (byte - 8) & 0xff);
  return bytes.append(dictionary).append(length - 1 - dictionary.size(), ' ').append(1, '\n').append(values);
}

/// Returns a .npy file in C order. Does not check that the values fit the shape, which is a tuple such as "(2, 3)".
template <class T>
std::string npy(const std::string& descr, const std::string& shape, const std::vector<T>& values) {
  const std::string_view bytes{reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  return npy_of("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }", bytes);
}

inline std::string gzip(const std::string& bytes, const std::filesystem::path& scratch) {
  const gzFile file = gzopen(scratch.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::string packed = read(scratch);
  std::filesystem::remove(scratch);
  return packed;
}

/// Runs `call` in a child process, so that `call` may change user, limits and mounts. Returns its result.
inline std::string in_child(const std::function<std::string()>& call) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::runtime_error{"no pipe"};
  const pid_t child = ::fork();
  if (child == 0) {
    std::string result;
    try {
      result = call();
    } catch (...) {
      ::_exit(2);  // Catch must not continue in the child
    }
    const auto written = ::write(pipe[1], result.data(), result.size());
    ::_exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  ::close(pipe[1]);
  if (child < 0) throw std::runtime_error{"no child process"};
  std::string result(4096, '\0');
  const auto size = ::read(pipe[0], result.data(), result.size());
  ::close(pipe[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error{"the child process has failed"};
  result.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return result;
}

using support::message_of;

}  // namespace files
