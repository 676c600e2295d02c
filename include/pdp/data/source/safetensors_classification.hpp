#pragma once

/// Definitions for pdp/data/safetensors_classification.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/classification.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/safetensors.hpp>
#include <pdp/data/safetensors_classification.hpp>

namespace pdp::data {

namespace detail {

/// Reads NAME.x and NAME.y. Raises `largest` to the largest label if that is greater.
PDP_INLINE InMemory<std::int32_t> read_samples(const SafeTensors& file, const std::string& name, Index& largest) {
  const TensorInfo &x = file.at(name + ".x"), &y = file.at(name + ".y");
  if (x.shape.size() != 2 || y.shape.size() != 1 || x.shape[0] != y.shape[0] || x.shape[0] < 1 || x.shape[1] < 1)
    throw FileError{text(file.name(), ": expected ", name, ".x of shape [samples, values] and ", name, ".y of shape [samples], found ",
                         x.elements(), " and ", y.elements(),
                         " elements that do not fit together; write a row and a label for each sample")};
  std::vector<float> values(as_size(x.elements()));
  file.read<float>(name + ".x", std::span{values});
  std::vector<std::int64_t> labels(as_size(y.elements()));
  file.read<std::int64_t>(name + ".y", std::span{labels});
  std::vector<std::int32_t> classes;
  for (const std::int64_t label : labels) {
    if (label < 0 || label >= std::numeric_limits<std::int32_t>::max())
      throw FileError{text(file.name(), ": expected labels from 0 on in ", name, ".y, found ", label, "; number the classes from 0")};
    classes.push_back(static_cast<std::int32_t>(label));
    largest = std::max<Index>(largest, label);
  }
  return {Shape{x.shape[1]}, std::move(values), std::move(classes)};
}

}  // namespace detail

PDP_INLINE Classification read_classification(const std::filesystem::path& file, Index classes) {
  const SafeTensors tensors{file};
  Index largest = 0;
  const auto train = detail::read_samples(tensors, "train", largest), test = detail::read_samples(tensors, "test", largest);
  if (train.sample_shape() != test.sample_shape())
    throw FileError{text(tensors.name(), ": expected samples of one width, found ", train.sample_shape().elements(),
                         " values in train.x and ", test.sample_shape().elements(), " in test.x; write both sets alike")};
  if (classes == 0) classes = largest + 1;
  if (largest >= classes)
    throw FileError{text(tensors.name(), ": expected labels below ", classes, ", the outputs of the model, found ", largest,
                         "; give the model more outputs")};
  return {train, test, classes};
}

}  // namespace pdp::data
