// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/source/random.hpp>
#include <pdp/cpu/source/activation.hpp>
#include <pdp/cpu/source/attend.hpp>
#include <pdp/cpu/source/batch_normalise.hpp>
#include <pdp/cpu/source/bfloat16.hpp>
#include <pdp/cpu/source/bfloat16_products.hpp>
#include <pdp/cpu/source/cgroup.hpp>
#include <pdp/cpu/source/convert.hpp>
#include <pdp/cpu/source/convolve.hpp>
#include <pdp/cpu/source/cpu.hpp>
#include <pdp/cpu/source/drop.hpp>
#include <pdp/cpu/source/embed.hpp>
#include <pdp/cpu/source/float_rows.hpp>
#include <pdp/cpu/source/gemm.hpp>
#include <pdp/cpu/source/loss.hpp>
#include <pdp/cpu/source/machine_memory.hpp>
#include <pdp/cpu/source/memory.hpp>
#include <pdp/cpu/source/normalise.hpp>
#include <pdp/cpu/source/parts.hpp>
#include <pdp/cpu/source/pool.hpp>
#include <pdp/cpu/source/rows.hpp>
#include <pdp/cpu/source/softmax.hpp>
#include <pdp/cpu/source/tag.hpp>
#include <pdp/engine/instances.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/optim/add_change.hpp>
#include <pdp/optim/sgd.hpp>
#include <pdp/optim/source/reduce_on_plateau.hpp>
#include <pdp/optim/source/schedule.hpp>

namespace pdp {

static_assert(Device<cpu::Cpu, float> && Device<cpu::Cpu, double> && Device<cpu::Cpu, BFloat16>);

}  // namespace pdp

namespace pdp::optim {

static_assert(Optimizer<Sgd> && needed_state_fields(Sgd{}) == 0 && needed_state_fields(Sgd{.momentum = 0.9f}) == 1);
static_assert(Optimizer<Adam> && Optimizer<AdamW> && state_fields<Adam> == 2);
static_assert(Schedule<Constant> && Schedule<Linear> && Schedule<Cosine> && Schedule<WarmUp<Cosine>>);

}  // namespace pdp::optim

namespace pdp::random {

template void fill_uniform(Key, Index, std::span<float>);
template void fill_uniform(Key, Index, std::span<double>);
template void fill_normal(Key, Index, std::span<float>);
template void fill_normal(Key, Index, std::span<double>);

}  // namespace pdp::random

namespace pdp::cpu {

#define PDP_INSTANTIATE(T)                                                                                                               \
  template void relu(const Cpu&, Matrix<const T>, Matrix<T>);                                                                            \
  template void relu_backward(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                                  \
  template void drop(const Cpu&, const Pass&, float, Matrix<const T>, Matrix<T>);                                                        \
  template void hyperbolic_tangent(const Cpu&, Matrix<const T>, Matrix<T>);                                                              \
  template void hyperbolic_tangent_backward(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                    \
  template void add(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>);                                                            \
  template void normalise(const Cpu&, const GroupNormalisation&, Matrix<const T>, const T*, const T*, Matrix<T>);                        \
  template void normalise_backward_input(const Cpu&, const GroupNormalisation&, Matrix<const T>, const T*, Matrix<const T>, Matrix<T>);  \
  template void normalise_backward_weight(const Cpu&, const GroupNormalisation&, Matrix<const T>, Matrix<const T>, Accumulated<T>*,      \
                                          Accumulated<T>*, bool);                                                                        \
  template void batch_statistics(const Cpu&, const BatchNormalisation&, Matrix<const T>, const T*, double*);                             \
  template void batch_normalise(const Cpu&, const BatchNormalisation&, Matrix<const T>, const T*, const double*, const T*, const T*,     \
                                Matrix<T>);                                                                                              \
  template void normalise_channels(const Cpu&, const BatchNormalisation&, Matrix<const T>, const T*, const T*, const T*, const T*,       \
                                   Matrix<T>);                                                                                           \
  template void batch_gradient_sums(const Cpu&, const BatchNormalisation&, Matrix<const T>, const T*, Matrix<const T>, double*);         \
  template void batch_normalise_backward(const Cpu&, const BatchNormalisation&, Matrix<const T>, const T*, const double*, const T*,      \
                                         Matrix<const T>, Matrix<T>);                                                                    \
  template void batch_parameter_gradients(const Cpu&, const BatchNormalisation&, Index, double, const StepNumbers*, const T*, const T*,  \
                                          const double*, Index, Accumulated<T>*, bool);                                                  \
  template void embed(const Cpu&, Matrix<const std::int32_t>, const TokenRows&, Matrix<const T>, Matrix<T>);                             \
  template void embed_backward(const Cpu&, Matrix<const std::int32_t>, const TokenRows&, Matrix<const T>, Matrix<Accumulated<T>>, bool); \
  template void copy_columns(const Cpu&, Matrix<const T>, Index, Matrix<T>, Index, Index);                                               \
  template void copy(const Cpu&, Matrix<const T>, Matrix<T>);                                                                            \
  template void gemm(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>, bool);                                                     \
  template void gemm_nt(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>, bool);                                                  \
  template void gemm_tn(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<Accumulated<T>>, bool);                                     \
  template void softmax_cross_entropy(const Cpu&, Matrix<const T>, std::span<const std::int32_t>, const double*, Matrix<T>, LossSums*,   \
                                      Index, double, const ClassWeights&);                                                               \
  template void softmax_part(const Cpu&, Matrix<const T>, std::span<const std::int32_t>, Index, Index, Matrix<Accumulated<T>>, Index,    \
                             double, const ClassWeights&);                                                                               \
  template void softmax_cross_entropy_of_parts(const Cpu&, Matrix<const T>, std::span<const std::int32_t>, Index,                        \
                                               Matrix<const Accumulated<T>>, const double*, Matrix<T>, LossSums*, Index, double, Index,  \
                                               const ClassWeights&);                                                                     \
  template void squared_error(const Cpu&, Matrix<const T>, Matrix<const Accumulated<T>>, const double*, Matrix<T>, LossSums*, bool);     \
  template void fill_uniform(const Cpu&, random::Key, double, const random::Elements&, std::span<T>);                                    \
  template void add_row(const Cpu&, const T*, Matrix<T>);                                                                                \
  template void sum_rows(const Cpu&, Matrix<const T>, Accumulated<T>*, bool);                                                            \
  template void attend(const Cpu&, const Attention&, Matrix<const T>, Matrix<T>, T*);                                                    \
  template void attend_backward(const Cpu&, const Attention&, Matrix<const T>, Matrix<const T>, Matrix<const T>, const T*, Matrix<T>);   \
  template void rotate(const Cpu&, const Attention&, const Rotation&, Matrix<T>);                                                        \
  template void convolve(const Cpu&, const Convolution&, Matrix<const T>, const T*, const T*, Matrix<T>);                                \
  template void convolve_backward_input(const Cpu&, const Convolution&, const T*, Matrix<const T>, Matrix<T>);                           \
  template void convolve_backward_weight(const Cpu&, const Convolution&, Matrix<const T>, Matrix<const T>, Accumulated<T>*,              \
                                         Accumulated<T>*, bool);                                                                         \
  template void max_pool(const Cpu&, const Pooling&, Matrix<const T>, Matrix<T>);                                                        \
  template void max_pool_backward(const Cpu&, const Pooling&, Matrix<const T>, Matrix<const T>, Matrix<const T>, Matrix<T>);             \
  template void average_pool(const Cpu&, const Pooling&, Matrix<const T>, Matrix<T>);                                                    \
  template void average_pool(const Cpu&, const AdaptivePooling&, Matrix<const T>, Matrix<T>);                                            \
  template void average_pool_backward(const Cpu&, const Pooling&, Matrix<const T>, Matrix<T>);                                           \
  template void average_pool_backward(const Cpu&, const AdaptivePooling&, Matrix<const T>, Matrix<T>);                                   \
  template void softmax(const Cpu&, Matrix<const T>, Matrix<T>);                                                                         \
  template void softmax_backward(const Cpu&, Matrix<const T>, Matrix<const T>, Matrix<T>);
PDP_INSTANTIATE(float)
PDP_INSTANTIATE(double)
PDP_INSTANTIATE(BFloat16)
#undef PDP_INSTANTIATE

template void affine(const Cpu&, Matrix<const BFloat16>, Matrix<const BFloat16>, const BFloat16*, Matrix<BFloat16>, Activation);
template void sum_of_squares(const Cpu&, Matrix<const float>, double*);
template void sum_of_squares(const Cpu&, Matrix<const double>, double*);

template void convert(const Cpu&, Matrix<const float>, Matrix<BFloat16>);
template void convert(const Cpu&, Matrix<const BFloat16>, Matrix<float>);
template void convert(const Cpu&, Matrix<const float>, Matrix<Float16>);
template void convert(const Cpu&, Matrix<const Float16>, Matrix<float>);

#define PDP_UPDATE(Rule, T)                                                                                                             \
  template void update<optim::state_fields<Rule>>(const Cpu&, const Rule&, const StepNumbers*, std::span<T>, std::span<const T* const>, \
                                                  std::span<T>, std::span<T* const>)
PDP_UPDATE(optim::AddChange, float);
PDP_UPDATE(optim::AddChange, double);
PDP_UPDATE(optim::Sgd, float);
PDP_UPDATE(optim::Sgd, double);
PDP_UPDATE(optim::Adam, float);
PDP_UPDATE(optim::Adam, double);
PDP_UPDATE(optim::AdamW, float);
PDP_UPDATE(optim::AdamW, double);
#undef PDP_UPDATE

}  // namespace pdp::cpu
