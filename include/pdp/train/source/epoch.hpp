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

/// The evaluations of an epoch, with the words before the names of their results.
struct NamedEvaluation {
  const Evaluation* evaluation = nullptr;
  std::string of_totals, of_metrics;
};
[[nodiscard]] PDP_INLINE std::vector<NamedEvaluation> evaluations(const Epoch& epoch) {
  std::vector<NamedEvaluation> all;
  if (epoch.validation) all.push_back({&*epoch.validation, "validation ", ""});
  if (epoch.training) all.push_back({&*epoch.training, "training ", "training "});
  return all;
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
  for (const auto& [evaluation, of_totals, of_metrics] : detail::evaluations(*this)) {
    if (name == of_totals + "loss") return evaluation->mean_loss();
    if (name == of_totals + "accuracy") return evaluation->accuracy();
    known.insert(known.end(), {of_totals + "loss", of_totals + "accuracy"});
    for (const metric::Result& each : evaluation->metrics) {
      if (name == of_metrics + each.name) return each.value();
      known.push_back(of_metrics + each.name);
    }
  }
  detail::refuse_name(name, known);
}

PDP_INLINE bool Epoch::higher_is_better(std::string_view name) const {
  if (name == "accuracy" || name == "validation accuracy" || name == "training accuracy") return true;
  for (const auto& [evaluation, of_totals, of_metrics] : detail::evaluations(*this))
    for (const metric::Result& each : evaluation->metrics)
      if (name == of_metrics + each.name) return each.higher_is_better;
  return false;
}

}  // namespace pdp
