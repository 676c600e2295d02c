#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pdp/core/shape.hpp>

namespace examples {

/// Samples of `width` values each, one after another, and their classes.
struct Samples {
  pdp::Index width = 0;
  std::vector<float> x;
  std::vector<std::int32_t> y;

  [[nodiscard]] pdp::Index size() const { return static_cast<pdp::Index>(y.size()); }
};
struct TrainAndTest {
  Samples train, test;
  pdp::Index classes = 0;
};

/// How a synthetic classification set is made, after Guyon's "Design of experiments for the NIPS 2003 variable selection benchmark", as
/// scikit-learn's make_classification: half of the dimensions are informative, the others noise. Each class has ten clusters. The centre of
/// a cluster is a corner of a cube in the informative dimensions, and its points are normal, mixed by a matrix of its own. One label in a
/// hundred is wrong.
struct SyntheticSet {
  pdp::Index samples = 10'000;  // the first tenth is for training, the last one for tests
  pdp::Index width = 1024;
  pdp::Index classes = 32;
  std::uint64_t seed = 0;
};
/// Each sample is a function of the seed and its number, so that only those are made that are used.
TrainAndTest make(const SyntheticSet& set);

/// train.x, train.y, test.x and test.y of a safetensors file: float32 [samples, width] and int64 [samples]. Throws FileError where they are
/// not that. Classes: one more than the largest label, or `classes` where that is not 0.
TrainAndTest read_toy(const std::string& file, pdp::Index classes);

/// The widths of a perceptron whose weights are 0.weight, 2.weight, ... of a safetensors file. Throws FileError where it has others.
std::vector<pdp::Index> widths_in(const std::string& file);

}  // namespace examples
