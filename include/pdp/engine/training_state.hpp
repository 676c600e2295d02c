#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/averages.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/engine/in_flight.hpp>
#include <pdp/engine/optimizer_state.hpp>
#include <pdp/engine/owned_range.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp::engine {

/// Elements of a parameter, or of the optimizer's state for it, in the memory of a rank's device. Borrows them and the parameter.
template <class E>
struct StatePart {
  const nn::Parameter* parameter = nullptr;
  Index first = 0;  // number of the first element in the parameter
  int field = -1;   // -1: the elements themselves; else the number of a value of the optimizer's state
  std::span<E> values;
};

/// The state of a training on a rank, as checkpoints need it. It depends on no type of the model, the loss or the optimizer. Borrows the
/// engine. The functions that read or set the state first wait for the device.
template <comm::Communicator C, class D, class T>
class TrainingState {
 public:
  using Gradient = Accumulated<T>;
  using Parts = std::vector<StatePart<Gradient>>;

  /// The members of an engine to which this refers. name_of_field(i) returns the name of field i of the optimizer's state in files.
  TrainingState(const plan::Plan& plan, const Groups<C>& groups, InFlight<C, D>& in_flight, const Averages<D, T>& averages,
                nn::StageParameters<D, T>& stage, OptimizerState<D, T>& optimizer, std::string (*name_of_field)(int),
                GradientNorm<D, T>& norm, std::int64_t& steps);

  [[nodiscard]] nn::StageParameters<D, T>& stage() const { return stage_; }
  [[nodiscard]] const D& device() const { return stage_.device(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

  /// Returns what gradients have been before: whether they were finite, and their scale. Throws ConfigError if averages are in place of the
  /// parameters.
  [[nodiscard]] StepHistory history() const {
    averages_.check_unused("a checkpoint");
    in_flight_.synchronise();
    return norm_.history(device());
  }
  void set_history(std::int64_t steps, const StepHistory& history) const {
    in_flight_.synchronise();
    steps_ = steps;
    norm_.set_history(device(), history);
  }
  /// Returns the part of the state that this rank updates, in the order of the model. Throws as history() does.
  [[nodiscard]] Parts updated() const {
    averages_.check_unused("a checkpoint");
    return parts([](const nn::SlicePart& part) { return std::pair{Index{0}, part.elements}; });
  }
  /// Returns the part of that state that this rank saves: over all ranks, each element once. Ranks that update the same elements divide
  /// them evenly.
  [[nodiscard]] Parts owned() const {
    return parts([this](const nn::SlicePart& part) { return owned_range(groups_, plan_, part.unit, *part.parameter, part.elements); });
  }

 private:
  /// range(part): returns the begin and the end of the elements to return.
  template <class Range>
  [[nodiscard]] Parts parts(const Range& range) const {
    in_flight_.synchronise();
    Parts all;
    for (const nn::SlicePart& part : stage_.slice_parts()) {
      const auto [begin, end] = range(part);
      if (begin >= end) continue;
      const auto take = [&, begin = begin, end = end](int field, std::span<Gradient> values) {
        all.push_back({part.parameter, part.first + begin, field, values.subspan(as_size(begin), as_size(end - begin))});
      };
      take(-1, stage_.own_masters(part.unit).subspan(as_size(part.at), as_size(part.elements)));
      for (std::size_t field = 0; field < optimizer_.fields(); ++field)
        take(as_int(field), optimizer_.values(part.unit, field, part.at, part.elements));
    }
    return all;
  }

  const plan::Plan& plan_;
  const Groups<C>& groups_;
  InFlight<C, D>& in_flight_;
  const Averages<D, T>& averages_;
  nn::StageParameters<D, T>& stage_;
  OptimizerState<D, T>& optimizer_;
  std::vector<std::string> names_;
  GradientNorm<D, T>& norm_;
  std::int64_t& steps_;
};

template <comm::Communicator C, class D, class T>
TrainingState<C, D, T>::TrainingState(const plan::Plan& plan, const Groups<C>& groups, InFlight<C, D>& in_flight,
                                      const Averages<D, T>& averages, nn::StageParameters<D, T>& stage, OptimizerState<D, T>& optimizer,
                                      std::string (*name_of_field)(int), GradientNorm<D, T>& norm, std::int64_t& steps)
    : plan_{plan},
      groups_{groups},
      in_flight_{in_flight},
      averages_{averages},
      stage_{stage},
      optimizer_{optimizer},
      norm_{norm},
      steps_{steps} {
  for (std::size_t field = 0; field < optimizer.fields(); ++field) names_.push_back(name_of_field(as_int(field)));
}

}  // namespace pdp::engine
