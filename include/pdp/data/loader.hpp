#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/share_order.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// One shard's share of a global batch. The loader owns the memory of the spans, which are valid until the next call of next() or start().
template <TargetElement Target, SampleElement Sample = float>
struct Batch {
  std::span<const Sample> x;            // [rows, sample_shape]
  std::span<const Target> y;            // [rows, target_shape]
  Index step = 0;                       // number of the global batch within the epoch, from 0
  Index rows = 0;                       // of this share; may be 0
  Index global_rows = 0;                // of all shares together
  std::span<const Index> samples{};     // the sample numbers of the rows
  std::span<const Index> share_rows{};  // the rows of each share, if the dataset lies in parts; else empty
};

namespace detail {

/// The part of a Loader that depends only on the types of the targets and samples: the buffers and the thread that fills them.
template <TargetElement Target, SampleElement Sample>
class Prefetch {
 public:
  /// A type-erased dataset and its gather function.
  struct Source {
    const void* data = nullptr;
    void (*gather)(const void* data, std::span<const Index> which, std::span<Sample> x, std::span<Target> y,
                   const TrainingEpoch& epoch) = nullptr;
    Index samples = 0;
    Index x_of_sample = 0, y_of_sample = 0;  // elements per sample
  };

  Prefetch(const Source& source, AnySampler sampler, Shard shard);
  ~Prefetch();

  [[nodiscard]] Index steps() const;
  void start(Index epoch, Index first);
  const Batch<Target, Sample>* next();

 private:
  class State;
  std::unique_ptr<State> state_;
};

#ifdef PDP_SEPARATE_CORE
extern template class Prefetch<std::int32_t, float>;
extern template class Prefetch<float, float>;
extern template class Prefetch<std::int32_t, std::int32_t>;
extern template class Prefetch<float, std::int32_t>;
#endif

}  // namespace detail

/// Prefetches one shard's share of every batch: gathers the next share on its own thread while the caller uses the current one.
///
/// A dataset that takes an epoch (TakesEpoch) gets the one that was started, with the seed of the sampler.
///
/// The constructor allocates two buffers for the largest share; nothing is allocated afterwards. Only one thread at a time may call a
/// Loader. The destructor waits only for a gather in progress.
template <Dataset D>
class Loader {
 public:
  using Target = typename D::Target;
  using Sample = SampleOf<D>;

  /// Throws ConfigError if the sampler's number of samples is not the size of the dataset, or the shard is invalid or not that of the
  /// sampler.
  Loader(D data, AnySampler sampler, Shard shard = {});

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  [[nodiscard]] const D& data() const { return data_; }

  /// Returns the number of global batches in an epoch.
  [[nodiscard]] Index steps() const { return prefetch_.steps(); }

  /// Starts an epoch with its batch `first`. May be called in the middle of another epoch or after an error. Throws ConfigError unless
  /// 0 <= first <= steps().
  void start(Index epoch, Index first = 0) { prefetch_.start(epoch, first); }

  /// Returns the epoch's next share, or nullptr after the last one. Waits until it is gathered. The share returned before becomes invalid.
  /// If gather has thrown, rethrows its exception on every call until start(). Throws ConfigError before the first start().
  const Batch<Target, Sample>* next() { return prefetch_.next(); }

 private:
  D data_;
  detail::Prefetch<Target, Sample> prefetch_;  // last member: its thread ends before data_ is destroyed
};

namespace detail {

template <Dataset D>
typename Prefetch<typename D::Target, SampleOf<D>>::Source source_of(const D& data) {
  const auto gather = [](const void* from, std::span<const Index> which, std::span<SampleOf<D>> x, std::span<typename D::Target> y,
                         const TrainingEpoch& epoch) { gather_in_epoch(*static_cast<const D*>(from), which, x, y, epoch); };
  return {std::addressof(data), gather, data.size(), data.sample_shape().elements(), data.target_shape().elements()};
}

}  // namespace detail

template <Dataset D>
Loader<D>::Loader(D data, AnySampler sampler, Shard shard)
    : data_{std::move(data)}, prefetch_{detail::source_of(data_), std::move(sampler), shard} {}

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/loader.hpp>
#endif
