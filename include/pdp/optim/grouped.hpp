#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <pdp/core/shape.hpp>
#include <pdp/optim/optimizer.hpp>

namespace pdp::optim {

/// A parameter tensor as the predicate of a ParameterGroup sees it. Borrows its texts.
struct ParameterInfo {
  std::string_view name{};   // "1.0.weight", as in files
  std::string_view layer{};  // "1.0", the position of its layer; empty if the layer is the whole model
  std::string_view kind{};   // "weight"
  Index elements = 0;        // of the whole tensor
  bool is_vector = false;    // one dimension, as a bias and the parameters of a normalisation have
};

/// Some of a model's parameters, and how they are updated. If several groups choose a parameter, their factors multiply, and one of them
/// is enough to freeze it.
struct ParameterGroup {
  bool (*chooses)(const ParameterInfo&) = nullptr;  // depends on its argument alone
  float lr_factor = 1;                              // of the learning rate
  float decay_factor = 1;                           // of the weight decay
  bool is_frozen = false;  // the parameters keep their values, and their gradients do not count in the norm of the gradient
};

/// Exempts parameters with one dimension from weight decay.
inline constexpr ParameterGroup no_decay_on_biases_and_norms{.chooses = [](const ParameterInfo& of) { return of.is_vector; },
                                                             .decay_factor = 0};

/// The settings of one parameter.
struct ParameterSettings {
  float lr_factor = 1;
  float decay_factor = 1;
  bool is_frozen = false;
  friend constexpr bool operator==(const ParameterSettings&, const ParameterSettings&) = default;
};

namespace detail {

template <class Rule>
concept ScalesItself = requires(const Rule& rule) {
  { rule.scaled(1.0f, 1.0f) } -> std::same_as<Rule>;
};
template <class Rule>
concept HasRateAndDecay = requires(Rule& rule) {
  rule.lr *= 1.0f;
  rule.weight_decay *= 1.0f;
};

}  // namespace detail

/// Returns a rule with its learning rate and its weight decay multiplied by these factors: the result of its optional member
/// scaled(lr_factor, decay_factor), or a copy with other members lr and weight_decay.
template <Optimizer Rule>
requires(detail::ScalesItself<Rule> || detail::HasRateAndDecay<Rule>) constexpr Rule
    scaled(const Rule& rule, const ParameterSettings& settings) {
  if constexpr (detail::ScalesItself<Rule>) {
    return rule.scaled(settings.lr_factor, settings.decay_factor);
  } else {
    Rule other = rule;
    other.lr *= settings.lr_factor;
    other.weight_decay *= settings.decay_factor;
    return other;
  }
}

/// An optimizer with parameter groups. Parameters that no group chooses are updated as `Rule` says.
///
///   constexpr pdp::Task task{model, loss, optim::Grouped{optim::AdamW{.lr = 1e-3f}, optim::no_decay_on_biases_and_norms}};
///
/// It is its rule, with groups. A trainer updates parameters with equal settings that lie side by side in one pass.
template <class Rule, std::size_t count>
struct Grouped : Rule {
  static_assert(Optimizer<Rule>, "pdp: the first argument of optim::Grouped must be an optimizer (see optim/optimizer.hpp)");
  static_assert(detail::ScalesItself<Rule> || detail::HasRateAndDecay<Rule>,
                "pdp: parameter groups need an optimizer with the members `float lr` and `float weight_decay`, or with the function "
                "`Rule scaled(float lr_factor, float decay_factor) const`");

  std::array<ParameterGroup, count> groups{};

  template <std::same_as<ParameterGroup>... G>
  requires(sizeof...(G) == count) explicit constexpr Grouped(const Rule& optimizer, const G&... all) : Rule{optimizer}, groups{all...} {}
};
template <class Rule, class... G>
Grouped(const Rule&, const G&...) -> Grouped<Rule, sizeof...(G)>;

namespace detail {

template <class O>
struct RuleOf {
  using type = O;
};
template <class Rule, std::size_t count>
struct RuleOf<Grouped<Rule, count>> {
  using type = Rule;
};

}  // namespace detail

/// The rule of an optimizer, without its parameter groups if it has some.
template <class O>
using RuleOf = typename detail::RuleOf<O>::type;

template <class O>
inline constexpr bool has_groups = !std::same_as<RuleOf<O>, O>;

}  // namespace pdp::optim
