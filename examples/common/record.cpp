#include "record.hpp"

#include <fmt/format.h>

namespace examples {

Record::Record(const Flags& flags, int rank) : Record{flags.losses, rank} {
  wants_epochs_ = !flags.log.empty();
  if (rank == 0 && wants_epochs_) log_.emplace(flags.log);
}

Record::Record(const std::string& losses, int rank) : wants_epochs_{false} {
  if (rank == 0 && !losses.empty()) losses_.emplace(losses).line("step,loss");
}

void Record::epoch(const pdp::Epoch& epoch, double test_accuracy) {
  if (log_) log_->write(epoch, test_accuracy);
}

void Record::step(std::int64_t step, double loss) {
  if (losses_) losses_->line(fmt::format("{},{:.9g}", step, loss));
}

void Record::close() {
  if (log_) log_->close();
  if (losses_) losses_->close();
}

}  // namespace examples
