#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pdp/core/separate_compilation.hpp>

namespace pdp::optim {

/// The options of ReduceOnPlateau. The defaults are those of PyTorch's ReduceLROnPlateau.
struct ReduceOnPlateauOptions {
  float by = 0.1f;              // the factor is multiplied by this, 0 to 1
  std::int64_t patience = 10;   // measurements without an improvement that change nothing; the next one reduces the factor
  double threshold = 1e-4;      // the least improvement that counts
  bool is_relative = true;      // whether `threshold` is a part of the best value so far
  std::int64_t cooldown = 0;    // measurements after a reduction that count as improvements
  float least = 0;              // the factor falls no further than this, 0 to 1
  bool prefers_larger = false;  // whether larger values are better, as of an accuracy
};

/// A factor of the learning rate that falls when a measured value, such as the loss on validation data, no longer improves. A schedule
/// cannot do that, since its factors follow from the step alone. A value that is not finite is no improvement.
///
///   trainer.fit(train, {.epochs = 20}, [&](const pdp::Epoch&) {
///     trainer.set_learning_rate_factor(plateau.factor_after(trainer.evaluate(test).mean_loss()));
///   });
///
/// All ranks give equal values, as those that evaluate() returns. A training that resumes also needs the state, which fits into
/// trainer.values().
class ReduceOnPlateau {
 public:
  /// Throws ConfigError if an option is out of range.
  explicit ReduceOnPlateau(const ReduceOnPlateauOptions& options = {});

  /// Takes the next measured value. Returns the factor for the steps after it.
  double factor_after(double value);
  /// Returns the factor; 1 at first.
  [[nodiscard]] double factor() const { return factor_; }

  /// Returns the state as a text without options.
  [[nodiscard]] std::string state() const;
  /// Sets the state. Throws ConfigError, and changes nothing, if the text is none that state() has returned.
  void set_state(std::string_view text);

 private:
  [[nodiscard]] bool improves(double value) const;

  ReduceOnPlateauOptions options_;
  double factor_ = 1;
  double best_ = 0;
  bool has_best_ = false;
  std::int64_t waited_ = 0;   // measurements since the last improvement
  std::int64_t resting_ = 0;  // measurements of the cooldown that are left
};

}  // namespace pdp::optim

#ifndef PDP_SEPARATE_CORE
#include <pdp/optim/source/reduce_on_plateau.hpp>
#endif
