#pragma once

#include <string>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/print.hpp>

namespace pdp {

namespace detail {

/// Returns a number with four digits after the decimal point, or "nan" or "inf".
[[nodiscard]] std::string decimal(double value);

/// Returns the line of an epoch, such as "### Epoch 0 || loss 0.5123 || performance 0.8456".
[[nodiscard]] std::string epoch_line(const Epoch& epoch);

}  // namespace detail

/// Prints the results of an epoch on standard output, on rank 0 only. Throws FileError if they cannot be written.
template <comm::Group C>
void print_epoch(const C& world, const Epoch& epoch) {
  if (world.rank() == 0) detail::print_line(detail::epoch_line(epoch));
}

}  // namespace pdp

#ifndef PDP_SEPARATE_CORE
#include <pdp/train/source/print_epoch.hpp>
#endif
