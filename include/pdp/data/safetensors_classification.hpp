#pragma once

#include <filesystem>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/classification.hpp>

namespace pdp::data {

/// Reads train.x, train.y, test.x and test.y of a safetensors file: float32 [samples, width] and int64 [samples]. `classes`: how many there
/// are; 0: one more than the largest label. Throws FileError if the tensors are not that.
[[nodiscard]] Classification read_classification(const std::filesystem::path& file, Index classes = 0);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_SAFETENSORS
#include <pdp/data/source/safetensors_classification.hpp>
#endif
