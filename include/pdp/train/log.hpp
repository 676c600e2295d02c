#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/epoch.hpp>

namespace pdp {

/// A text file for logs, written line by line. Each line is passed to the system at once. Throws FileError if a line cannot be written.
/// Child processes do not inherit the file.
class LineFile {
 public:
  /// Replaces an existing file. Throws FileError if that fails, or if `path` is a pipe without a reader.
  explicit LineFile(std::string path);

  /// Writes a line. Throws FileError if that fails, or after close().
  void line(const std::string& words);

  /// Closes the file. Throws FileError if a line is lost: network file systems report a full disk only here. The destructor closes the
  /// file, too, but reports nothing.
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

/// A log with one JSON object per epoch, each on its own line: epoch, loss, accuracy, test_accuracy, seconds. A number that is not finite
/// is written as null. Numbers have a decimal point in every locale.
class EpochLog {
 public:
  /// Replaces an existing file. Throws FileError if that fails.
  explicit EpochLog(std::string path);

  void write(const Epoch& epoch, double test_accuracy);
  /// See LineFile::close().
  void close() { file_.close(); }

 private:
  LineFile file_;
};

/// A log of the loss of each step, as CSV: the header `step,loss`, then one line per step. A loss has nine significant digits. Numbers have
/// a decimal point in every locale.
class LossLog {
 public:
  /// Replaces an existing file. Throws FileError if that fails.
  explicit LossLog(std::string path);

  void write(std::int64_t step, double loss);
  /// See LineFile::close().
  void close() { file_.close(); }

 private:
  LineFile file_;
};

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/log.hpp>
#endif
