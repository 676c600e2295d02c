#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/copyable.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step_state.hpp>

namespace pdp {

/// An array in a device's memory, which it owns. Zero at first. Has data(), size() and span().
template <class D, class T>
using DeviceMemory = decltype(allocate<T>(std::declval<const D&>(), Index{}));

/// A value that is being copied from a device to the host. is_there() returns whether the copy is complete; get() waits for it and returns
/// the value.
template <class D, class T>
using DeviceRead = decltype(read_later(std::declval<const D&>(), static_cast<const T*>(nullptr)));

namespace detail {
struct NoOperations {
  void operator()() const {}
};
}  // namespace detail

/// A device that a model computes on. It defines the free operations below in its own namespace. Layers, losses and the engine call only
/// these.
///
/// Pointers, spans and matrices are in the device's memory unless a comment says "host". Operations are asynchronous and run in the order
/// of the calls. So results stay in the device's memory, too; only on_host() and get() of read_later() wait for them. Callers must not rely
/// on exceptions for wrong values in device memory: if a class has no logit, a CPU throws LabelError, and a GPU makes the loss NaN.
///
/// gemm: c (+)= a b, gemm_nt: c (+)= a b^T, gemm_tn: c (+)= a^T b. (+)= adds to the output if `accumulate` is true, and overwrites it
/// otherwise. Sums over many rows, such as the gradient of a parameter, are in Accumulated<T>.
template <class D, class T = float>
concept Device = Copyable<D> &&
    requires(const D& device, Matrix<const T> in, Matrix<T> out, std::span<const T> read, std::span<T> written,
             std::span<const std::int32_t> classes, const T* row, T* values, bool accumulate, const double* scale, double* sum,
             LossSums* sums, StepNumbers* numbers, StepHistory* history, typename D::Recordings& recordings,
             Matrix<const Accumulated<T>> wide, Matrix<Accumulated<T>> wide_out, Accumulated<T>* wide_values) {
  { D::uses_host_memory } -> std::convertible_to<bool>;  // the device can read host memory in place
  { allocate<T>(device, Index{}).span() } -> std::same_as<std::span<T>>;
  zero(device, written);
  upload(device, read, values);                             // `read` is in host memory; the caller may change it after the call
  reserve_uploads(device, {std::size_t{}, std::size_t{}});  // prepares for uploads of these sizes, in bytes
  { takes_at_once(device, {std::size_t{}, std::size_t{}}) } -> std::same_as<bool>;  // whether uploads of these sizes start without a wait
  copy(device, read, values);                                                       // within the device; elements of any type
  on_host(device, read);                                                            // waits; returns the values as a range in host memory
  { read_later(device, static_cast<const StepNumbers*>(numbers)).get() } -> std::convertible_to<StepNumbers>;
  { read_later(device, static_cast<const StepNumbers*>(numbers)).is_there() } -> std::same_as<bool>;
  store(device, T{}, values);  // writes one small value, which the host gives
  fill_uniform(device, random::Key{}, double{}, random::Elements{}, written);

  gemm(device, in, in, out, accumulate);
  gemm_nt(device, in, in, out, accumulate);
  gemm_tn(device, in, in, wide_out, accumulate);
  add_row(device, row, out);                      // adds `row` to every row of out
  sum_rows(device, in, wide_values, accumulate);  // values (+)= the sum of the rows
  relu(device, in, out);
  relu_backward(device, in, in, out);  // output of the forward pass, its gradient -> gradient of the input
  hyperbolic_tangent(device, in, out);
  hyperbolic_tangent_backward(device, in, in, out);
  add(device, in, in, out);
  copy(device, in, out);
  add(device, wide, wide, wide_out);
  copy(device, wide, wide_out);

  // Losses add their results to `sums`. They compute no gradient if `out` is empty. Rows of the class that the argument behind `sums`
  // names, or with a target that is NaN if it is true, add nothing, and their gradient is zero. The double is the label smoothing.
  softmax_cross_entropy(device, in, classes, scale, out, sums, Index{}, double{}, ClassWeights{});
  // The same loss in two steps, for logits with columns divided over ranks.
  softmax_part(device, in, classes, Index{}, Index{}, wide_out, Index{}, double{}, ClassWeights{});
  softmax_cross_entropy_of_parts(device, in, classes, Index{}, wide, scale, out, sums, Index{}, double{}, Index{}, ClassWeights{});
  squared_error(device, in, wide, scale, out, sums, bool{});

  sum_of_squares(device, wide, sum);  // added to *sum
  // Rounds to T. Also converts back if gradients are reduced in 16 bits.
  requires std::same_as<T, Accumulated<T>> || requires { convert(device, wide, out); };
  scale_loss(device, numbers, history);
  apply_gradient_rule(device, numbers, history, GradientRule{});

  // replay(device, recordings, key, body): body() calls the same operations whenever the key is the same. So a device may record them and
  // replay the record instead of calling body().
  replay(device, recordings, std::span<const Index>{}, detail::NoOperations{});
};

}  // namespace pdp
