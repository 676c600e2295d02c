#pragma once

/// Definitions for pdp/train/epoch.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/train/epoch.hpp>

namespace pdp {

namespace detail {

[[noreturn]] PDP_INLINE void refuse_name(std::string_view name, const std::vector<std::string>& known) {
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  throw ConfigError{text("there is no result '", name, "'; there are: ", names.empty() ? "none" : names)};
}

}  // namespace detail

PDP_INLINE const metric::Result& Evaluation::metric(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, &metric::Result::name);
  if (found != metrics.end()) return *found;
  std::vector<std::string> known;
  for (const metric::Result& each : metrics) known.push_back(each.name);
  detail::refuse_name(name, known);
}

PDP_INLINE double Epoch::value(std::string_view name) const {
  std::vector<std::string> known{"loss", "accuracy"};
  if (name == known[0]) return loss;
  if (name == known[1]) return accuracy;
  if (validation) {
    if (name == "validation loss") return validation->mean_loss();
    if (name == "validation accuracy") return validation->accuracy();
    known.insert(known.end(), {"validation loss", "validation accuracy"});
    for (const metric::Result& each : validation->metrics) {
      if (each.name == name) return each.value();
      known.push_back(each.name);
    }
  }
  detail::refuse_name(name, known);
}

PDP_INLINE bool Epoch::higher_is_better(std::string_view name) const {
  if (name == "accuracy" || name == "validation accuracy") return true;
  if (validation)
    for (const metric::Result& each : validation->metrics)
      if (each.name == name) return each.higher_is_better;
  return false;
}

}  // namespace pdp
