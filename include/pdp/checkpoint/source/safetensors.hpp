#pragma once

/// Definitions for pdp/checkpoint/safetensors.hpp; see pdp/core/separate_compilation.hpp.

#include <filesystem>
#include <span>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/safetensors.hpp>

namespace pdp::checkpoint {

PDP_INLINE void save(const std::filesystem::path& path, const std::vector<Tensor>& tensors) {
  std::vector<data::TensorToWrite> parts;
  for (const Tensor& tensor : tensors) parts.push_back(data::tensor_to_write<float>(tensor.name, tensor.shape, tensor.values));
  data::write_safetensors(path, parts, {{"format", "pt"}});  // PyTorch's readers look for this entry
}

PDP_INLINE std::vector<Tensor> load(const std::filesystem::path& path) {
  const data::SafeTensors file{path};
  std::vector<Tensor> tensors;
  for (const auto& info : file.tensors()) {
    Tensor& tensor = tensors.emplace_back(Tensor{info.name, info.shape, {}, {}});
    if (info.type == data::ElementType::F32) {
      tensor.values.resize(as_size(info.elements()));
      file.read<float>(info.name, std::span<float>{tensor.values});
    } else {
      tensor.other_type = info.type_name();
    }
  }
  return tensors;
}

}  // namespace pdp::checkpoint
