#pragma once

#include <filesystem>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::checkpoint {

/// Writes parameters to exactly this file: beside it at first, and renamed when all is on disk, so that it holds the old ones or the new
/// ones. Throws FileError.
void save(const std::filesystem::path& path, const std::vector<Tensor>& tensors);

/// Reads all float32 tensors of a file. A tensor of another type is in the list with its name, shape and type only, so that a file with
/// counters or masks beside the parameters can be imported. Throws FileError.
[[nodiscard]] std::vector<Tensor> load(const std::filesystem::path& path);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_SAFETENSORS
#include <pdp/checkpoint/source/safetensors.hpp>
#endif
