#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <pdp/train/timeline.hpp>

#include "parameters.hpp"

namespace examples {

/// The file that --timeline asks for: the fifth step as it ran, or the last one where there are fewer. All ranks make the same calls.
template <class Trainer>
class TimelineFile {
 public:
  TimelineFile(Trainer& trainer, std::string file, int rank) : trainer_{trainer}, file_{std::move(file)}, rank_{rank} {
    if (file_.empty()) return;
    if (rank_ == 0) check_writable(file_);
    trainer_.trace(true);
  }
  void step(std::int64_t number) {
    if (number == 4 && !file_.empty()) trainer_.trace(false);
  }
  void write() {
    if (file_.empty()) return;
    const pdp::engine::Timeline timeline = trainer_.timeline();
    if (rank_ == 0) pdp::write_timeline(file_, timeline);
  }

 private:
  Trainer& trainer_;
  std::string file_;
  int rank_;
};

}  // namespace examples
