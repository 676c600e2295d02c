#pragma once

#include <filesystem>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/classification.hpp>

namespace pdp::data {

/// Reads train.x, train.y, test.x and test.y from a safetensors file. The x are float32 [samples, width], the y int64 [samples]. `classes`
/// is the number of classes; 0 means one more than the largest label. Throws FileError if the tensors do not have this form, or a label is
/// not between 0 and `classes` - 1.
[[nodiscard]] Classification read_classification(const std::filesystem::path& file, Index classes = 0);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_SAFETENSORS
#include <pdp/data/source/safetensors_classification.hpp>
#endif
