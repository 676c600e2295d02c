#include <pdp/core/attention.hpp>
#include <pdp/cpu/cpu.hpp>

#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace onednn_attention_test {

using pdp::Attention, pdp::Index, pdp::Matrix, pdp::cpu::Cpu;

TEST_CASE("Attention with oneDNN's products has the results of Eigen's", "[onednn][attention]") {
  for (const Attention& how : {Attention{300, 4, 2, 32, true}, Attention{70, 3, 3, 17, false}, Attention{1, 1, 1, 64, true}}) {
    const Index rows = 2, x_cols = how.positions * how.row(), y_cols = how.positions * how.out();
    CAPTURE(how.positions, how.heads, how.width, how.causal);
    const std::vector<float> x = support::normal(rows * x_cols, 1), gradient_y = support::normal(rows * y_cols, 2);
    const auto run = [&](const Cpu& cpu) {
      std::vector<float> y(gradient_y.size(), 99), gradient_x(x.size(), 99),
          sums(pdp::as_size(rows * how.positions * how.heads * pdp::attention_sums));
      attend(cpu, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<float>{y.data(), rows, y_cols}, sums.data());
      attend_backward(cpu, how, Matrix<const float>{x.data(), rows, x_cols}, Matrix<const float>{y.data(), rows, y_cols},
                      Matrix<const float>{gradient_y.data(), rows, y_cols}, static_cast<const float*>(sums.data()),
                      Matrix<float>{gradient_x.data(), rows, x_cols});
      y.insert(y.end(), gradient_x.begin(), gradient_x.end());
      return y;
    };
    const std::vector<float> expected = run(Cpu{.products = pdp::cpu::Products::eigen});
    CHECK(support::difference(run(Cpu{}), expected) < 1e-5);
    CHECK(support::difference(run(Cpu{.threads = 2}), expected) < 1e-5);
  }
}

}  // namespace onednn_attention_test
