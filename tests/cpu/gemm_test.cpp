#include <pdp/cpu/gemm.hpp>
#include <pdp/cpu/onednn/product.hpp>

#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "catch.hpp"

using pdp::Index;
using pdp::Matrix;
using pdp::cpu::Cpu;
using pdp::cpu::Products;

namespace {

/// Small whole numbers: their products and sums are exact in every order, so results are compared with ==.
template <class T>
std::vector<T> whole_numbers(Index count, Index seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<T>((i * 7919 + seed * 104729) % 17 - 8);
  return values;
}

/// An unaligned rows x cols matrix with a guard value before and behind it.
template <class T>
struct Placed {
  static constexpr T guard = 12345;
  std::vector<T> memory;
  Index rows, cols;

  Placed(Index row_count, Index column_count, const std::vector<T>& values) : memory{guard}, rows{row_count}, cols{column_count} {
    memory.insert(memory.end(), values.begin(), values.end());
    memory.push_back(guard);
  }
  Matrix<T> matrix() { return {memory.data() + 1, rows, cols}; }
  Matrix<const T> matrix() const { return {memory.data() + 1, rows, cols}; }
  std::vector<T> values() const { return {memory.begin() + 1, memory.end() - 1}; }
  bool guarded() const { return memory.front() == guard && memory.back() == guard; }
};

enum class Form { plain, nt, tn };

template <class T>
void check_product(const Cpu& cpu, Form form, Index m, Index n, Index k, bool accumulate) {
  // The product sees a as [m, k] and b as [k, n]. In memory, a is transposed for gemm_tn, and b for gemm_nt.
  const auto a_values = whole_numbers<T>(m * k, 1), b_values = whole_numbers<T>(k * n, 2);
  const Placed<T> a = form == Form::tn ? Placed<T>{k, m, a_values} : Placed<T>{m, k, a_values};
  const Placed<T> b = form == Form::nt ? Placed<T>{n, k, b_values} : Placed<T>{k, n, b_values};
  // Without accumulation, the product must not read the old values.
  const std::vector<T> before =
      accumulate ? whole_numbers<T>(m * n, 3) : std::vector<T>(static_cast<std::size_t>(m * n), std::numeric_limits<T>::quiet_NaN());
  Placed<T> c{m, n, before};

  std::vector<T> expected(static_cast<std::size_t>(m * n));
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      T sum = accumulate ? before[static_cast<std::size_t>(i * n + j)] : T{0};
      for (Index l = 0; l < k; ++l) {
        const Index in_a = form == Form::tn ? l * m + i : i * k + l, in_b = form == Form::nt ? j * k + l : l * n + j;
        sum += a_values[static_cast<std::size_t>(in_a)] * b_values[static_cast<std::size_t>(in_b)];
      }
      expected[static_cast<std::size_t>(i * n + j)] = sum;
    }

  if (form == Form::plain) gemm(cpu, a.matrix(), b.matrix(), c.matrix(), accumulate);
  if (form == Form::nt) gemm_nt(cpu, a.matrix(), b.matrix(), c.matrix(), accumulate);
  if (form == Form::tn) gemm_tn(cpu, a.matrix(), b.matrix(), c.matrix(), accumulate);

  const bool equal = c.values() == expected;  // not inside CHECK, which would print the matrices
  CHECK(equal);
  CHECK(c.guarded());
}

}  // namespace

TEMPLATE_TEST_CASE("gemm, gemm_nt and gemm_tn match a naive loop for small sizes, including empty ones", "[host]", float, double) {
  const Cpu cpu{.threads = GENERATE(1, 2), .products = GENERATE(Products::best, Products::eigen)};
  const Form form = GENERATE(Form::plain, Form::nt, Form::tn);
  const bool accumulate = GENERATE(false, true);
  for (const Index m : {0, 1, 2, 7, 9, 16, 17})
    for (const Index n : {0, 1, 3, 8, 17})
      for (const Index k : {0, 1, 5, 16}) {
        INFO("rows " << m << ", cols " << n << ", depth " << k << ", form " << static_cast<int>(form) << ", accumulate " << accumulate);
        check_product<TestType>(cpu, form, m, n, k, accumulate);
      }
}

TEMPLATE_TEST_CASE("gemm, gemm_nt and gemm_tn match a naive loop for sizes around the block borders", "[host]", float, double) {
  const Cpu cpu{.threads = GENERATE(1, 2), .products = GENERATE(Products::best, Products::eigen)};
  const Form form = GENERATE(Form::plain, Form::nt, Form::tn);
  const bool accumulate = GENERATE(false, true);
  using Sizes = std::tuple<Index, Index, Index>;
  for (const auto& [m, n, k] : {Sizes{127, 129, 128}, Sizes{129, 127, 257}, Sizes{128, 128, 256}, Sizes{257, 1, 300}, Sizes{1, 257, 300},
                                Sizes{0, 257, 300}, Sizes{129, 0, 300}, Sizes{130, 131, 0}, Sizes{5, 3, 1025}}) {
    INFO("rows " << m << ", cols " << n << ", depth " << k << ", form " << static_cast<int>(form) << ", accumulate " << accumulate);
    check_product<TestType>(cpu, form, m, n, k, accumulate);
  }
}

TEST_CASE("gemm matches a naive loop with cached kernels and beyond the kernel limit, in two threads", "[host]") {
  const auto multiply = [] {
    for (const bool accumulate : {false, true})
      for (int again = 0; again < 2; ++again) {  // operands at other addresses, with larger products in between
        for (const Form form : {Form::plain, Form::nt}) check_product<float>({}, form, 33, 20, 31, accumulate);
        for (const Form form : {Form::plain, Form::nt}) check_product<float>({}, form, 64, 300, 300, accumulate);
      }
    for (Index rows = 16; rows < 300; ++rows) check_product<float>({}, rows % 2 == 0 ? Form::plain : Form::nt, rows, 3, 5, rows % 3 == 0);
    for (const Form form : {Form::plain, Form::nt, Form::tn}) check_product<float>({}, form, 64, 300, 300, true);
    check_product<float>({}, Form::tn, 64, 48, 64, false);
  };
  multiply();
  std::thread{multiply}.join();
}

TEST_CASE("gemm uses exactly as many threads as Cpu::threads says", "[host]") {
  const std::string name = products_name(Cpu{});
  if (!pdp::cpu::has_onednn({}) || name.find("without OpenMP") != std::string::npos) return;
  const auto tasks = [] { return std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, {}); };
  std::ptrdiff_t before = 0, one = 0, two = 0;
  std::thread{[&] {  // a new thread has no worker threads yet
    const std::vector<float> a(512 * 512, 1);
    std::vector<float> c(512 * 512);
    const auto multiply = [&](int threads) {
      const Matrix<const float> in{a.data(), 512, 512};
      gemm(Cpu{.threads = threads}, in, in, Matrix<float>{c.data(), 512, 512}, false);
      return tasks();
    };
    before = tasks();
    one = multiply(1);
    two = multiply(2);
  }}
      .join();
  CHECK(one == before);
  CHECK(two == before + 1);
}

TEST_CASE("products_name names the library, and the version of Eigen", "[host]") {
  CHECK_THAT(products_name(Cpu{.products = Products::eigen}), StartsWith("Eigen 3.") || StartsWith("Eigen 5."));
  CHECK_THAT(products_name(Cpu{}), pdp::cpu::onednn::product != nullptr ? StartsWith("oneDNN ") : StartsWith("Eigen "));
}
