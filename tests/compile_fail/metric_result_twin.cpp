#include <pdp/metric/any.hpp>

struct Largest {
  [[nodiscard]] const char* name() const { return "largest"; }
  [[nodiscard]] pdp::Index state_size(pdp::Index) const { return 1; }
  void add(pdp::Matrix<const float> outputs, std::span<const float>, std::span<double> state) const { state[0] += outputs.data[0]; }
  [[nodiscard]] double result(std::span<const double> state) const { return state[0]; }
};

pdp::metric::Any any() { return Largest{}; }
