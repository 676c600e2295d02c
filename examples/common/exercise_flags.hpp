#pragma once

#include <string>

#include <pdp/core/shape.hpp>
#include <pdp/launch/options.hpp>

namespace examples {

/// What a program that multiplies matrices is told on the command line: C[m, n] = A[m, k] B[k, n].
struct ProductFlags {
  pdp::launch::Options launch;
  pdp::Index m = 1024;
  pdp::Index n = 1024;
  pdp::Index k = 1024;
};

/// Read the command line of a program that shows what ranks say to each other, so that there are two of them unless it or the environment
/// says otherwise. They end the program as examples::parse does.
pdp::launch::Options parse_ranks(int argc, char** argv, const std::string& description);
ProductFlags parse_product(int argc, char** argv, const std::string& description);

}  // namespace examples
