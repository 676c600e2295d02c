#pragma once

#include <fmt/format.h>

#include <string>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/print.hpp>

namespace pdp {

namespace detail {

/// A number with four digits after the point, or "nan" or "inf".
inline std::string decimal(double value) { return is_finite(value) ? fmt::format("{:.4f}", value) : text(value); }

}  // namespace detail

/// "### Epoch 0 || loss 0.5123 || performance 0.8456".
template <comm::Group C>
void print_epoch(const C& world, const Epoch& epoch) {
  print(world, "### Epoch {} || loss {} || performance {}", epoch.number, detail::decimal(epoch.loss), detail::decimal(epoch.accuracy));
}

}  // namespace pdp
