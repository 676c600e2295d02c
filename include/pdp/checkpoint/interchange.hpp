#pragma once

#include <filesystem>

#include <pdp/checkpoint/manifest.hpp>

/// Checkpoints to and from one safetensors file with PyTorch's names and layouts: parameters as "0.weight", and the optimizer's state as
/// "optimizer.0.weight.exp_avg". The metadata of the file has the number of updates as "step".
namespace pdp::checkpoint {

/// Writes a checkpoint, or the newest one in a folder, as one file. Needs memory for all of it. Throws FileError.
void export_checkpoint(const std::filesystem::path& from, const std::filesystem::path& file);

/// Makes a checkpoint of a file, in a folder of checkpoints. It is one of the beginning of an epoch. Tensors that are neither float32 nor
/// float64 are ignored, such as counters. Returns the path of the checkpoint. Throws FileError.
std::filesystem::path import_checkpoint(const std::filesystem::path& file, const std::filesystem::path& folder);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_SAFETENSORS
#include <pdp/checkpoint/source/interchange.hpp>
#endif
