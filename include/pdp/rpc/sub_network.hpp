#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/loss/loss.hpp>
#include <pdp/nn/block.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/placement.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/optimizer.hpp>
#include <pdp/rpc/call/functions.hpp>
#include <pdp/rpc/network/optimizer_state.hpp>
#include <pdp/rpc/network/parts.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

struct NetworkOptions {
  std::uint64_t seed = 0;
  /// The position of the network in a larger model, if it is a part of one: 0 for the encoder in nn::Sequential{encoder, decoder}, and 1
  /// for the decoder. The parameters then have the names, and so the initial values, that they have in the larger model. -1: the network is
  /// the whole model.
  int position = -1;
  /// The number of devices over which the layers are divided, by their cost. Each is a thread of the host.
  int devices = 1;
  /// The number of values of a sample. 0: the number that the first layer takes.
  Index inputs = 0;
};

/// A model with its parameters, on the rank that constructs it: a remote object. A Context calls it, records the calls and runs their
/// backward passes. A DistributedOptimizer updates its parameters. The mathematics is that of nn::Stage. Elements are floats.
///
/// Construct it remotely by Node::remote<SubNetworkOf<make_model>>(), or from a derived class whose constructor makes the model. Methods
/// that take a CallId or a request are for Context and DistributedOptimizer.
template <nn::Block Model, class D = cpu::Cpu>
class SubNetwork {
  static_assert(!nn::any_is_placed<nn::LeafTypes<Model>>,
                "pdp: layers that are divided over a tensor-parallel group cannot be in a SubNetwork, which computes on one rank");
  static_assert(Device<D, float>, "pdp: the device lacks one of the operations of core/device.hpp for floats");

 public:
  explicit SubNetwork(const Model& model, const NetworkOptions& options = {}) requires(D::uses_host_memory)
      : SubNetwork{model, options, std::vector<D>(check_devices(options.devices))} {}
  /// Divides the layers over these devices of this host. Ignores options.devices. Throws ConfigError if an option is out of range.
  SubNetwork(const Model& model, const NetworkOptions& options, const std::vector<D>& devices)
      : parts_{model, Shape{inputs_of(model, options)}, options.position < 0 ? nn::Path{} : nn::Path{}.child(options.position),
               options.seed, devices} {}

  /// Returns the output for rows of input. Records nothing.
  [[nodiscard]] OwnedMatrix predict(const OwnedMatrix& x) {
    check_input(x);
    Tensors tensors = parts_.forward(x.matrix(), false);
    OwnedMatrix y = parts_.output(tensors);
    parts_.give_back(tensors);
    return y;
  }

  /// Computes the output for rows of input, and keeps what the backward pass needs.
  OwnedMatrix forward(const CallId& id, OwnedMatrix x) {
    return recording(id, [&] {
      check_input(x);
      Call call{.x = std::move(x)};
      call.tensors = parts_.forward(call.x.matrix(), true);
      OwnedMatrix y = parts_.output(call.tensors);
      contexts_[id.context].calls[id.number] = std::move(call);
      return y;
    });
  }
  /// Computes a loss of `y`, the output of a call, and its gradient, which it keeps under the number of the loss. `divisor`: the
  /// number by which the sum over the rows is divided for the mean. Returns the sums over the rows of the call.
  template <class L>
  LossSums loss(const CallId& id, const OwnedMatrix& y, const L& loss, int number, const std::vector<typename L::Target>& targets,
                double divisor);
  /// Keeps a gradient of the output of a call, to be added to the others.
  void add_gradient(const CallId& id, const OwnedMatrix& gradient);
  /// Runs the backward pass of a call, which ends it. `gradient`: the last gradient of its output to be added, or no rows. Adds the
  /// gradients of the parameters to those of the context. Returns the gradient of the input, or no rows if it is not needed. Throws Error
  /// unless all gradients of the output that the request names are here.
  OwnedMatrix backward(const BackwardRequest& request, const OwnedMatrix& gradient);

  /// Checks that this network has the whole gradient of a context. Returns `before` plus the square of the gradient, if that is to be
  /// measured. An optimizer passes the result on to all networks, so that either all of them make the step or none.
  double prepare_step(const StepPreparation& step, double before);
  /// Updates the parameters with the gradient of a context. `square`: the squared norm of the gradient over all networks.
  template <optim::Optimizer Rule>
  void step(const StepRequest& request, const Rule& rule, double square) {
    auto& states = optimizers_[request.optimizer];
    for (std::size_t p = states.size(); p < parts_.size(); ++p) {
      const std::size_t elements = optim::needed_state_fields(rule) * parts_[p].stage().own_masters(0).size();
      states.push_back(std::make_unique<OptimizerState<D>>(parts_[p].device(), as_index(elements)));
    }
    Gradients& gradients = contexts_.at(request.context).gradients;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      parts_.on_thread(p, [&] {
        const float* const gradient = gradients[p].data();
        states[p]->apply(parts_[p].device(), rule, request, square, parts_[p].stage().own_masters(0), {&gradient, 1});
      });
    }
  }
  /// Frees the state of an optimizer.
  void end_optimizer(SlotId optimizer) { optimizers_.erase(optimizer); }
  /// Frees the calls and gradients of a context.
  void end_context(SlotId context) {
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    for (auto& [number, call] : found->second.calls) parts_.give_back(call.tensors);
    if (!found->second.gradients.empty()) free_gradients_.push_back(std::move(found->second.gradients));
    contexts_.erase(found);
  }
  /// Returns the number of contexts whose calls or gradients this network keeps.
  [[nodiscard]] int contexts() const { return as_int(contexts_.size()); }

  /// Returns all parameters, in the order of the model.
  [[nodiscard]] std::vector<checkpoint::Tensor> parameters() {
    std::vector<checkpoint::Tensor> all;
    for (const auto& part : parts_)
      for (checkpoint::Tensor& tensor : checkpoint::export_parameters(part->stage())) all.push_back(std::move(tensor));
    return all;
  }
  /// Sets all parameters from the tensors with their names. Other tensors may be parameters of other networks. Returns the names of its
  /// own. Throws FileError, and changes nothing, if a tensor is missing or has another shape.
  std::vector<std::string> set_parameters(const std::vector<checkpoint::Tensor>& tensors) {
    std::vector<std::string> names;
    std::vector<checkpoint::Tensor> own;
    for (const nn::LayerParameter& each : parts_.front().stage().of_model()) names.push_back(each.parameter.full_name());
    for (const checkpoint::Tensor& tensor : tensors)
      if (std::ranges::find(names, tensor.name) != names.end()) own.push_back(tensor);
    for (const auto& part : parts_) checkpoint::import_parameters(part->stage(), own, "the given parameters");
    return names;
  }

 private:
  using Parts = NetworkParts<Model, D>;
  using Tensors = typename Parts::Tensors;
  using Gradients = typename Parts::Gradients;
  /// A gradient of the output of a call. The first one is in the tensors of the call, others have memory of their own.
  struct OutputGradient {
    int loss;  // -1: of a call that has taken the output, or of the caller
    DeviceMemory<D, float> memory{};
  };
  struct Call {
    OwnedMatrix x{};
    Tensors tensors{};
    std::vector<OutputGradient> gradients{};
  };
  struct Recorded {
    std::map<int, Call> calls;
    Gradients gradients;
    int backward_calls = 0;
    std::string failure;  // the first one
  };

  static std::size_t check_devices(int devices) {
    if (devices < 1) throw ConfigError{text("a network was given ", devices, " devices; it needs at least 1")};
    return as_size(devices);
  }
  static Index inputs_of(const Model& model, const NetworkOptions& options) {
    const Index inputs = options.inputs != 0 ? options.inputs : nn::input_elements(model);
    if (inputs <= 0)
      throw ConfigError{"the first layer of the network takes any number of values, so NetworkOptions::inputs must say how many there are"};
    return inputs;
  }
  void check_input(const OwnedMatrix& x) { x.check("the input of the network", parts_.front().in_width()); }

  /// Returns run(), and keeps the text of an error for prepare_step().
  template <class F>
  auto recording(const CallId& id, const F& run) {
    try {
      return run();
    } catch (const std::exception& error) {
      if (std::string& failure = contexts_[id.context].failure; failure.empty()) failure = error.what();
      throw;
    }
  }
  Call& find(const CallId& id) {
    const auto context = contexts_.find(id.context);
    if (context != contexts_.end())
      if (const auto call = context->second.calls.find(id.number); call != context->second.calls.end()) return call->second;
    throw Error{text("forward call ", id.number, " of this network has failed, or its backward pass or its context has ended")};
  }
  /// Calls compute(matrix) on the device of the output to compute a gradient of a call's output.
  template <class F>
  void keep_gradient(Call& call, int loss, const F& compute) {
    OutputGradient gradient{.loss = loss};
    parts_.on_thread(parts_.size() - 1, [&] {
      Matrix<float> to = parts_.back().output_gradient(*call.tensors.back());
      if (!call.gradients.empty()) {
        gradient.memory = allocate<float>(parts_.back().device(), to.size());
        to.data = gradient.memory.data();
      }
      compute(to);
    });
    call.gradients.push_back(std::move(gradient));
  }
  void keep_gradient(Call& call, const OwnedMatrix& gradient);
  /// Makes the sum of the gradients that a request names the gradient of the output.
  void add_up(Call& call, const BackwardRequest& request);
  [[noreturn]] void throw_non_finite(Gradients& gradients);

  Parts parts_;
  std::unordered_map<SlotId, Recorded> contexts_;
  std::unordered_map<SlotId, std::vector<std::unique_ptr<OptimizerState<D>>>> optimizers_;
  std::vector<Gradients> free_gradients_;
};

/// A SubNetwork whose model a function of the program returns. Its constructor takes the options, then the arguments of the function.
template <auto MakeModel>
class SubNetworkOf : public SubNetwork<typename detail::FunctionOf<decltype(MakeModel)>::Returned> {
 public:
  using Model = typename detail::FunctionOf<decltype(MakeModel)>::Returned;

  template <class... A>
  requires std::is_invocable_v<decltype(MakeModel), A...>
  explicit SubNetworkOf(const NetworkOptions& options, A&&... arguments)
      : SubNetwork<Model>{MakeModel(std::forward<A>(arguments)...), options} {}
};

}  // namespace pdp::rpc

#include <pdp/rpc/network/sub_network_passes.hpp>
