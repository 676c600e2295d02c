#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include <pdp/core/affine.hpp>
#include <pdp/core/attention.hpp>
#include <pdp/core/batch_normalisation.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/convolution.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/group_normalisation.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/pass.hpp>
#include <pdp/core/pooling.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/core/token.hpp>
#include <pdp/cuda/handle.hpp>

/// The operations that core/device.hpp requires of a device. The comments of the same operations for a CPU, in pdp/cpu/, say what each
/// computes. All of them give their work to the device's stream and return. They throw DeviceError if that fails; if the work fails later,
/// a later call throws.
///
/// Elements are floats or 16-bit types. With 16 bits, each operation computes in float and rounds its result once.
namespace pdp::cuda {

/// Element types that models compute in on a GPU.
template <class T>
concept Computed = std::same_as<T, float> || std::same_as<T, BFloat16> || std::same_as<T, Float16>;

template <Computed T>
void gemm(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);
template <Computed T>
void gemm_nt(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);
template <Computed T>
void gemm_tn(const Device& device, Matrix<const T> a, Matrix<const T> b, Matrix<Accumulated<T>> c, bool accumulate);

/// Runs one kernel for the product and the bias if cuBLASLt has one. Includes the activation if DeviceOptions::fused_relu allows that.
template <Computed T>
void affine(const Device& device, Matrix<const T> x, Matrix<const T> weight, const T* bias, Matrix<T> y, Activation activation);
bool fuses_activations(const Device& device);

template <Computed T>
void add_row(const Device& device, const T* row, Matrix<T> rows);
template <Computed T>
void sum_rows(const Device& device, Matrix<const T> rows, Accumulated<T>* sums, bool accumulate);
template <Computed T>
void relu(const Device& device, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void relu_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void hyperbolic_tangent(const Device& device, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void hyperbolic_tangent_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void drop(const Device& device, const Pass& pass, float probability, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void normalise(const Device& device, const GroupNormalisation& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y);
template <Computed T>
void normalise_backward_input(const Device& device, const GroupNormalisation& how, Matrix<const T> x, const T* weight,
                              Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void normalise_backward_weight(const Device& device, const GroupNormalisation& how, Matrix<const T> x, Matrix<const T> gradient_y,
                               Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate);
template <Computed T>
void attend(const Device& device, const Attention& how, Matrix<const T> x, Matrix<T> y, T* sums);
template <Computed T>
void attend_backward(const Device& device, const Attention& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                     const T* sums, Matrix<T> gradient_x);
template <Computed T>
void rotate(const Device& device, const Attention& how, const Rotation& rotation, Matrix<T> x);
template <Computed T>
void batch_statistics(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, double* sums);
template <Computed T>
void batch_normalise(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                     const T* weight, const T* bias, Matrix<T> y);
template <Computed T>
void normalise_channels(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* mean, const T* variance,
                        const T* weight, const T* bias, Matrix<T> y);
template <Computed T>
void batch_gradient_sums(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, Matrix<const T> gradient_y,
                         double* sums);
template <Computed T>
void batch_normalise_backward(const Device& device, const BatchNormalisation& how, Matrix<const T> x, const T* shift, const double* sums,
                              const T* weight, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void batch_parameter_gradients(const Device& device, const BatchNormalisation& how, Index rows, double momentum, const StepNumbers* numbers,
                               const T* mean, const T* variance, const double* sums, Index block, Accumulated<T>* gradient,
                               bool accumulate);
template <Computed T>
void embed(const Device& device, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> weight, Matrix<T> y);
template <Computed T>
void embed_backward(const Device& device, Matrix<const std::int32_t> tokens, const TokenRows& rows, Matrix<const T> gradient_y,
                    Matrix<Accumulated<T>> gradient_weight, bool accumulate);
template <Computed T>
void convolve(const Device& device, const Convolution& how, Matrix<const T> x, const T* weight, const T* bias, Matrix<T> y);
template <Computed T>
void convolve_backward_input(const Device& device, const Convolution& how, const T* weight, Matrix<const T> gradient_y,
                             Matrix<T> gradient_x);
template <Computed T>
void convolve_backward_weight(const Device& device, const Convolution& how, Matrix<const T> x, Matrix<const T> gradient_y,
                              Accumulated<T>* gradient_weight, Accumulated<T>* gradient_bias, bool accumulate);
template <Computed T>
void max_pool(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void max_pool_backward(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<const T> y, Matrix<const T> gradient_y,
                       Matrix<T> gradient_x);
template <Computed T>
void average_pool(const Device& device, const Pooling& how, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void average_pool(const Device& device, const AdaptivePooling& how, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void average_pool_backward(const Device& device, const Pooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void average_pool_backward(const Device& device, const AdaptivePooling& how, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void softmax(const Device& device, Matrix<const T> x, Matrix<T> y);
template <Computed T>
void softmax_backward(const Device& device, Matrix<const T> y, Matrix<const T> gradient_y, Matrix<T> gradient_x);
template <Computed T>
void add(const Device& device, Matrix<const T> left, Matrix<const T> right, Matrix<T> out);
template <Computed T>
void copy(const Device& device, Matrix<const T> from, Matrix<T> to);
template <Computed T>
void copy_columns(const Device& device, Matrix<const T> from, Index first, Matrix<T> to, Index to_first, Index columns);
template <Computed T>
void convert(const Device& device, Matrix<const float> from, Matrix<T> to) requires(sizeof(T) == 2);
template <Computed T>
void convert(const Device& device, Matrix<const T> from, Matrix<float> to) requires(sizeof(T) == 2);

/// If a class has no logit and is not `ignored`, the loss is NaN. If the classes come from host memory, the engine checks them before this
/// call and throws LabelError.
template <Computed T>
void softmax_cross_entropy(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, const double* scale,
                           Matrix<T> gradient, LossSums* sums, Index ignored = no_class, double smoothing = 0,
                           const ClassWeights& weights = {});
template <Computed T>
void softmax_part(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first, Index columns,
                  Matrix<Accumulated<T>> part, Index ignored = no_class, double smoothing = 0, const ClassWeights& weights = {});
template <Computed T>
void softmax_cross_entropy_of_parts(const Device& device, Matrix<const T> logits, std::span<const std::int32_t> classes, Index first,
                                    Matrix<const Accumulated<T>> parts, const double* scale, Matrix<T> gradient, LossSums* sums,
                                    Index ignored = no_class, double smoothing = 0, Index columns = 1, const ClassWeights& weights = {});
template <Computed T>
void squared_error(const Device& device, Matrix<const T> output, Matrix<const Accumulated<T>> target, const double* scale,
                   Matrix<T> gradient, LossSums* sums, bool ignores_nan = false);

void sum_of_squares(const Device& device, Matrix<const float> values, double* sum);
void scale_loss(const Device& device, StepNumbers* numbers, const StepHistory* history);
void apply_gradient_rule(const Device& device, StepNumbers* numbers, StepHistory* history, const GradientRule& rule);
/// Gives the same bits as on the host; rounds them for 16-bit types.
template <Computed T>
void fill_uniform(const Device& device, random::Key key, double bound, const random::Elements& elements, T* values, Index count);
template <Computed T>
void fill_uniform(const Device& device, random::Key key, double bound, const random::Elements& elements, std::span<T> values) {
  fill_uniform(device, key, bound, elements, values.data(), as_index(values.size()));
}

}  // namespace pdp::cuda
