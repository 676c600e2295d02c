#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/sampler.hpp>

namespace pdp::data {

/// One shard's share of a global batch. The spans belong to the loader, and hold until its next call of next() or start().
template <TargetElement Target>
struct Batch {
  std::span<const float> x;          // [rows, sample_shape]
  std::span<const Target> y;         // [rows, target_shape]
  Index step = 0;                    // of the epoch
  Index rows = 0;                    // of this share; may be 0
  Index global_rows = 0;             // of all shares together
  std::span<const Index> samples{};  // the numbers of the rows in the dataset
};

namespace detail {

/// What of a Loader depends on no dataset but on the type of its targets: the buffers, and the thread that has them filled.
template <TargetElement Target>
class Prefetch {
 public:
  /// A dataset, and what gathers from it.
  struct Source {
    const void* data = nullptr;
    void (*gather)(const void* data, std::span<const Index> which, std::span<float> x, std::span<Target> y) = nullptr;
    Index samples = 0;
    Index x_of_sample = 0, y_of_sample = 0;  // elements
  };

  Prefetch(const Source& source, Sampler sampler, Shard shard);
  ~Prefetch();

  [[nodiscard]] Index steps() const;
  void start(Index epoch);
  const Batch<Target>* next();

 private:
  class State;
  std::unique_ptr<State> state_;
};

#ifdef PDP_SEPARATE_CORE
extern template class Prefetch<std::int32_t>;
extern template class Prefetch<float>;
#endif

}  // namespace detail

/// Gathers a shard's next share on a thread of its own while the current one is used: two buffers, made once for the largest share.
/// Nothing is allocated after construction. One thread at a time may call it. The destructor waits for a gather in progress, no more.
template <Dataset D>
class Loader {
 public:
  using Target = typename D::Target;

  /// Throws ConfigError where the sampler is not one for this dataset, or the shard is none.
  Loader(D data, Sampler sampler, Shard shard = {}) : data_{std::move(data)}, prefetch_{source(data_), std::move(sampler), shard} {}

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  [[nodiscard]] const D& data() const { return data_; }

  /// Global batches of an epoch.
  [[nodiscard]] Index steps() const { return prefetch_.steps(); }

  /// Begins an epoch, also in the middle of another one or after an error.
  void start(Index epoch) { prefetch_.start(epoch); }

  /// The epoch's next share, or nullptr after the last one. Gives the share before it back to the loader. Waits for the gather;
  /// what that has thrown is thrown here, again on every call until start().
  const Batch<Target>* next() { return prefetch_.next(); }

 private:
  static typename detail::Prefetch<Target>::Source source(const D& data) {
    const auto gather = [](const void* from, std::span<const Index> which, std::span<float> x, std::span<Target> y) {
      static_cast<const D*>(from)->gather(which, x, y);
    };
    return {std::addressof(data), gather, data.size(), data.sample_shape().elements(), data.target_shape().elements()};
  }

  D data_;
  detail::Prefetch<Target> prefetch_;  // last, so that its thread has ended before the data goes
};

}  // namespace pdp::data

#ifndef PDP_SEPARATE_CORE
#include <pdp/data/source/loader.hpp>
#endif
