#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/metric/metric.hpp>

namespace pdp::metric {

/// The value of a metric on a dataset.
struct Result {
  std::string name;
  std::vector<double> values;  // one number, or several such as the cells of a confusion matrix
  bool higher_is_better = false;

  /// Returns the number. Throws ConfigError if there are several.
  [[nodiscard]] double value() const {
    if (values.size() != 1) throw ConfigError{text("the metric ", name, " has ", values.size(), " numbers; read them from `values`")};
    return values.front();
  }
};

/// A metric of any type, so that a list can hold different ones. Evaluations call it, steps do not.
class Any {
 public:
  template <class M>
  requires(!std::same_as<std::remove_cvref_t<M>, Any>) Any(M metric) : metric_{std::make_shared<Holder<M>>(std::move(metric))} {
    static_assert(Metric<M>,
                  "pdp: a metric needs `name() const`, `Index state_size(Index outputs) const`, `void add(Matrix<const float> outputs, "
                  "std::span<const Target> targets, std::span<double> state) const` with Target std::int32_t or float, and `result("
                  "std::span<const double> state) const`, which returns double or std::vector<double>");
  }

  [[nodiscard]] std::string name() const { return metric_->name(); }
  [[nodiscard]] std::size_t state_size(Index outputs) const { return static_cast<std::size_t>(metric_->state_size(outputs)); }
  /// Throw ConfigError if the metric does not take targets of this type.
  void add(Matrix<const float> outputs, std::span<const std::int32_t> targets, std::span<double> state) const {
    metric_->add(outputs, targets, state);
  }
  void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const {
    metric_->add(outputs, targets, state);
  }
  void merge(std::span<double> state, std::span<const double> other) const { metric_->merge(state, other); }
  [[nodiscard]] Result result(std::span<const double> state) const { return metric_->result(state); }

 private:
  struct Interface {
    Interface() = default;
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;
    virtual ~Interface() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual Index state_size(Index outputs) const = 0;
    virtual void add(Matrix<const float> outputs, std::span<const std::int32_t> targets, std::span<double> state) const = 0;
    virtual void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const = 0;
    virtual void merge(std::span<double> state, std::span<const double> other) const = 0;
    [[nodiscard]] virtual Result result(std::span<const double> state) const = 0;
  };

  template <class M>
  class Holder final : public Interface {
   public:
    explicit Holder(M metric) : metric_{std::move(metric)} {}
    [[nodiscard]] std::string name() const override { return metric_.name(); }
    [[nodiscard]] Index state_size(Index outputs) const override { return metric_.state_size(outputs); }
    void add(Matrix<const float> outputs, std::span<const std::int32_t> targets, std::span<double> state) const override {
      if constexpr (Takes<M, std::int32_t>)
        metric_.add(outputs, targets, state);
      else
        refuse("vectors of numbers", "classes");
    }
    void add(Matrix<const float> outputs, std::span<const float> targets, std::span<double> state) const override {
      if constexpr (Takes<M, float>)
        metric_.add(outputs, targets, state);
      else
        refuse("classes", "vectors of numbers");
    }
    void merge(std::span<double> state, std::span<const double> other) const override {
      if constexpr (Merges<M>) {
        metric_.merge(state, other);
      } else {
        for (std::size_t i = 0; i < state.size(); ++i) state[i] += other[i];
      }
    }
    [[nodiscard]] Result result(std::span<const double> state) const override {
      Result found{.name = metric_.name(), .values = {}};
      if constexpr (std::convertible_to<decltype(metric_.result(state)), double>)
        found.values = {metric_.result(state)};
      else
        found.values = metric_.result(state);
      if constexpr (requires { M::higher_is_better; }) found.higher_is_better = M::higher_is_better;
      return found;
    }

   private:
    [[noreturn]] void refuse(const char* taken, const char* given) const {
      throw ConfigError{text("the metric ", metric_.name(), " takes targets that are ", taken, ", but those of the dataset are ", given)};
    }
    M metric_;
  };

  std::shared_ptr<const Interface> metric_;
};

}  // namespace pdp::metric
