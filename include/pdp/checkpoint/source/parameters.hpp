#pragma once

/// Definitions for pdp/checkpoint/parameters.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/hash.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/shown.hpp>
#include <pdp/engine/collect.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::checkpoint {

PDP_INLINE Tensor tensor_of(const nn::Parameter& parameter) {
  return {parameter.full_name(), parameter.file_shape(), std::vector<float>(as_size(parameter.file_elements())), {}};
}

template <class T>
void put(Tensor& tensor, const nn::Parameter& parameter, std::span<const T> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.values[as_size(parameter.file_element(as_index(i)))] = static_cast<float>(values[i]);
}

template <class T>
std::vector<Tensor> export_parameters(const std::vector<nn::LayerParameter>& model, const engine::Contributions& from,
                                      const std::vector<T>& all) {
  std::vector<Tensor> tensors;
  for (const auto& [parameter, layer] : model) {
    if (parameter.is_copy) continue;
    Tensor& tensor = tensors.emplace_back(tensor_of(parameter));
    std::vector<T> values(as_size(parameter.elements()));
    for (int part = 0; part < parameter.row_part.count * parameter.col_part.count; ++part) {
      from.copy(std::span<const T>{all}, layer, part, parameter.offset, std::span<T>{values});
      put(tensor, parameter.part(part), std::span<const T>{values});
    }
  }
  return tensors;
}

PDP_INLINE std::int64_t hash_of(const std::vector<Tensor>& tensors) {
  std::uint64_t sum = tensors.size();
  for (const Tensor& tensor : tensors) {
    std::vector<std::int64_t> parts{random::hash_of(std::span{tensor.values})};
    for (const char letter : tensor.name) parts.push_back(static_cast<unsigned char>(letter));  // char is unsigned on aarch64
    for (const Index extent : tensor.shape) parts.push_back(extent);
    sum += static_cast<std::uint64_t>(random::hash_of(std::span<const std::int64_t>{parts}));
  }
  return static_cast<std::int64_t>(sum >> 2);
}

PDP_INLINE std::string shape_text(const std::vector<Index>& shape) {
  std::string joined = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) joined += text(i > 0 ? ", " : "", shape[i]);
  return joined + "]";
}

namespace detail {

class Import::State {
 public:
  State(const std::vector<Tensor>& tensors, std::string_view source) : tensors_{tensors}, source_{source} {
    for (const Tensor& tensor : tensors)
      if (!by_name_.emplace(tensor.name, &tensor).second) refuse(text("it has '", data::detail::shown(tensor.name), "' twice"));
  }

  void check(const nn::Parameter& parameter) {
    const std::string name = parameter.full_name();
    const auto place = by_name_.find(name);
    if (place == by_name_.end())
      refuse(text("this model has ", name, " of shape ", shape_text(parameter.file_shape()), ", but the file has no such tensor"));
    const Tensor& tensor = *place->second;
    if (tensor.shape != parameter.file_shape())
      refuse(
          text(name, " has shape ", shape_text(tensor.shape), " in the file, but ", shape_text(parameter.file_shape()), " in this model"));
    if (!tensor.other_type.empty())
      throw FileError{text(source_, ": expected elements of type F32 (float32) in ", name, ", found type ",
                           data::detail::shown(tensor.other_type), ". Convert the tensor to float32 and save it again.")};
    if (as_index(tensor.values.size()) != parameter.file_elements())
      throw FileError{text(source_, ": expected ", parameter.file_elements(), " values for ", name, " of shape ", shape_text(tensor.shape),
                           ", found ", tensor.values.size(), ". Give every element of the shape.")};
    found_.insert(name);
    if (parameter.is_copy) check_copy(parameter, tensor);
  }

  void check_rest() const {
    const auto too_many =
        std::ranges::find_if(tensors_, [&](const Tensor& tensor) { return tensor.other_type.empty() && !found_.contains(tensor.name); });
    if (too_many != tensors_.end())
      refuse(text("it has ", tensors_.size(), " tensors, this model ", found_.size(), "; this model has no '",
                  data::detail::shown(too_many->name), "' (shape ", shape_text(too_many->shape), " in the file)"));
  }

  [[nodiscard]] const std::vector<float>& values(const nn::Parameter& parameter) const {
    return by_name_.at(parameter.full_name())->values;
  }

 private:
  /// A file may hold the parameter of a tied layer a second time, as a state_dict of PyTorch does.
  void check_copy(const nn::Parameter& parameter, const Tensor& tensor) {
    nn::Parameter named = parameter;
    named.layer = parameter.tied;
    const std::string name = named.full_name();
    const auto place = by_name_.find(name);
    if (place == by_name_.end()) return;
    const auto is_same = [](float a, float b) { return a == b || (is_nan(a) && is_nan(b)); };
    if (place->second->shape != tensor.shape || !std::ranges::equal(place->second->values, tensor.values, is_same))
      refuse(text(name, " differs from ", tensor.name, ", but the two are one parameter in this model"));
    found_.insert(name);
  }
  [[noreturn]] void refuse(std::string_view why) const { throw FileError{text(source_, " holds the parameters of another model: ", why)}; }

  const std::vector<Tensor>& tensors_;
  std::string_view source_;
  std::map<std::string_view, const Tensor*> by_name_;
  std::set<std::string, std::less<>> found_;  // names of parameters
};

PDP_INLINE Import::Import(const std::vector<Tensor>& tensors, std::string_view source) : state_{std::make_unique<State>(tensors, source)} {}
PDP_INLINE Import::~Import() = default;
PDP_INLINE void Import::check(const nn::Parameter& parameter) { state_->check(parameter); }
PDP_INLINE void Import::check_rest() const { state_->check_rest(); }

template <class T>
std::vector<T> Import::values(const nn::Parameter& parameter, Index first, std::size_t count) const {
  const std::vector<float>& from = state_->values(parameter);
  const random::Elements numbers = parameter.file_numbers(first);
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(from[as_size(numbers[as_index(i)])]);
  return values;
}

}  // namespace detail

}  // namespace pdp::checkpoint
