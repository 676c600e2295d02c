#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/converted.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/engine/boundary_memory.hpp>
#include <pdp/inference/options.hpp>
#include <pdp/inference/workspaces.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/layer_requirements.hpp>
#include <pdp/nn/layout.hpp>
#include <pdp/nn/outline.hpp>
#include <pdp/nn/stage.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/plan/plan.hpp>

namespace pdp {

/// A model with parameters, which computes outputs on a CPU. It has no optimizer, no gradients and no communicator.
///
/// Several threads may call predict() at the same time: PredictorOptions::callers of them compute, and others wait for one of these. The
/// constructor allocates all memory, so predict() on spans allocates none. Only oneDNN does, if pdp::onednn is linked. A Predictor may be
/// moved while no thread calls it. A moved-from one may only be destroyed.
///
/// The outputs are bitwise those of Trainer::predict() on a CPU in the same element type if the parameters, PredictorOptions::rows and the
/// number of threads are those of the trainer (see predictor_of) and its strategy does not divide layers. Otherwise they differ by
/// rounding.
template <class Model, std::floating_point T = float>
class Predictor {
  static_assert(
      nn::Block<Model>,
      "pdp: the first argument of Predictor must be a model: a layer, or a container of layers such as nn::Sequential; of a task, "
      "give task.model");
  static_assert(nn::detail::are_layers_on<cpu::Cpu, T>(nn::LeafTypes<Model>{}),
                "pdp: a layer of this model does not compute on a CPU with elements of this type");
  using Workspace = engine::BoundaryMemory<cpu::Cpu, T>;

 public:
  using Stage = nn::Stage<nn::LeafTypes<Model>, cpu::Cpu, T>;
  using Sample = nn::SampleOf<Model, T>;                           // element type of a sample
  using Samples = typename pdp::detail::Converted<Sample>::Given;  // a NumberView, or for a model of tokens a span of std::int32_t

  /// Takes parameters as Trainer::parameters() returns them, or as checkpoint::load() reads them from a safetensors file. `source` names
  /// their origin in messages. Throws FileError if they do not fit the model, ShapeError if its layers do not fit together, and ConfigError
  /// if an option is out of range.
  Predictor(const Model& model, const std::vector<checkpoint::Tensor>& parameters, std::string_view source,
            const PredictorOptions& options = {})
      : Predictor{model, [&](Stage& stage) { checkpoint::import_parameters(stage, parameters, source); }, options} {}

  /// Reads the parameters of a checkpoint, or of the newest one in a folder. Any number of ranks, with any strategy, may have saved it.
  /// Throws FileError if there is none, if it is damaged, or if it is one of another model or precision, and as above.
  Predictor(const Model& model, const std::filesystem::path& checkpoint, const PredictorOptions& options = {})
      : Predictor{model, [&](Stage& stage) { checkpoint::read_parameters(stage, checkpoint); }, options} {}

  /// Calls set_parameters(stage), which sets all parameters of a stage.
  template <std::invocable<Stage&> Set>
  Predictor(const Model& model, const Set& set_parameters, const PredictorOptions& options = {})
      : state_{std::make_unique<State>(model, detail::checked(options))} {
    set_parameters(state_->stage);
  }

  /// Return the number of values of a sample, and of its output.
  [[nodiscard]] Index input_elements() const { return state_->stage.outline().width(0); }
  [[nodiscard]] Index output_elements() const { return state_->stage.outline().output_width(); }
  /// Returns the number of rows that are computed at a time.
  [[nodiscard]] Index rows() const { return state_->rows; }

  /// Computes the model's outputs for any number of rows: [rows, in] -> [rows, out]. `in` and `out` must not overlap. Throws ShapeError if
  /// their sizes do not fit, and TokenError if a token is none of the model's.
  void predict(std::span<const Sample> in, std::span<T> out) const {
    const Stage& stage = state_->stage;
    const Index inputs = input_elements(), outputs = output_elements(), count = detail::predicted_rows(in.size(), inputs);
    detail::check_outputs(out.size(), count, outputs);
    if (count == 0) return;
    if constexpr (std::same_as<Sample, std::int32_t>) stage.check_tokens({in.data(), count, inputs});
    const typename detail::Workspaces<Workspace>::Taken own{state_->workspaces};
    for (Index first = 0; first < count; first += state_->rows) {
      own->cut(Matrix<const Sample>{in.data() + first * inputs, std::min(state_->rows, count - first), inputs}, false);
      stage.forward(own->evaluation(), 0, stage.outline().size());
      const std::span<const T> found = stage.activation(own->evaluation(), stage.outline().size()).values();
      std::ranges::copy(found, out.begin() + first * outputs);
    }
  }
  /// Does the same, and returns the outputs. Takes floats or doubles, or the tokens of a model of tokens.
  [[nodiscard]] std::vector<T> predict(Samples in) const {
    std::vector<T> out(as_size(detail::predicted_rows(in.size(), input_elements()) * output_elements()));
    detail::Converted<Sample> converted{0};
    predict(converted(in), out);
    return out;
  }

 private:
  /// Lies in memory of its own, so that its parts may refer to each other while the Predictor moves.
  struct State {
    Index rows;
    Stage stage;
    detail::Workspaces<Workspace> workspaces;

    State(const Model& model, const PredictorOptions& options)
        : rows{options.rows}, stage{stage_of(model, options)}, workspaces{options.callers, [&] {
                                                                            return std::make_unique<Workspace>(stage.device(),
                                                                                                               forward_of(stage.outline()),
                                                                                                               stage.outline(), rows);
                                                                          }} {}
  };

  [[nodiscard]] static Stage stage_of(const Model& model, const PredictorOptions& options) {
    const cpu::Cpu device{.threads = options.threads};
    cpu::check(device);
    const Shape input = detail::sample_shape(options, nn::input_elements(model));
    const nn::Run whole{.last = nn::outline(model, input).size(), .has_gradients = false};
    return {model, input, {whole}, /*seed*/ 0, device};
  }
  /// Returns a plan whose evaluation computes all layers of a model.
  [[nodiscard]] static plan::Plan forward_of(const nn::Outline& model) {
    plan::check_layers(model);
    plan::Plan plan;
    plan.evaluate = {plan::compute(plan::Op::forward, 0, 0, model.size())};
    return plan;
  }

  std::unique_ptr<State> state_;
};

/// The type of a Predictor of a model, for a member of a class: PredictorFor<decltype(model)>.
template <class Model, std::floating_point T = float>
using PredictorFor = Predictor<std::remove_cvref_t<Model>, T>;

}  // namespace pdp
