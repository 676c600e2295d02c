#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/data/shown.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::checkpoint {

/// A parameter as files hold it: by its full name, in PyTorch's layout.
struct Tensor {
  std::string name;
  std::vector<Index> shape;
  std::vector<float> values;
  std::string other_type = {};  // of a tensor whose elements are not float32 and were not read: their type; `values` is empty then
};

/// The tensor of a parameter, or of the whole that it is a part of, without its values.
[[nodiscard]] inline Tensor tensor_of(const nn::Parameter& parameter) {
  return {parameter.full_name(), parameter.file_shape(), std::vector<float>(as_size(parameter.file_elements())), {}};
}
/// Puts values that are given as they lie in memory to where files hold them.
void put(Tensor& tensor, const nn::Parameter& parameter, const auto& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.values[as_size(parameter.file_element(as_index(i)))] = static_cast<float>(values[i]);
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
[[nodiscard]] std::vector<Tensor> export_parameters(const Stage& stage, const engine::Contributions& from, const std::vector<T>& all) {
  std::vector<Tensor> tensors;
  stage.for_each_parameter_of_model([&](const nn::Parameter& parameter, int layer) {
    Tensor& tensor = tensors.emplace_back(tensor_of(parameter));
    std::vector<T> values(as_size(parameter.elements()));
    for (int part = 0; part < parameter.row_part.count * parameter.col_part.count; ++part) {
      from.copy(std::span<const T>{all}, layer, part, parameter.offset, std::span<T>{values});
      put(tensor, parameter.part(part), values);
    }
  });
  return tensors;
}

/// A hash of tensors, whatever their order; the same on every processor.
[[nodiscard]] inline std::int64_t hash_of(const std::vector<Tensor>& tensors) {
  std::uint64_t sum = tensors.size();
  for (const Tensor& tensor : tensors) {
    std::vector<std::int64_t> parts{random::hash_of(std::span{tensor.values})};
    for (const char letter : tensor.name) parts.push_back(static_cast<unsigned char>(letter));  // char has no sign on aarch64
    for (const Index extent : tensor.shape) parts.push_back(extent);
    sum += static_cast<std::uint64_t>(random::hash_of(std::span<const std::int64_t>{parts}));
  }
  return static_cast<std::int64_t>(sum >> 2);
}

inline std::string shape_text(const std::vector<Index>& shape) {
  std::string joined = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) joined += text(i > 0 ? ", " : "", shape[i]);
  return joined + "]";
}

/// Sets what this rank keeps of a model's parameters. `source`: where the tensors come from, for messages.
///
/// Throws FileError, and changes nothing, unless the tensors are exactly the parameters of the model. Further tensors whose elements are
/// not float32, such as counters and masks, are no parameters of pdp's and are ignored.
template <class Stage>
void import_parameters(Stage& stage, const std::vector<Tensor>& tensors, std::string_view source) {
  const auto refuse = [&](const auto&... why) { throw FileError{text(source, " holds the parameters of another model: ", why...)}; };
  std::map<std::string_view, const Tensor*> by_name;
  for (const Tensor& tensor : tensors)
    if (!by_name.emplace(tensor.name, &tensor).second) refuse("it has '", data::detail::shown(tensor.name), "' twice");
  std::set<std::string, std::less<>> found;
  stage.for_each_parameter_of_model([&](const nn::Parameter& parameter, int) {
    const std::string name = parameter.full_name();
    const auto place = by_name.find(name);
    if (place == by_name.end())
      refuse("this one has ", name, " of shape ", shape_text(parameter.file_shape()), ", the file has no such tensor");
    const Tensor& tensor = *place->second;
    if (tensor.shape != parameter.file_shape())
      refuse(name, " is of shape ", shape_text(tensor.shape), " there and of shape ", shape_text(parameter.file_shape()), " here");
    if (!tensor.other_type.empty())
      throw FileError{text(source, ": expected elements of type F32 (float32) in ", name, ", found type ",
                           data::detail::shown(tensor.other_type), ". Convert the tensor to float32 and save it again.")};
    if (as_index(tensor.values.size()) != parameter.file_elements())
      throw FileError{text(source, ": expected ", parameter.file_elements(), " values for ", name, " of shape ", shape_text(tensor.shape),
                           ", found ", tensor.values.size(), ". Give every element of the shape.")};
    found.insert(name);
  });
  const auto too_many =
      std::ranges::find_if(tensors, [&](const Tensor& tensor) { return tensor.other_type.empty() && !found.contains(tensor.name); });
  if (too_many != tensors.end())
    refuse("it has ", tensors.size(), " tensors, this model ", found.size(), "; this model has no '", data::detail::shown(too_many->name),
           "' (of shape ", shape_text(too_many->shape), " there)");
  stage.for_each_kept([&]<class T>(const nn::Parameter& parameter, Index first, std::span<T> values) {
    const std::vector<float>& from = by_name.at(parameter.full_name())->values;
    const random::Elements numbers = parameter.file_numbers(first);
    std::vector<T> kept(values.size());
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<T>(from[as_size(numbers[as_index(i)])]);
    upload(stage.device(), std::span<const T>{kept}, values.data());
  });
}

}  // namespace pdp::checkpoint
