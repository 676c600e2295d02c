#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/dtype.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step_state.hpp>

namespace pdp {

/// Memory of a device, which owns it and is zero at first: data(), size(), span().
template <class D, class T>
using DeviceMemory = decltype(allocate<T>(std::declval<const D&>(), Index{}));

/// A value of a device's memory on its way to the host: is_there(), and get(), which waits for it.
template <class D, class T>
using DeviceRead = decltype(read_later(std::declval<const D&>(), static_cast<const T*>(nullptr)));

namespace detail {
struct NoOperations {
  void operator()() const {}
};
}  // namespace detail

/// Where a model computes. A device gives the bodies of these free operations, found by its own namespace; layers, losses and the engine
/// call them and know nothing else of it.
///
/// Pointers, spans and matrices are in the device's memory, but where a comment says "of the host". An operation may return before it is
/// carried out, and comes after all that were called before it; so what it finds is left in the device's memory, too, and on_host() is what
/// waits. Operations do not throw for what they find there.
///
/// gemm: c (+)= a b, gemm_nt: c (+)= a b^T, gemm_tn: c (+)= a^T b. A gradient that is accumulated adds to what is there. What is summed up
/// over many rows, such as the gradient of a parameter, is in Accumulated<T>.
template <class D, class T = float>
concept Device = std::copyable<D> &&
    requires(const D& device, Matrix<const T> in, Matrix<T> out, std::span<const T> read, std::span<T> written,
             std::span<const std::int32_t> classes, const T* row, T* values, bool accumulate, const double* scale, double* sum,
             LossSums* sums, StepNumbers* numbers, StepHistory* history, typename D::Recordings& recordings,
             Matrix<const Accumulated<T>> wide, Matrix<Accumulated<T>> wide_out, Accumulated<T>* wide_values) {
  { D::uses_host_memory } -> std::convertible_to<bool>;  // what the host has, the device may read where it lies
  { allocate<T>(device, Index{}).span() } -> std::same_as<std::span<T>>;
  zero(device, written);
  upload(device, read, values);  // `read`: of the host, free to change on return
  reserve_uploads(device, {std::size_t{}, std::size_t{}});
  { takes_at_once(device, {std::size_t{}, std::size_t{}}) } -> std::same_as<bool>;  // uploads of so many bytes, without a wait
  copy(device, read, values);                                                       // elements of any type
  on_host(device, read);                                                            // the values, as a range of the host's
  { read_later(device, static_cast<const StepNumbers*>(numbers)).get() } -> std::convertible_to<StepNumbers>;
  { read_later(device, static_cast<const StepNumbers*>(numbers)).is_there() } -> std::same_as<bool>;
  store(device, T{}, values);  // one small value
  fill_uniform(device, random::Key{}, double{}, random::Elements{}, written);

  gemm(device, in, in, out, accumulate);
  gemm_nt(device, in, in, out, accumulate);
  gemm_tn(device, in, in, wide_out, accumulate);
  add_row(device, row, out);                      // to every row of out
  sum_rows(device, in, wide_values, accumulate);  // values (+)= the sum of the rows
  relu(device, in, out);
  relu_backward(device, in, in, out);  // output of the forward pass, its gradient -> gradient of the input
  hyperbolic_tangent(device, in, out);
  hyperbolic_tangent_backward(device, in, in, out);
  add(device, in, in, out);
  copy(device, in, out);
  add(device, wide, wide, wide_out);
  copy(device, wide, wide_out);

  // Losses: what they find is added to `sums`; an empty `out`: no gradient is wanted.
  softmax_cross_entropy(device, in, classes, scale, out, sums);
  softmax_part(device, in, classes, Index{}, Index{}, wide_out);  // the same of logits whose columns are divided, in two halves
  softmax_cross_entropy_of_parts(device, in, classes, Index{}, wide, scale, out, sums);
  squared_error(device, in, wide, scale, out, sums);

  sum_of_squares(device, wide, sum);                                                     // added to *sum
  requires std::same_as<T, Accumulated<T>> || requires { convert(device, wide, out); };  // rounds, and where gradients travel so, back
  scale_loss(device, numbers, history);
  apply_gradient_rule(device, numbers, history, GradientRule{});

  // Operations that body() calls, which are the same whenever the key is: a device may record them, and not call it again.
  replay(device, recordings, std::span<const Index>{}, detail::NoOperations{});
};

}  // namespace pdp
