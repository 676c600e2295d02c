#include <pdp/core/error.hpp>
#include <pdp/optim/reduce_on_plateau.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

namespace reduce_on_plateau_test {

using pdp::optim::ReduceOnPlateau, pdp::optim::ReduceOnPlateauOptions;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array losses{1.0, 0.9, 0.89995, 0.91, 0.92, 0.8,    0.8, 0.81, 0.79999, 0.8, 0.5,
                            0.6, 0.6, 0.6,     nan,  0.6,  0.4999, 0.7, 0.7,  0.7,     0.7};
constexpr std::array accuracies{0.1, 0.3, 0.3, 0.30001, 0.2, 0.5, 0.5, 0.4, 0.5, 0.5};

/// Checks the factors against the learning rates of PyTorch 2.15 for a rate of 1.
template <std::size_t n>
void check_factors(const ReduceOnPlateauOptions& options, const std::array<double, n>& values, const std::vector<double>& expected) {
  ReduceOnPlateau plateau{options};
  CHECK(plateau.factor() == 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(plateau.factor_after(values[i]) == Approx(expected[i]).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("ReduceOnPlateau has the factors of PyTorch's ReduceLROnPlateau", "[optim]") {
  check_factors({.by = 0.5f, .patience = 1}, losses,
                {1,     1,      1,      0.5,     0.5,     0.5,     0.5,     0.25,     0.25,     0.125,    0.125,
                 0.125, 0.0625, 0.0625, 0.03125, 0.03125, 0.03125, 0.03125, 0.015625, 0.015625, 0.0078125});
  check_factors({.by = 0.5f, .patience = 2, .cooldown = 2, .least = 0.2f}, losses,
                {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2});
  check_factors({.by = 0.1f, .patience = 0, .threshold = 0.05, .is_relative = false}, losses,
                {1, 1, 0.1, 0.01, 0.001, 0.001, 1e-4, 1e-5, 1e-6, 1e-7});
  check_factors({.by = 0.25f, .patience = 1, .prefers_larger = true}, accuracies,
                {1, 1, 1, 0.25, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.015625});
  check_factors({.by = 0.25f, .patience = 1, .threshold = 0.1, .is_relative = false, .least = 0.05f, .prefers_larger = true}, accuracies,
                {1, 1, 1, 0.25, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.05});
}

TEST_CASE("ReduceOnPlateau continues from a saved state with the factors of one that was not interrupted", "[optim]") {
  const ReduceOnPlateauOptions options{.by = 0.3f, .patience = 1, .cooldown = 1, .least = 1e-3f};
  for (std::size_t cut = 0; cut <= losses.size(); ++cut) {
    ReduceOnPlateau whole{options}, first{options}, second{options};
    for (std::size_t i = 0; i < cut; ++i) first.factor_after(losses[i]);
    second.set_state(first.state());
    CHECK(second.state() == first.state());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const double factor = whole.factor_after(losses[i]);
      if (i >= cut) CHECK(second.factor_after(losses[i]) == factor);
    }
  }
}

TEST_CASE("ReduceOnPlateau ignores infinity, and its factor never rises", "[optim]") {
  ReduceOnPlateau plateau{{.by = 0.5f, .patience = 0, .least = 0.5f, .prefers_larger = true}};
  CHECK(plateau.factor_after(std::numeric_limits<double>::infinity()) == 0.5);
  CHECK(plateau.factor_after(1) == 0.5);
  plateau.set_state("0.25 1 1 0 0");
  CHECK(plateau.factor_after(0) == 0.25);
}

TEST_CASE("ReduceOnPlateau rejects options that are out of range and a state that is none", "[optim]") {
  CHECK_THROWS_WITH((ReduceOnPlateau{{.by = 1.5f}}), "ReduceOnPlateau was given by = 1.5; give it a number from 0 to 1");
  CHECK_THROWS_AS((ReduceOnPlateau{{.patience = -1}}), pdp::ConfigError);
  CHECK_THROWS_AS((ReduceOnPlateau{{.threshold = nan}}), pdp::ConfigError);
  CHECK_THROWS_AS((ReduceOnPlateau{{.cooldown = -1}}), pdp::ConfigError);
  CHECK_THROWS_AS((ReduceOnPlateau{{.least = -0.5f}}), pdp::ConfigError);
  ReduceOnPlateau plateau;
  plateau.factor_after(3);
  const std::string before = plateau.state();
  for (const char* text : {"", "1", "1 0 0 0", "1 0 0 0 0 0", "1 0 2 0 0", "x 0 0 0 0", "1 0 0 0 0 ", "nan 0 0 0 0", "2 0 0 0 0",
                           "1 inf 1 0 0", "1 0 0 -1 0", "1 0 0 0 -1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(plateau.set_state(text), pdp::ConfigError);
    CHECK(plateau.state() == before);
  }
}

}  // namespace reduce_on_plateau_test
