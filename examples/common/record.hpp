#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <pdp/train/log.hpp>

#include "flags.hpp"

namespace examples {

/// The files that --log and --losses ask for. Rank 0 writes them; the others write nothing.
class Record {
 public:
  Record(const Flags& flags, int rank);
  /// --losses alone.
  Record(const std::string& losses, int rank);

  /// Whether an epoch's line wants the test accuracy: the same on every rank.
  [[nodiscard]] bool wants_epochs() const { return wants_epochs_; }
  void epoch(const pdp::Epoch& epoch, double test_accuracy);
  void step(std::int64_t step, double loss);
  /// Ends the files. Throws pdp::FileError if a line is lost.
  void close();

 private:
  bool wants_epochs_;
  std::optional<pdp::EpochLog> log_;
  std::optional<pdp::LineFile> losses_;
};

}  // namespace examples
