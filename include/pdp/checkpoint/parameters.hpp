#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>

namespace pdp::engine {
class Contributions;
}  // namespace pdp::engine

namespace pdp::checkpoint {

/// A parameter as files hold it: with its full name, in PyTorch's layout.
struct Tensor {
  std::string name;
  std::vector<Index> shape;
  std::vector<float> values;
  std::string other_type = {};  // the element type if it is not float32; `values` is empty then, as they were not read
};

/// Returns the tensor of a parameter, with all values 0. For a part of a parameter, returns the tensor of the whole.
[[nodiscard]] Tensor tensor_of(const nn::Parameter& parameter);

/// Copies the values (float or double) of a parameter, or of a part of it, from their order in memory into the tensor's PyTorch layout.
template <class T>
void put(Tensor& tensor, const nn::Parameter& parameter, std::span<const T> values);

namespace detail {

/// Checks tensors that are to become a model's parameters, and gives access to their values.
class Import {
 public:
  /// `source` names the origin of the tensors in messages. It and the tensors must outlive this object. Throws FileError if a name occurs
  /// twice.
  Import(const std::vector<Tensor>& tensors, std::string_view source);
  ~Import();

  /// Throws FileError unless there is a float32 tensor for this parameter and it has the right shape.
  void check(const nn::Parameter& parameter);
  /// Throws FileError if there are float32 tensors of other names. Call it after check() of all parameters of the model.
  void check_rest() const;

  /// Returns `count` values of a parameter, in their order in memory, from `first` on.
  template <class T>
  [[nodiscard]] std::vector<T> values(const nn::Parameter& parameter, Index first, std::size_t count) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// Returns the parameters that this rank holds, in the order of the model. Throws ConfigError if it holds only slices or parts of them.
template <class D, class T>
[[nodiscard]] std::vector<Tensor> export_parameters(nn::StageParameters<D, T>& stage) {
  using Master = Accumulated<T>;
  if (!stage.keeps_whole_units()) throw ConfigError{"this rank holds only slices of the parameters; Trainer::parameters() gathers them"};
  std::vector<Tensor> tensors;
  stage.for_each_master([&](const nn::Parameter& parameter, std::span<Master> values) {
    if (parameter.is_copy) return;
    if (parameter.is_divided()) throw ConfigError{"this rank holds only parts of the parameters; Trainer::parameters() gathers them"};
    const auto& read = on_host(stage.device(), std::span<const Master>{values});
    put(tensors.emplace_back(tensor_of(parameter)), parameter, std::span<const Master>{read});
  });
  return tensors;
}

/// Returns all parameters of a model, in its order. Assembles them from `all`, the values that engine::collect has gathered from the ranks.
/// `from` describes these values.
template <class T>
[[nodiscard]] std::vector<Tensor> export_parameters(const std::vector<nn::LayerParameter>& model, const engine::Contributions& from,
                                                    const std::vector<T>& all);

/// Returns a hash of tensors, independent of their order. It is the same on every processor.
[[nodiscard]] std::int64_t hash_of(const std::vector<Tensor>& tensors);

/// Returns a shape for messages, such as "[64, 784]".
std::string shape_text(const std::vector<Index>& shape);

/// Sets the parameters that this rank keeps. `source` names the origin of the tensors in messages.
///
/// Throws FileError, and changes nothing, unless the tensors are exactly the parameters of the model. Further tensors that are not float32,
/// such as counters and masks, are ignored: pdp has no such parameters.
template <class D, class T>
void import_parameters(nn::StageParameters<D, T>& stage, const std::vector<Tensor>& tensors, std::string_view source) {
  detail::Import imported{tensors, source};
  for (const nn::LayerParameter& each : stage.of_model()) imported.check(each.parameter);
  imported.check_rest();
  stage.for_each_kept([&]<class E>(const nn::Parameter& parameter, Index first, std::span<E> values) {
    const std::vector<E> kept = imported.template values<E>(parameter, first, values.size());
    upload(stage.device(), std::span<const E>{kept}, values.data());
  });
}

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/parameters.hpp>
#endif
