#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/in_memory.hpp>

namespace pdp::data {

/// Samples of one width with a class number each, from 0 to `classes` - 1: some to train on, others to test on.
struct Classification {
  InMemory<std::int32_t> train, test;
  Index classes = 0;
};

/// How a synthetic classification set is made, after Guyon's "Design of experiments for the NIPS 2003 variable selection benchmark", as
/// scikit-learn's make_classification: half of the dimensions are informative, the others noise. Each class has ten clusters. The centre of
/// a cluster is a corner of a cube in the informative dimensions, and its points are normal, mixed by a matrix of its own. One label in a
/// hundred is wrong.
struct SyntheticClassification {
  Index samples = 10'000;  // the first tenth is for training, the last tenth for tests; 10 or more
  Index width = 1024;      // values of a sample
  Index classes = 32;
  std::uint64_t seed = 0;
};

/// Makes a synthetic set. Each sample is a function of the seed and its number, so only those are made that are used. Throws ConfigError if
/// a number is too small.
[[nodiscard]] Classification make_classification(const SyntheticClassification& set);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/classification.hpp>
#endif
