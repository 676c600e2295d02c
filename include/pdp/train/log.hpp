#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <pdp/core/separate_compilation.hpp>

namespace pdp {

/// A text file that is written line by line, for logs. Each line is passed to the system before the next one comes, and a line that cannot
/// be written throws FileError. Programs that this one starts do not inherit the file.
class LineFile {
 public:
  /// Replaces what is there. Throws FileError if that fails, or if `path` is a pipe that nothing reads.
  explicit LineFile(std::string path);

  /// Throws FileError after close().
  void line(const std::string& words);

  /// Ends the file. Throws FileError if a line is lost: network file systems report a full disk only here. The destructor closes the file,
  /// too, but reports nothing.
  void close();

 private:
  [[nodiscard]] int open(int more) const;
  [[noreturn]] void fail(const char* what) const;

  struct Close {
    void operator()(std::FILE* file) const;
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
  explicit EpochLog(std::string path);

  void write(const Epoch& epoch, double test_accuracy);
  /// As LineFile::close().
  void close() { file_.close(); }

 private:
  LineFile file_;
};

/// A log of the loss of each step, as CSV: a line step,loss that names the columns, then one line per step, in nine digits. Numbers have a
/// dot in every locale.
class LossLog {
 public:
  /// Replaces what is there. Throws FileError.
  explicit LossLog(std::string path);

  void write(std::int64_t step, double loss);
  /// As LineFile::close().
  void close() { file_.close(); }

 private:
  LineFile file_;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/log.hpp>
#endif
