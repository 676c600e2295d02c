#pragma once

/// Definitions for pdp/nn/parameter.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<Eigen/Core>)
#error "pdp needs Eigen 3.4 or newer (Debian: libeigen3-dev): add -I/usr/include/eigen3, or the CMake target pdp::pdp"
#include <see the error above>
#endif
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <Eigen/QR>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/initializer.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::nn {

namespace detail {

/// Returns a normal number between -most and most.
inline double normal_within(double most, random::Key key, Index element) {
  for (std::uint64_t attempt = 0;; ++attempt)
    if (const auto number = random::normal<double>(key, element, attempt); std::abs(number) < most) return number;
}

/// Returns a matrix in the order of a file, whose rows or columns have the length `scale` and are at right angles: the first factor of the
/// QR decomposition of normal numbers, with signs that make it uniformly distributed. A vector is a matrix of one column, and a tensor
/// of more dimensions one of as many rows as it has.
inline std::vector<double> orthogonal_values(random::Key key, const std::vector<Index>& shape, double scale) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Index rows = shape.front(), cols = std::accumulate(shape.begin() + 1, shape.end(), Index{1}, std::multiplies<>{});
  std::vector<double> values(as_size(rows * cols));
  random::fill_normal<double>(key, 0, values);
  const Eigen::Map<Rows> all{values.data(), rows, cols};
  const Index width = std::min(rows, cols);
  const Eigen::MatrixXd tall = rows >= cols ? Eigen::MatrixXd{all} : Eigen::MatrixXd{all.transpose()};
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors{tall};
  Eigen::MatrixXd q = factors.householderQ() * Eigen::MatrixXd::Identity(tall.rows(), width);
  for (Index i = 0; i < width; ++i) q.col(i) *= factors.matrixQR()(i, i) < 0 ? -scale : scale;
  Eigen::Map<Rows> to{values.data(), rows, cols};
  if (rows >= cols)
    to = q;
  else
    to = q.transpose();
  return values;
}

}  // namespace detail

PDP_INLINE void Path::layers_are_nested_too_deep() {
  throw ConfigError{text("layers are nested in more than ", max_depth, " containers; nest fewer")};
}
PDP_INLINE std::string Path::str() const {
  std::string joined;
  for (int i = 0; i < depth_; ++i) joined += text(i > 0 ? "." : "", at_[as_size(i)]);
  return joined;
}

PDP_INLINE std::vector<Index> Parameter::file_shape() const {
  const Index all_rows = rows * row_part.count, all_cols = cols * col_part.count;
  if (cols == 0) return {all_rows};
  if (row_shape.rank() > 0) {
    std::vector<Index> shape{all_rows, row_shape[0] * col_part.count};
    for (int axis = 1; axis < row_shape.rank(); ++axis) shape.push_back(row_shape[axis]);
    return shape;
  }
  return transposed ? std::vector<Index>{all_cols, all_rows} : std::vector<Index>{all_rows, all_cols};
}
PDP_INLINE std::vector<double> Parameter::initial_values(random::Key key, Index first, Index count) const {
  using Kind = Initializer::Kind;
  const random::Elements numbers = file_numbers(first);
  const double scale = initializer.scale(fan_in, fan_out);
  std::vector<double> whole;
  if (initializer.kind == Kind::orthogonal) whole = detail::orthogonal_values(key, file_shape(), scale);
  if (initializer.kind == Kind::function && initializer.own == nullptr)
    throw ConfigError{text("the initializer of ", full_name(), " is a function, but none was given; expected nn::own_values(function)")};
  std::vector<double> values(as_size(count));
  for (Index i = 0; i < count; ++i) {
    const Index element = numbers[i];
    double& value = values[as_size(i)];
    switch (initializer.kind) {
      case Kind::uniform:
        value = random::uniform_between<double>(key, scale, element);
        break;
      case Kind::normal:
        value = initializer.mean + scale * random::normal<double>(key, element);
        break;
      case Kind::truncated_normal:
        value = initializer.mean + scale * detail::normal_within(2, key, element);
        break;
      case Kind::constant:
        value = initializer.mean;
        break;
      case Kind::orthogonal:
        value = whole[as_size(element)];
        break;
      case Kind::function:
        value = initializer.own(key, element, fan_in, fan_out);
        break;
    }
  }
  return values;
}
PDP_INLINE std::string Parameter::full_name() const {
  const std::string at = layer.str();
  return at.empty() ? name : text(at, ".", name);
}

}  // namespace pdp::nn
