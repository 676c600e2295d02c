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

/// A parameter as files hold it: by its full name, in PyTorch's layout.
struct Tensor {
  std::string name;
  std::vector<Index> shape;
  std::vector<float> values;
  std::string other_type = {};  // of a tensor whose elements are not float32 and were not read: their type; `values` is empty then
};

/// The tensor of a parameter, or of the whole that it is a part of, without its values.
[[nodiscard]] Tensor tensor_of(const nn::Parameter& parameter);

/// Puts values (floats or doubles) that are given as they lie in memory to where files hold them.
template <class T>
void put(Tensor& tensor, const nn::Parameter& parameter, std::span<const T> values);

namespace detail {

/// Tensors from elsewhere that become a model's parameters.
class Import {
 public:
  /// `source`: where the tensors come from, for messages. It and the tensors must outlive this.
  Import(const std::vector<Tensor>& tensors, std::string_view source);
  ~Import();

  /// Throws FileError unless the tensor of this parameter is there, and fits.
  void check(const nn::Parameter& parameter);
  /// After the check of all parameters of the model. Throws FileError if there are float32 tensors besides.
  void check_rest() const;

  /// So many values of a parameter, as they lie in memory from `first` on.
  template <class T>
  [[nodiscard]] std::vector<T> values(const nn::Parameter& parameter, Index first, std::size_t count) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// The parameters that this rank holds, in the order of the model. Throws ConfigError where it keeps slices or parts of them only.
template <class D, class T>
[[nodiscard]] std::vector<Tensor> export_parameters(nn::StageParameters<D, T>& stage) {
  using Master = Accumulated<T>;
  if (!stage.keeps_whole_units())
    throw ConfigError{"this rank keeps slices of the parameters only; Trainer::parameters() brings them together"};
  std::vector<Tensor> tensors;
  stage.for_each_master([&](const nn::Parameter& parameter, std::span<Master> values) {
    if (parameter.is_divided()) throw ConfigError{"this rank has parts of the parameters only; Trainer::parameters() brings them together"};
    const auto& read = on_host(stage.device(), std::span<const Master>{values});
    put(tensors.emplace_back(tensor_of(parameter)), parameter, std::span<const Master>{read});
  });
  return tensors;
}

/// Returns all parameters of a model, in its order, out of what its ranks have given.
template <class T>
[[nodiscard]] std::vector<Tensor> export_parameters(const std::vector<nn::LayerParameter>& model, const engine::Contributions& from,
                                                    const std::vector<T>& all);

/// A hash of tensors, whatever their order; the same on every processor.
[[nodiscard]] std::int64_t hash_of(const std::vector<Tensor>& tensors);

std::string shape_text(const std::vector<Index>& shape);

/// Sets what this rank keeps of a model's parameters. `source`: where the tensors come from, for messages.
///
/// Throws FileError, and changes nothing, unless the tensors are exactly the parameters of the model. Further tensors whose elements are
/// not float32, such as counters and masks, are no parameters of pdp's and are ignored.
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
