#pragma once

#include <string>
#include <vector>

#include <pdp/checkpoint/parameters.hpp>

namespace examples {

/// Throws FileError where save() could not write: before the training, not after it.
void check_writable(const std::string& path);

/// pdp::checkpoint::save and load, compiled once for all examples: what reads JSON takes its time to compile. Rank 0 saves, others do not.
void save(const std::string& path, const std::vector<pdp::checkpoint::Tensor>& tensors, int rank);
std::vector<pdp::checkpoint::Tensor> load(const std::string& path);

}  // namespace examples
