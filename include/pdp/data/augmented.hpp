#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <pdp/core/cast.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

namespace detail {

template <class F, class Sample>
concept ChangesSample = std::invocable<const F&, random::Key, std::span<Sample>>;
template <class F, class Sample, class Target>
concept ChangesSampleAndTarget = std::invocable<const F&, random::Key, std::span<Sample>, std::span<Target>>;

}  // namespace detail

/// A Dataset whose samples change at random in each epoch of a training. An evaluation gets the samples of the inner dataset unchanged.
///
/// The function is called as f(key, sample) or f(key, sample, target): `key` is that of the sample in the epoch (TrainingEpoch::key),
/// `sample` has sample_shape() elements and `target` target_shape() elements, in place. It draws its random numbers from the key, as in
/// random::normal(key, i) or random::Stream{key}. The loader calls it on a thread of its own. Copies share the function.
///
///   const data::Augmented noisy{set, [](random::Key key, std::span<float> sample) {
///     for (std::size_t i = 0; i < sample.size(); ++i) sample[i] += 0.1f * random::normal(key, as_index(i));
///   }};
///
/// If the inner dataset is Augmented, too, its function gets other keys, and is called first.
template <Dataset D, class F>
class Augmented {
  static constexpr bool changes_target = detail::ChangesSampleAndTarget<F, SampleOf<D>, typename D::Target>;
  static_assert(detail::ChangesSample<F, SampleOf<D>> || changes_target,
                "pdp: the function of Augmented must take `random::Key key, std::span<float> sample`, or these and `std::span<Target> "
                "target`, and be const; with a dataset of tokens, the sample is a `std::span<std::int32_t>`");

 public:
  using Target = typename D::Target;
  using Sample = SampleOf<D>;

  Augmented(D set, F change) : set_{std::move(set)}, change_{std::make_shared<const F>(std::move(change))} {}

  [[nodiscard]] Index size() const { return set_.size(); }
  [[nodiscard]] Shape sample_shape() const { return set_.sample_shape(); }
  [[nodiscard]] Shape target_shape() const { return set_.target_shape(); }

  /// Copies samples as described by the concept Dataset, and changes them if there is an epoch.
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const { set_.gather(which, x, y); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, const TrainingEpoch& epoch) const {
    gather_in_epoch(set_, which, x, y, epoch.inner());
    const std::size_t of_sample = as_size(sample_shape().elements()), of_target = as_size(target_shape().elements());
    for (std::size_t row = 0; row < which.size(); ++row) {
      const std::span<Sample> sample = x.subspan(row * of_sample, of_sample);
      if constexpr (changes_target)
        (*change_)(epoch.key(which[row]), sample, y.subspan(row * of_target, of_target));
      else
        (*change_)(epoch.key(which[row]), sample);
    }
  }

 private:
  D set_;
  std::shared_ptr<const F> change_;
};

static_assert(TakesEpoch<Augmented<InMemory<std::int32_t>, void (*)(random::Key, std::span<float>)>>);
static_assert(TakesEpoch<Augmented<InMemory<float>, void (*)(random::Key, std::span<float>, std::span<float>)>>);

}  // namespace pdp::data
