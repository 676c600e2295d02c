#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>

#include <pdp/core/error.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/data/per_rank.hpp>
#include <pdp/data/training_epoch.hpp>

namespace pdp::data {

/// A dataset of any type with these targets and samples, which it borrows.
template <TargetElement T, SampleElement S = float>
class DatasetView {
 public:
  using Target = T;
  using Sample = S;

  template <class Data>
  requires(!std::same_as<Data, DatasetView> && Dataset<Data> && std::same_as<typename Data::Target, Target> &&
           std::same_as<SampleOf<Data>, Sample>) explicit DatasetView(const Data& data)
      : data_{&data},
        size_{[](const void* of) { return static_cast<const Data*>(of)->size(); }},
        sample_shape_{[](const void* of) { return static_cast<const Data*>(of)->sample_shape(); }},
        target_shape_{[](const void* of) { return static_cast<const Data*>(of)->target_shape(); }},
        gather_{[](const void* of, std::span<const Index> which, std::span<Sample> x, std::span<Target> y) {
          static_cast<const Data*>(of)->gather(which, x, y);
        }},
        gather_in_epoch_{[](const void* of, std::span<const Index> which, std::span<Sample> x, std::span<Target> y,
                            const TrainingEpoch& epoch) { data::gather_in_epoch(*static_cast<const Data*>(of), which, x, y, epoch); }} {}

  [[nodiscard]] Index size() const { return size_(data_); }
  [[nodiscard]] Shape sample_shape() const { return sample_shape_(data_); }
  [[nodiscard]] Shape target_shape() const { return target_shape_(data_); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y) const { gather_(data_, which, x, y); }
  void gather(std::span<const Index> which, std::span<Sample> x, std::span<Target> y, const TrainingEpoch& epoch) const {
    gather_in_epoch_(data_, which, x, y, epoch);
  }

 private:
  const void* data_;
  Index (*size_)(const void*);
  Shape (*sample_shape_)(const void*);
  Shape (*target_shape_)(const void*);
  void (*gather_)(const void*, std::span<const Index>, std::span<Sample>, std::span<Target>);
  void (*gather_in_epoch_)(const void*, std::span<const Index>, std::span<Sample>, std::span<Target>, const TrainingEpoch&);
};

/// Returns a view of a dataset, which it borrows.
template <Dataset Data>
[[nodiscard]] DatasetView<typename Data::Target, SampleOf<Data>> view_of(const Data& data) {
  return DatasetView<typename Data::Target, SampleOf<Data>>{data};
}

/// A pointer to a dataset of any type, or to none.
class AnyDataset {
 public:
  AnyDataset() = default;
  template <Dataset Data>
  AnyDataset(const Data* data) : is_per_rank_{data::is_per_rank<Data>} {
    if (data != nullptr) view_.template emplace<DatasetView<typename Data::Target, SampleOf<Data>>>(*data);
  }

  [[nodiscard]] explicit operator bool() const { return view_.index() > 0; }
  /// Whether the dataset is a PerRank, of which get() shows the part of this rank.
  [[nodiscard]] bool is_per_rank() const { return is_per_rank_; }
  /// Returns the dataset. Throws ConfigError if there is none, or if its targets or its samples are of another type.
  template <TargetElement Target, SampleElement Sample = float>
  [[nodiscard]] const DatasetView<Target, Sample>& get() const {
    if (const auto* view = std::get_if<DatasetView<Target, Sample>>(&view_)) return *view;
    if (!*this) throw ConfigError{"there is no dataset"};
    using Other = DatasetView<Target, std::conditional_t<std::same_as<Sample, float>, std::int32_t, float>>;
    if (std::holds_alternative<Other>(view_)) {
      const auto of = [](bool tokens) { return tokens ? "tokens (std::int32_t)" : "numbers (float)"; };
      throw ConfigError{text("the samples of the dataset are ", of(std::same_as<Sample, float>), ", but the model takes ",
                             of(!std::same_as<Sample, float>), "; give a dataset with such samples")};
    }
    const auto of = [](bool classes) { return classes ? "classes (std::int32_t)" : "numbers (float)"; };
    throw ConfigError{text("the targets of the dataset are ", of(!std::same_as<Target, std::int32_t>), ", but the loss takes ",
                           of(std::same_as<Target, std::int32_t>))};
  }

 private:
  std::variant<std::monostate, DatasetView<std::int32_t>, DatasetView<float>, DatasetView<std::int32_t, std::int32_t>,
               DatasetView<float, std::int32_t>>
      view_;
  bool is_per_rank_ = false;
};

static_assert(Dataset<DatasetView<float>> && Dataset<DatasetView<std::int32_t, std::int32_t>>);

}  // namespace pdp::data
