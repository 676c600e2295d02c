#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/dataset_requirements.hpp>
#include <pdp/data/in_memory.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// A dataset that is already divided: each rank has a part of its own, as in trainer.fit(data::PerRank{part}, options). Parts may differ in
/// size, and some may be empty. Ranks that take the same share of a batch, as in a pipeline or a tensor-parallel group, give the same part.
///
/// The whole dataset consists of the parts in the order of shares. Each share of a global batch comes from its own part, and every sample
/// is used once in an epoch (see PartBatches). On one rank, PerRank{set} trains as set does.
template <class D>
class PerRank {
  static_assert(detail::DatasetRequirements<D>::hold);

 public:
  using Target = typename D::Target;
  using Sample = SampleOf<D>;

  /// Takes the part of this rank.
  explicit PerRank(D part) : part_{std::move(part)} {}

  [[nodiscard]] const D& part() const { return part_; }

  /// These describe the part of this rank.
  [[nodiscard]] Index size() const { return part_.size(); }
  [[nodiscard]] Shape sample_shape() const { return part_.sample_shape(); }
  [[nodiscard]] Shape target_shape() const { return part_.target_shape(); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const { part_.gather(which, x, y); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, const TrainingEpoch& epoch) const {
    gather_in_epoch(part_, which, x, y, epoch);
  }

 private:
  D part_;
};

/// Whether a dataset is a PerRank.
template <class D>
inline constexpr bool is_per_rank = false;
template <class D>
inline constexpr bool is_per_rank<PerRank<D>> = true;

static_assert(Dataset<PerRank<InMemory<std::int32_t>>>);
static_assert(Dataset<PerRank<InMemory<float>>>);

}  // namespace pdp::data
