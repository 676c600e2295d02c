#pragma once

#include <fmt/format.h>

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

/// A text file that is written line by line, for logs. Each line is on disk's way before the next one comes, and a line that cannot be
/// written throws FileError.
class LineFile {
 public:
  /// Replaces what is there.
  explicit LineFile(std::string path) : path_{std::move(path)} {
    open_standard_streams();  // or the file becomes one of them
    report_file_size_limit();
    file_.reset(std::fopen(path_.c_str(), "w"));
    if (!file_) fail("cannot be opened for writing");
  }

  void line(const std::string& words) {
    if (std::fputs((words + '\n').c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) fail("cannot be written");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    const int reason = errno;
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

 private:
  static std::string number(double value) {
    if (!is_finite(value)) return "null";
    return fmt::format("{:.9g}", value);
  }

  LineFile file_;
};

}  // namespace pdp
