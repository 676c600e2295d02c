#pragma once

/// Definitions for pdp/train/log.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<fmt/format.h>)
#error "pdp needs fmt 9 or newer (Debian: libfmt-dev)"
#include <see the error above>
#endif
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/standard_streams.hpp>
#include <pdp/train/log.hpp>

namespace pdp {

PDP_INLINE LineFile::LineFile(std::string path) : path_{std::move(path)} {
  open_standard_streams();  // otherwise the file might get one of their descriptors
  report_file_size_limit();
  int descriptor = open(O_NONBLOCK);                                 // does not wait for the reader of a pipe
  if (descriptor < 0 && errno == EWOULDBLOCK) descriptor = open(0);  // waits until another program returns its lease on the file
  if (descriptor < 0) fail("cannot be opened for writing");
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  file_.reset(::fdopen(descriptor, "w"));
  if (file_) return;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  fail("cannot be opened for writing");
}

PDP_INLINE void LineFile::line(const std::string& words) {
  if (!file_) throw FileError{text(path_, " cannot be written: it is closed")};
  if (std::fputs((words + '\n').c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) fail("cannot be written");
}

PDP_INLINE void LineFile::close() {
  if (file_ && std::fclose(file_.release()) != 0) fail("cannot be written");
}

PDP_INLINE int LineFile::open(int more) const {
  int descriptor = -1;
  do descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | more, 0666);
  while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

PDP_INLINE void LineFile::fail(const char* what) const {
  const int reason = errno;
  struct stat about {};
  if (reason == ENXIO && ::stat(path_.c_str(), &about) == 0 && S_ISFIFO(about.st_mode))
    throw FileError{text(path_, " ", what, ": it is a pipe that nothing reads; start its reader first, or choose another place")};
  throw FileError{text(path_, " ", what, ": ", std::strerror(reason),
                       reason == EFBIG ? "; raise the limit of a file's size (ulimit -f), or choose another place"
                                       : "; choose a file in a directory that exists, is writable and has free space")};
}

PDP_INLINE void LineFile::Close::operator()(std::FILE* file) const { std::fclose(file); }

PDP_INLINE EpochLog::EpochLog(std::string path) : file_{std::move(path)} {}

PDP_INLINE void EpochLog::write(const Epoch& epoch, double test_accuracy) {
  const auto number = [](double value) { return is_finite(value) ? fmt::format("{:.9g}", value) : std::string{"null"}; };
  file_.line(text("{\"epoch\": ", epoch.number, ", \"loss\": ", number(epoch.loss), ", \"accuracy\": ", number(epoch.accuracy),
                  ", \"test_accuracy\": ", number(test_accuracy), ", \"seconds\": ", number(epoch.seconds), "}"));
}

PDP_INLINE LossLog::LossLog(std::string path) : file_{std::move(path)} { file_.line("step,loss"); }

PDP_INLINE void LossLog::write(std::int64_t step, double loss) { file_.line(fmt::format("{},{:.9g}", step, loss)); }

}  // namespace pdp
