#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/traits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/metric/any.hpp>
#include <pdp/plan/instruction.hpp>
#include <pdp/report/page.hpp>
#include <pdp/train/describe.hpp>
#include <pdp/train/learning_rate.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/report_page.hpp>
#include <pdp/train/trainer.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp {

namespace detail {

/// Returns the name of a communicator's backend.
template <class C>
[[nodiscard]] std::string_view backend_of(const C& world) {
  if constexpr (requires {
                  { world.name() } -> std::convertible_to<std::string_view>;
                })
    return world.name();
  else
    return comm::traits_of<C>.name;
}

/// Describes what each rank of a trainer holds, sends and waits for.
template <class C, class S, class TaskType, SupportedPrecision P, Device D>
[[nodiscard]] plan::Description description_of(Trainer<C, S, TaskType, P, D>& trainer) {
  return pdp::describe(trainer.task(), trainer.strategy(), trainer.world(), trainer.options(), trainer.engine().stage().device(), P{});
}

}  // namespace detail

/// Makes a page about a training: curves of loss, metrics and learning rate, times of steps, memory, the plan, a timeline of one step and
/// the environment. The page is one HTML file without scripts. Borrows the trainer. Every rank makes a Report, and the same calls on it.
/// Rank 0 writes the file.
///
///     pdp::Report report{trainer, "run.html"};
///     trainer.fit(data, {.epochs = 3}, [&](const pdp::Epoch& epoch) { report.epoch(epoch); },
///                 [&](std::int64_t step, const auto& totals) { report.step(step, totals); });
///     report.write();
///
/// A step sends no message for it and allocates nothing, however long the training is. The first steps are traced, up to the one of the
/// timeline; see Trainer::trace.
template <class Trainer>
class Report {
 public:
  /// Throws ConfigError or FileError on rank 0 if the file has another extension than .html or .htm, or cannot be written.
  Report(Trainer& trainer, std::filesystem::path file, const ReportOptions& options = {})
      : trainer_{trainer}, page_{std::move(file), options, trainer.world().rank() == 0}, traced_{options.traced_step} {
    trainer_.trace(traced_ >= 0);
    if (page_.is_root()) describe();
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  /// Without write(), writes the figures that rank 0 has. So the page of a training that an exception ends is there, too.
  ~Report() {
    if (!is_written_ && page_.is_root() && page_.record.steps() > 0) page_.write_after_failure();
  }

  /// Call it after each step, with the number of the step and its totals, as fit() passes them to on_step.
  void step(std::int64_t number, const engine::Totals& totals) {
    if (page_.record.steps() == traced_) trainer_.trace(false);
    page_.record.step(number, {.loss = totals.mean_loss(),
                               .accuracy = has_accuracy ? totals.accuracy() : not_a_number<double>(),
                               .rate = detail::learning_rate_of(trainer_.task(), number, trainer_.learning_rate_factor()),
                               .gradient_norm = totals.gradient_norm,
                               .rows = totals.rows + totals.ignored,
                               .seconds = totals.seconds});
    is_written_ = false;
  }
  /// Call it after each epoch, as fit() passes it to on_epoch.
  /// The results of a validation, and the metrics of the training set, become metrics.
  void epoch(const Epoch& epoch) {
    page_.record.epoch({epoch.number, epoch.loss, epoch.accuracy, epoch.seconds});
    if (epoch.training)
      for (const metric::Result& each : epoch.training->metrics)
        if (each.values.size() == 1) metric("training " + each.name, each.value());
    if (!epoch.validation) return;
    metric("validation loss", epoch.validation->mean_loss());
    if (has_accuracy) metric("validation accuracy", epoch.validation->accuracy());
    for (const metric::Result& each : epoch.validation->metrics)
      if (each.values.size() == 1) metric(each.name, each.value());
  }
  /// Adds a number that the program has measured after the last step, such as the accuracy on a test set. A metric whose name ends in
  /// "loss" or "accuracy" is drawn together with the loss or the accuracy of the batches, others are drawn alone. Throws ConfigError if
  /// there are more than 16 names.
  void metric(std::string_view name, double value) { page_.record.metric(name, value); }

  /// Collects the figures of all ranks on rank 0, which writes the file. It replaces an old file only when it is complete. Throws FileError
  /// on rank 0 if that fails.
  void write() {
    constexpr std::size_t numbers = detail::ReportPage::rank_numbers;
    const std::array<std::int64_t, numbers> own = page_.of_rank();
    auto& world = trainer_.world();
    const std::vector<std::size_t> counts(as_size(world.size()), numbers);
    std::vector<std::int64_t> all(page_.is_root() ? numbers * counts.size() : 0);
    engine::HostCalls{world, trainer_.engine().stage().device()}.gather(std::span<const std::int64_t>{own}, std::span{all},
                                                                        std::span<const std::size_t>{counts}, 0);
    page_.figures.timeline = trainer_.timeline();
    is_written_ = true;
    if (!page_.is_root()) return;
    page_.set_ranks(all);
    page_.write();
  }

 private:
  static constexpr bool has_accuracy = std::remove_cvref_t<decltype(std::declval<Trainer&>().task().loss)>::has_classes;

  /// Sets the figures that are known before the first step.
  void describe() {
    constexpr int most = 1024;  // ranks; to describe more takes seconds
    report::Figures& figures = page_.figures;
    figures.has_accuracy = has_accuracy;
    if (!detail::has_learning_rate<std::remove_cvref_t<decltype(trainer_.task())>>) figures.rate_name = "Factor of the learning rate";
    if (trainer_.world().size() <= most) figures.plan = detail::description_of(trainer_);
    for (const plan::Instruction& each : trainer_.engine().plan().step) figures.instructions.push_back(plan::describe(each));
    page_.describe_environment(detail::backend_of(trainer_.world()), trainer_.world().size(),
                               figures.plan ? figures.plan->device : std::string{});
  }

  Trainer& trainer_;
  detail::ReportPage page_;
  Index traced_;
  bool is_written_ = false;
};

}  // namespace pdp
