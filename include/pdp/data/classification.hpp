#pragma once

#include <cstdint>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/in_memory.hpp>

namespace pdp::data {

/// A training set and a test set of labelled samples. All samples have the same width. Labels are class numbers from 0 to `classes` - 1.
struct Classification {
  InMemory<std::int32_t> train, test;
  Index classes = 0;
};

/// Parameters of a synthetic classification set, generated as by scikit-learn's make_classification, after Guyon's "Design of experiments
/// for the NIPS 2003 variable selection benchmark".
///
/// Half of the dimensions are informative, the others noise. Each class has ten clusters. The centre of a cluster is a corner of a cube in
/// the informative dimensions. Each of its points is the centre plus a normally distributed vector times a random matrix of the cluster.
/// One label in a hundred is drawn at random.
struct SyntheticClassification {
  Index samples = 10'000;  // at least 10; the first tenth is the training set, the last tenth the test set
  Index width = 1024;      // values per sample
  Index classes = 32;
  std::uint64_t seed = 0;
};

/// Generates a synthetic set. A sample depends only on the parameters and its number, so only the first and the last tenth are generated.
/// Throws ConfigError if there are fewer than 10 samples, or `width` or `classes` is less than 1.
[[nodiscard]] Classification make_classification(const SyntheticClassification& set);

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/classification.hpp>
#endif
