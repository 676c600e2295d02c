#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <pdp/core/error.hpp>
#include <pdp/core/file_size_limit.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/standard_streams.hpp>

namespace pdp {

/// A text file that is written line by line, for logs. Each line is passed to the system before the next one comes, and a line that cannot
/// be written throws FileError. Programs that this one starts do not inherit the file.
class LineFile {
 public:
  /// Replaces what is there. Throws FileError if that fails, or if `path` is a pipe that nothing reads.
  explicit LineFile(std::string path) : path_{std::move(path)} {
    open_standard_streams();  // or the file becomes one of them
    report_file_size_limit();
    int descriptor = open(O_NONBLOCK);                                 // not to wait for the reader of a pipe
    if (descriptor < 0 && errno == EWOULDBLOCK) descriptor = open(0);  // another program gives a lease on the file back first
    if (descriptor < 0) fail("cannot be opened for writing");
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    file_.reset(::fdopen(descriptor, "w"));
    if (file_) return;
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    fail("cannot be opened for writing");
  }

  /// Throws FileError after close().
  void line(const std::string& words) {
    if (!file_) throw FileError{text(path_, " cannot be written: it is closed")};
    if (std::fputs((words + '\n').c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) fail("cannot be written");
  }

  /// Ends the file. Throws FileError if a line is lost: network file systems report a full disk only here. The destructor closes the file,
  /// too, but reports nothing.
  void close() {
    if (file_ && std::fclose(file_.release()) != 0) fail("cannot be written");
  }

 private:
  [[nodiscard]] int open(int more) const {
    int descriptor = -1;
    do descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | more, 0666);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
  }

  [[noreturn]] void fail(const char* what) const {
    const int reason = errno;
    struct stat about {};
    if (reason == ENXIO && ::stat(path_.c_str(), &about) == 0 && S_ISFIFO(about.st_mode))
      throw FileError{text(path_, " ", what, ": it is a pipe that nothing reads; start its reader first, or choose another place")};
    throw FileError{text(path_, " ", what, ": ", std::strerror(reason),
                         reason == EFBIG ? "; raise the limit of a file's size (ulimit -f), or choose another place"
                                         : "; choose a place that exists, may be written to, and has room")};
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// What is reported of an epoch: means over all samples and ranks.
struct Epoch {
  int number = 0;  // from 0
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;
};

/// A log of one JSON object per epoch: epoch, loss, accuracy, test_accuracy, seconds. A number that is not finite is null. Numbers have a
/// dot in every locale.
class EpochLog {
 public:
  explicit EpochLog(std::string path) : file_{std::move(path)} {}

  void write(const Epoch& epoch, double test_accuracy) {
    file_.line(text("{\"epoch\": ", epoch.number, ", \"loss\": ", number(epoch.loss), ", \"accuracy\": ", number(epoch.accuracy),
                    ", \"test_accuracy\": ", number(test_accuracy), ", \"seconds\": ", number(epoch.seconds), "}"));
  }
  /// As LineFile::close().
  void close() { file_.close(); }

 private:
  static std::string number(double value) {
    if (!is_finite(value)) return "null";
    return fmt::format("{:.9g}", value);
  }

  LineFile file_;
};

}  // namespace pdp
