#pragma once

#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc::autograd {

/// The output of a forward call that a Context has recorded. It stays at the owner of the network, and can be the input of other calls of
/// the same context.
template <class N>
class Output {
 public:
  Output(SlotId context, int call, Index rows, Remote<N> network, Remote<OwnedMatrix> values)
      : network_{std::move(network)}, values_{std::move(values)}, context_{context}, rows_{rows}, call_{call} {}

  /// Returns a copy of the values. Waits for them, and throws the error of the call.
  [[nodiscard]] OwnedMatrix to_here() const { return values_.to_here(); }
  /// Returns a reference to the values.
  [[nodiscard]] const Remote<OwnedMatrix>& values() const { return values_; }
  /// Returns the network that computes them.
  [[nodiscard]] const Remote<N>& network() const { return network_; }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] SlotId context() const { return context_; }
  /// Returns the number of the call in its context.
  [[nodiscard]] int call() const { return call_; }

 private:
  Remote<N> network_;
  Remote<OwnedMatrix> values_;
  SlotId context_;
  Index rows_;
  int call_;
};

/// A loss of an output, computed at the owner of the output. Move-only, as a Future.
class [[nodiscard]] Loss {
 public:
  /// `divisor`: that of the mean, see loss::divisor_of_rows.
  Loss(SlotId context, int call, int number, Index rows, double divisor, Future<LossSums> sums)
      : sums_{std::move(sums)}, context_{context}, rows_{rows}, divisor_{divisor}, call_{call}, number_{number} {}

  /// Returns the mean of the loss over its rows that count, by their weights if the loss weighs rows; 0 if there are none. Waits for it,
  /// and throws the error of its computation.
  double get() {
    const double sum = sums().loss;
    return divisor_ > 0 ? sum / divisor_ : 0;
  }
  /// Returns the sums over its rows.
  LossSums sums() {
    if (sums_) value_ = sums_.get();
    return value_;
  }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] SlotId context() const { return context_; }
  /// Returns the number of the call whose output this is a loss of.
  [[nodiscard]] int call() const { return call_; }
  /// Returns the number of this loss among those of its context.
  [[nodiscard]] int number() const { return number_; }

 private:
  Future<LossSums> sums_;
  LossSums value_{};
  SlotId context_;
  Index rows_;
  double divisor_;
  int call_, number_;
};

}  // namespace pdp::rpc::autograd
