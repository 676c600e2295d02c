// Measures the limits of this machine, with which the other benchmarks are compared.
//
//   roofline [--seconds S]
//
// Prints one JSON object per line. Each has the best result of the calls made in about S seconds (default 1):
//   ping_pong  ns of a round trip: one core sets a flag and waits for the answer of the next core; -1 if there is only one core
//   fma        GFLOP/s of one core: fused multiply-adds of floats in registers, for each size of vector registers
//   product    GFLOP/s of one core in each matrix product of the configurations, and of the last layer of a language model (head), also as
//              a fraction of the best fma
//   bfloat16   the same for products of bfloat16 of wide and head, as pdp computes them and by oneDNN's kernels (0 if it has none)
//   memory     GB/s of one core: copying 256 MiB, and adding one array to another (bytes read and written)

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <pdp/cpu/onednn/product.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/pdp.hpp>

#include "common/configs.hpp"
#include "common/timing.hpp"

namespace {

using bench::now_us;
using pdp::Index;
using pdp::Matrix;
using pdp::cpu::Cpu;
using pdp::cpu::Lanes;
using pdp::cpu::Simd;
using pdp::launch::parse_number;

/// Returns the shortest time of a call of `work` in microseconds. Calls it for about `seconds`, and at least three times.
template <class F>
double least_us(double seconds, const F& work) {
  double least = 1e300;
  const double end = now_us() + 1e6 * seconds;
  for (int i = 0; i < 3 || now_us() < end; ++i) {
    const double begin = now_us();
    work();
    least = std::min(least, now_us() - begin);
  }
  return least;
}

constexpr const char* name_of(Simd registers) {
  return registers == Simd::avx512 ? "avx512" : registers == Simd::avx2 ? "avx2" : "baseline";
}

/// Returns the GFLOP/s of chains of multiply-adds that do not depend on each other.
double fma_rate(Simd registers, double seconds) {
  constexpr int rounds = 100'000, chains = 10;  // enough for two units with a latency of four or five cycles
  double lanes = 0, sum = 0;
  const double us = least_us(seconds, [&] {
    with_simd(registers, [&lanes, &sum]<Simd S>() {
      using V = Lanes<float, S>;
      const V factor = V::all(0.999f), term = V::all(1e-3f);
      std::array<V, chains> x;
      for (int chain = 0; chain < chains; ++chain) x[static_cast<std::size_t>(chain)] = V::all(static_cast<float>(chain));
      for (int i = 0; i < rounds; ++i)
        for (V& each : x) each = each * factor + term;  // one instruction, by the options in bench/CMakeLists.txt
      for (const V& each : x) sum += static_cast<double>(each.sum());
      lanes = V::count;
    });
  });
  if (!(sum > 0)) std::fprintf(stderr, "roofline: the chains ended at %g\n", sum);  // uses the sum, so that it is computed
  return 2 * lanes * rounds * chains / us / 1e3;
}

struct Product {
  const char* config;
  const char* form;  // the matrix that it computes: "output", or "input" or "weight" for the gradient of the input or weight
  Index rows, in, out;
};

double product_rate(const Product& product, double seconds) {
  const Index rows = product.rows, in = product.in, out = product.out;
  pdp::Buffer<float> x{rows * in}, y{rows * out}, w{in * out};
  for (auto* each : {&x, &y, &w}) pdp::random::fill_uniform<float>(pdp::random::make_key(1), 0, each->span());
  const Cpu cpu;
  const auto is = [&](std::string_view form) { return form == product.form; };
  const Matrix<float> in_values{x.data(), rows, in}, out_values{y.data(), rows, out}, weight{w.data(), in, out};
  const auto read = [](const Matrix<float>& matrix) { return Matrix<const float>{matrix.data, matrix.rows, matrix.cols}; };
  const double us = least_us(seconds, [&] {
    if (is("output")) gemm(cpu, read(in_values), read(weight), out_values, false);
    if (is("input")) gemm_nt(cpu, read(out_values), read(weight), in_values, false);
    if (is("weight")) gemm_tn(cpu, read(in_values), read(out_values), weight, false);
  });
  return 2 * static_cast<double>(rows * in * out) / us / 1e3;
}

/// The GFLOP/s of a product of bfloat16.
struct Bfloat16Rates {
  double by_pdp, by_onednn;
};
Bfloat16Rates bfloat16_rates(const Product& product, double seconds) {
  using pdp::BFloat16;
  const Index rows = product.rows, in = product.in, out = product.out;
  pdp::Buffer<BFloat16> x{rows * in}, y{rows * out}, w{in * out};
  pdp::Buffer<float> gradient{in * out};
  for (auto* each : {&x, &y, &w}) fill_uniform(Cpu{}, pdp::random::make_key(1), 1, pdp::random::Elements{}, each->span());
  const Matrix<BFloat16> in_values{x.data(), rows, in}, out_values{y.data(), rows, out}, weight{w.data(), in, out};
  const Matrix<float> of_weight{gradient.data(), in, out};
  const auto read = [](const Matrix<BFloat16>& matrix) { return Matrix<const BFloat16>{matrix.data, matrix.rows, matrix.cols}; };
  const auto is = [&](std::string_view form) { return form == product.form; };
  const auto rate = [&](const auto& work) { return 2 * static_cast<double>(rows * in * out) / least_us(seconds / 2, work) / 1e3; };
  const double by_pdp = rate([&] {
    if (is("output")) gemm(Cpu{}, read(in_values), read(weight), out_values, false);
    if (is("input")) gemm_nt(Cpu{}, read(out_values), read(weight), in_values, false);
    if (is("weight")) gemm_tn(Cpu{}, read(in_values), read(out_values), of_weight, false);
  });
  if (!has_onednn(Cpu{})) return {by_pdp, 0};
  bool found = true;
  const double by_onednn = rate([&] {
    using pdp::cpu::onednn::product_of_bfloat16;
    if (is("output")) found = product_of_bfloat16({x.data(), in, false}, {w.data(), out, false}, out_values, in, false, 1);
    if (is("input")) found = product_of_bfloat16({y.data(), out, false}, {w.data(), out, true}, in_values, out, false, 1);
    if (is("weight")) found = product_of_bfloat16({x.data(), in, true}, {y.data(), out, false}, of_weight, rows, false, 1);
  });
  return {by_pdp, found ? by_onednn : 0};
}

/// Returns the GB/s, read and written, of a copy of 256 MiB, or of the sum of two arrays of 256 MiB if `adds`.
double copy_rate(double seconds, bool adds) {
  constexpr std::size_t count = std::size_t{64} << 20;
  std::vector<float> from(count, 1), to(count, 2);
  const double us = least_us(seconds, [&] {
    if (adds)
      add(Cpu{}, Matrix<const float>{to.data(), 1, static_cast<Index>(count)},
          Matrix<const float>{from.data(), 1, static_cast<Index>(count)}, Matrix<float>{to.data(), 1, static_cast<Index>(count)});
    else
      std::memcpy(to.data(), from.data(), count * sizeof(float));
  });
  return (adds ? 3.0 : 2.0) * static_cast<double>(count * sizeof(float)) / us / 1e3;
}

/// Returns the time of a round trip between two cores in ns, or -1 if there is only one core. Leaves the caller pinned to the first core.
double ping_pong_ns() {
  constexpr int rounds = 20'000, blocks = 10;
  if (std::thread::hardware_concurrency() < 2) return -1;
  struct alignas(64) Flag {
    std::atomic<int> value{0};
  } ping, pong;
  std::thread other{[&] {
    bench::pin(1, 2);
    for (int i = 1; i <= blocks * rounds; ++i) {
      while (ping.value.load(std::memory_order_acquire) < i) continue;
      pong.value.store(i, std::memory_order_release);
    }
  }};
  bench::pin(0, 2);
  double least = 1e300;
  for (int block = 0; block < blocks; ++block) {
    const double begin = now_us();
    for (int i = 1; i <= rounds; ++i) {
      ping.value.store(block * rounds + i, std::memory_order_release);
      while (pong.value.load(std::memory_order_acquire) < block * rounds + i) continue;
    }
    least = std::min(least, (now_us() - begin) * 1e3 / rounds);
  }
  other.join();
  return least;
}

template <class C>
void add_products(std::vector<Product>& products, const char* name, const C& config) {
  for (std::size_t i = 0; i + 1 < config.widths.size(); ++i) {
    for (const char* form : {"output", "input", "weight"}) {
      if (i > 0 || std::string_view{form} != "input") {
        const Product found{name, form, config.rows, config.widths[i], config.widths[i + 1]};
        const auto is_same = [&](const Product& other) {
          return std::string_view{other.form} == form && other.rows == found.rows && other.in == found.in && other.out == found.out;
        };
        if (std::ranges::none_of(products, is_same)) products.push_back(found);
      }
    }
  }
}

int measure(double seconds) {
  std::printf("{\"limit\": \"ping_pong\", \"ns\": %.0f}\n", ping_pong_ns());
  const auto each = [&](std::size_t parts) { return seconds / static_cast<double>(parts); };
  std::vector<Simd> sizes;
  for (const Simd size : {Simd::baseline, Simd::avx2, Simd::avx512})
    if (size <= pdp::cpu::widest_simd()) sizes.push_back(size);
  double peak = 0;
  for (const Simd size : sizes) {
    const double rate = fma_rate(size, each(sizes.size()));
    peak = std::max(peak, rate);
    std::printf("{\"limit\": \"fma\", \"registers\": \"%s\", \"gflops\": %.1f}\n", name_of(size), rate);
  }
  std::vector<Product> products;
  add_products(products, "toy", bench::toy());
  add_products(products, "mnist", bench::mnist());
  add_products(products, "ae", bench::ae());
  add_products(products, "wide", bench::wide());
  for (const char* form : {"output", "input", "weight"}) products.push_back({"head", form, 512, 512, 32'000});  // of a language model
  for (const Product& product : products) {
    const double rate = product_rate(product, each(products.size()));
    std::printf(
        "{\"limit\": \"product\", \"by\": \"%s\", \"config\": \"%s\", \"of\": \"%s\", \"rows\": %td, \"in\": %td, \"out\": %td, "
        "\"gflops\": %.1f, \"of_fma\": %.3f}\n",
        products_name(Cpu{}).c_str(), product.config, product.form, product.rows, product.in, product.out, rate, rate / peak);
  }
  for (const Product& product : products) {
    if (std::string_view{product.config} != "wide" && std::string_view{product.config} != "head") continue;
    const Bfloat16Rates rates = bfloat16_rates(product, each(products.size()));
    std::printf(
        "{\"limit\": \"bfloat16\", \"config\": \"%s\", \"of\": \"%s\", \"rows\": %td, \"in\": %td, \"out\": %td, "
        "\"gflops\": %.1f, \"onednn_gflops\": %.1f}\n",
        product.config, product.form, product.rows, product.in, product.out, rates.by_pdp, rates.by_onednn);
  }
  std::printf("{\"limit\": \"memory\", \"what\": \"copy\", \"gbps\": %.1f}\n", copy_rate(each(2), false));
  std::printf("{\"limit\": \"memory\", \"what\": \"add\", \"gbps\": %.1f}\n", copy_rate(each(2), true));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    double seconds = 1;
    for (int i = 1; i < argc; ++i) {
      if (std::string_view{argv[i]} != "--seconds" || i + 1 == argc)
        throw pdp::UsageError{pdp::text("unknown argument ", argv[i], "; usage: roofline [--seconds S]")};
      seconds = parse_number("--seconds", argv[++i], 0.0, 86'400.0);
    }
    return measure(seconds);
  } catch (const pdp::UsageError& error) {
    std::fprintf(stderr, "roofline: %s\n", error.what());
    return 2;
  }
}
