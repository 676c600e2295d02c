#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/parallel/collect.hpp>

namespace pdp::checkpoint {

/// A parameter as files hold it: by its full name, in PyTorch's layout.
struct Tensor {
  std::string name;
  std::vector<Index> shape;
  std::vector<float> values;
};

/// The tensor of a parameter, or of the whole that it is a part of, without its values.
[[nodiscard]] inline Tensor tensor_of(const nn::Parameter& parameter) {
  return {parameter.full_name(), parameter.file_shape(), std::vector<float>(static_cast<std::size_t>(parameter.file_elements()))};
}
/// Puts values that are given as they lie in memory to where files hold them.
void put(Tensor& tensor, const nn::Parameter& parameter, const auto& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.values[static_cast<std::size_t>(parameter.file_element(static_cast<Index>(i)))] = static_cast<float>(values[i]);
}

/// The parameters that this rank holds, in the order of the model. Throws ConfigError where it keeps slices or parts of them only.
template <class Stage>
[[nodiscard]] std::vector<Tensor> export_parameters(Stage& stage) {
  using T = typename Stage::Master;
  if (!stage.keeps_whole_units())
    throw ConfigError{"this rank keeps slices of the parameters only; Trainer::parameters() brings them together"};
  std::vector<Tensor> tensors;
  stage.for_each_master([&](const nn::Parameter& parameter, std::span<T> values) {
    if (parameter.is_divided()) throw ConfigError{"this rank has parts of the parameters only; Trainer::parameters() brings them together"};
    put(tensors.emplace_back(tensor_of(parameter)), parameter, on_host(stage.device(), std::span<const T>{values}));
  });
  return tensors;
}

/// All parameters of a model, in its order, out of what its ranks have given.
template <class Stage, class T>
[[nodiscard]] std::vector<Tensor> export_parameters(const Stage& stage, const parallel::Contributions& from, const std::vector<T>& all) {
  std::vector<Tensor> tensors;
  stage.for_each_parameter_of_model([&](const nn::Parameter& parameter, int layer) {
    Tensor& tensor = tensors.emplace_back(tensor_of(parameter));
    std::vector<T> values(static_cast<std::size_t>(parameter.elements()));
    for (int part = 0; part < parameter.row_part.count * parameter.col_part.count; ++part) {
      from.copy(std::span<const T>{all}, layer, part, parameter.offset, std::span<T>{values});
      put(tensor, parameter.part(part), values);
    }
  });
  return tensors;
}

inline std::string shape_text(const std::vector<Index>& shape) {
  std::string joined = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) joined += text(i > 0 ? ", " : "", shape[i]);
  return joined + "]";
}

/// Sets what this rank keeps of a model's parameters. Throws FileError, and changes nothing, where the tensors are those of another model.
/// `source`: where they come from.
template <class Stage>
void import_parameters(Stage& stage, const std::vector<Tensor>& tensors, std::string_view source) {
  std::map<std::string_view, const Tensor*> by_name;
  for (const Tensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  std::size_t found = 0;
  stage.for_each_parameter_of_model([&](const nn::Parameter& parameter, int) {
    const std::string name = parameter.full_name();
    const auto tensor = by_name.find(name);
    if (tensor == by_name.end())
      throw FileError{text(source, " holds the parameters of another model: this one has ", name, " of shape ",
                           shape_text(parameter.file_shape()), ", the file has no such tensor")};
    if (tensor->second->shape != parameter.file_shape())
      throw FileError{text(source, " holds the parameters of another model: ", name, " is of shape ", shape_text(tensor->second->shape),
                           " there and of shape ", shape_text(parameter.file_shape()), " here")};
    ++found;
  });
  if (found != tensors.size())
    throw FileError{text(source, " holds the parameters of another model: it has ", tensors.size(), " tensors, this model ", found)};
  stage.for_each_kept([&]<class T>(const nn::Parameter& parameter, Index first, std::span<T> values) {
    const std::vector<float>& from = by_name.at(parameter.full_name())->values;
    const random::Elements numbers = parameter.file_numbers(first);
    std::vector<T> kept(values.size());
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<T>(from[static_cast<std::size_t>(numbers[static_cast<Index>(i)])]);
    upload(stage.device(), std::span<const T>{kept}, values.data());
  });
}

}  // namespace pdp::checkpoint
