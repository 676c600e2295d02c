#pragma once

#include <filesystem>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>
#include <pdp/core/separate_compilation.hpp>

namespace pdp::checkpoint {

/// Writes parameters to a safetensors file atomically (see data::ReplaceFile): even after a crash, the file has either the old or the new
/// parameters. Throws FileError if that fails.
void save(const std::filesystem::path& path, const std::vector<Tensor>& tensors);

/// Reads all float32 tensors of a file. Of a tensor of another type, reads only the name, shape and type, so that a file with counters or
/// masks beside the parameters can be imported. Throws FileError if the file cannot be read or is invalid.
[[nodiscard]] std::vector<Tensor> load(const std::filesystem::path& path);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_SAFETENSORS
#include <pdp/checkpoint/source/safetensors.hpp>
#endif
