#pragma once

/// Definitions for pdp/report/page.hpp; see pdp/core/separate_compilation.hpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/version.hpp>
#include <pdp/report/activity.hpp>
#include <pdp/report/chart.hpp>
#include <pdp/report/curve.hpp>
#include <pdp/report/html.hpp>
#include <pdp/report/page.hpp>
#include <pdp/report/record.hpp>
#include <pdp/report/sample.hpp>
#include <pdp/report/step_chart.hpp>
#include <pdp/report/style.hpp>
#include <pdp/verify/describe.hpp>

namespace pdp::report {

namespace detail {

/// The most rows of a table of ranks, and bars of a chart of them.
constexpr std::size_t most_rows = 256, most_bars = 16;

/// Returns the words for the values of a curve that are NaN or infinite; empty if there are none.
PDP_INLINE std::string not_finite_text(const Curve& curve) {
  if (curve.not_finite() == 0) return {};
  return fmt::format("NaN or infinite in {}, first in step {}.", counted(curve.not_finite(), "step"), whole(curve.first_not_finite()));
}

/// Returns the points of the samples per second, which are means of whole buckets.
PDP_INLINE std::vector<Point> throughput_points(const Record& record) {
  std::vector<Point> points = points_of(record.rows);
  for (std::size_t at = 0; at < points.size(); ++at) {
    const double seconds = record.seconds.buckets()[at].mean;
    points[at].middle = seconds > 0 ? record.rows.buckets()[at].mean / seconds : 0;
    points[at].low = points[at].high = points[at].middle;
    points[at].is_drawn = seconds > 0;
  }
  return points;
}

/// Returns the histogram of the times of steps. The few times beyond its end are in the note.
PDP_INLINE Histogram histogram_of(const Sample& times) {
  Histogram histogram{"step-time-histogram", "Step times", {}, {}, 0, 1, {}};
  const std::vector<double> sorted = times.sorted();
  if (sorted.empty()) return histogram;
  const double least = times.low(), usual = quantile(sorted, 0.995), spread = std::max(usual - least, 1e-3 * usual);
  const TimeUnit unit = unit_of(quantile(sorted, 0.5));
  constexpr double bars = 24;
  histogram.unit = unit.name;
  histogram.title += fmt::format(" ({})", unit.name);
  histogram.low = least / unit.seconds;
  histogram.high = (least + std::max(spread * 1.02, 1e-9)) / unit.seconds;
  histogram.counts.assign(as_size(static_cast<int>(bars)), 0);
  std::int64_t beyond = 0;
  for (const double seconds : sorted) {
    const double place = bars * (seconds / unit.seconds - histogram.low) / (histogram.high - histogram.low);
    if (place < bars)
      ++histogram.counts[static_cast<std::size_t>(std::max(place, 0.0))];
    else
      ++beyond;
  }
  histogram.note = fmt::format("Median {}, 95 % below {}, longest {}.", time_text(quantile(sorted, 0.5)), time_text(quantile(sorted, 0.95)),
                               time_text(times.high()));
  if (beyond > 0) histogram.note += fmt::format(" {} longer than these bars.", beyond == 1 ? "One is" : fmt::format("{} are", beyond));
  if (as_index(sorted.size()) < times.count())
    histogram.note += fmt::format(" The bars count a random sample of {} steps.", whole(as_index(sorted.size())));
  return histogram;
}

PDP_INLINE std::string tile(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
}

PDP_INLINE std::string summary_of(const Figures& figures, const Record& record) {
  std::string html = "<dl class=\"tiles\" id=\"summary\">\n";
  if (record.steps() > 0) html += tile("last loss", number(record.loss.last()));
  if (record.steps() > 0 && figures.has_accuracy) html += tile("last accuracy", number(record.accuracy.last()));
  for (const Record::Metric& metric : record.metrics()) html += tile(fmt::format("last {}", metric.name), number(metric.values.last()));
  html += tile("steps", whole(record.steps()));
  if (record.steps() > 0) html += tile("samples/s", number(record.throughput()));
  html += tile("time", time_text(figures.seconds));
  if (figures.plan) {
    html += tile("ranks", whole(as_index(figures.plan->ranks.size())));
    html += tile("parameters", whole(figures.plan->parameters));
  }
  return html + "</dl>\n";
}

/// Adds the metrics whose names end in `ending` to a chart, as far as it has colours.
PDP_INLINE void add_metrics(LineChart& chart, const Record& record, std::string_view ending) {
  constexpr std::size_t most_lines = 4;
  for (const Record::Metric& metric : record.metrics())
    if (metric.name.ends_with(ending) && chart.lines.size() < most_lines)
      chart.lines.push_back({metric.name, points_of(metric.values), true});
}

PDP_INLINE std::string curves_of(const Figures& figures, const Record& record) {
  LineChart loss{.id = "loss", .title = "Loss", .lines = {{"batch", points_of(record.loss)}}, .note = not_finite_text(record.loss)};
  loss.may_be_logarithmic = true;
  add_metrics(loss, record, "loss");
  LineChart accuracy{.id = "accuracy", .title = "Accuracy", .lines = {}, .note = {}};
  if (figures.has_accuracy) accuracy.lines.push_back({"batch", points_of(record.accuracy)});
  add_metrics(accuracy, record, "accuracy");
  const TimeUnit unit = unit_of(record.seconds.high());
  std::string html = html_of(loss);
  if (!accuracy.lines.empty()) html += html_of(accuracy);
  for (std::size_t at = 0; at < record.metrics().size(); ++at) {
    const Record::Metric& metric = record.metrics()[at];
    if (metric.name.ends_with("loss") || metric.name.ends_with("accuracy")) continue;
    html += html_of(LineChart{.id = fmt::format("metric-{}", at),
                              .title = metric.name,
                              .lines = {{metric.name, points_of(metric.values), true}},
                              .note = not_finite_text(metric.values)});
  }
  html += html_of(
      LineChart{.id = "learning-rate", .title = figures.rate_name, .lines = {{figures.rate_name, points_of(record.rate)}}, .note = {}});
  if (record.gradient_norm.high() > 0) {
    html += html_of(LineChart{.id = "gradient-norm",
                              .title = "Norm of the gradient before clipping",
                              .lines = {{"norm", points_of(record.gradient_norm)}},
                              .note = not_finite_text(record.gradient_norm),
                              .may_be_logarithmic = true});
  }
  html += html_of(LineChart{.id = "step-time",
                            .title = fmt::format("Time of each step ({})", unit.name),
                            .lines = {{"time", points_of(record.seconds, unit.seconds)}},
                            .note = "The first steps are traced for the timeline, so they may take longer.",
                            .may_be_logarithmic = true});
  html += html_of(histogram_of(record.times()));
  return html + html_of(LineChart{.id = "throughput",
                                  .title = "Samples per second",
                                  .lines = {{"samples per second", throughput_points(record)}},
                                  .note = "Samples of all ranks, divided by the time of the step.",
                                  .from_zero = true});
}

/// Returns a chart of the memory of the ranks that need most.
PDP_INLINE std::string memory_of(const Figures& figures) {
  StackedBars chart{"memory", "Memory of each rank", {}, {"parameters", "gradients", "optimizer", "activations"}, {}};
  if (!figures.plan) return html_of(chart);
  const auto& uses = figures.plan->ranks;
  const auto sum = [&](std::size_t rank) { return uses[rank].memory(); };
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > most_bars) {
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sum(a) > sum(b); });
    order.resize(most_bars);
    chart.note = fmt::format("The {} ranks that need most. ", most_bars);
  }
  for (const std::size_t rank : order) {
    const plan::RankUse& use = uses[rank];
    chart.bars.push_back(
        {fmt::format("rank {}", rank),
         plan::detail::byte_text(sum(rank)),
         {as_double(use.parameters), as_double(use.gradients), as_double(use.optimizer_state), as_double(use.activations)}});
  }
  chart.note += "Memory of the training as planned. The table of ranks has the memory of whole processes.";
  return html_of(chart);
}

PDP_INLINE std::string plan_of(const Figures& figures) {
  std::string html = "<section class=\"card wide\" id=\"plan\"><h2>Plan</h2>\n";
  if (!figures.plan) return html + "<p class=\"note\">Not described for this many ranks.</p></section>\n";
  const plan::Description& plan = *figures.plan;
  html += fmt::format("<p>{} samples a step on {}, {} parameters, bubble {} %.</p>\n", whole(plan.global_batch),
                      counted(as_index(plan.ranks.size()), "rank"), whole(plan.parameters), std::lround(100 * plan.bubble()));
  Table table{"What each rank holds, and sends in a step",
              {"rank", "layers", "samples", "parameters", "gradients", "optimizer", "activations", "memory", "calls", "sent", "idle",
               "checkpoint"}};
  const auto add = [&](const std::string& name, const std::string& layers, const std::string& samples, const plan::RankUse& use,
                       const std::string& idle) {
    using plan::detail::byte_text;
    table.row({name, layers, samples, byte_text(use.parameters), byte_text(use.gradients), byte_text(use.optimizer_state),
               byte_text(use.activations), byte_text(use.memory()), whole(use.calls), byte_text(use.sent), idle,
               byte_text(use.checkpoint)});
  };
  for (std::size_t rank = 0; rank < plan.ranks.size() && rank < most_rows; ++rank) {
    const plan::RankUse& use = plan.ranks[rank];
    add(fmt::format("{}", rank), plan::detail::layers_text(use), whole(use.rows), use, fmt::format("{} %", std::lround(100 * use.idle)));
  }
  if (plan.ranks.size() > 1) add("all", {}, {}, plan.total(), {});
  html += table.html();
  if (plan.ranks.size() > most_rows) html += fmt::format("<p class=\"note\">The first {} ranks.</p>\n", most_rows);
  std::vector<std::string> notes = plan::detail::layer_lines(plan);
  if (notes.size() > most_rows) notes.resize(most_rows);
  for (const std::string& each : {plan::detail::mapped_text(plan), plan.warning()})
    if (!each.empty()) notes.push_back(each);
  for (const std::string& each : notes) html += fmt::format("<p class=\"note\">{}.</p>\n", escaped(each));
  std::string list = "<ol start=\"0\">\n";
  for (std::size_t at = 0; at < figures.instructions.size() && at < most_rows; ++at)
    list += fmt::format("<li>{}</li>\n", escaped(figures.instructions[at]));
  list += "</ol>\n";
  if (figures.instructions.size() > most_rows) list += fmt::format("<p class=\"note\">The first {} instructions.</p>\n", most_rows);
  if (!figures.instructions.empty())
    html += details(fmt::format("The {} of rank 0 in a step", counted(as_index(figures.instructions.size()), "instruction")), list);
  return html + "</section>\n";
}

PDP_INLINE std::string ranks_of(const Figures& figures) {
  Table table{"Times of steps, and the most memory that the process of the rank has used",
              {"rank", "host", "process", "mean", "median", "95 % below", "longest", "memory of the process"}};
  for (std::size_t rank = 0; rank < figures.ranks.size() && rank < most_rows; ++rank) {
    const RankFigures& of = figures.ranks[rank];
    table.row({fmt::format("{}", rank), of.host, fmt::format("{}", of.process), time_text(of.mean), time_text(of.median),
               time_text(of.slow), time_text(of.longest), plan::detail::byte_text(of.memory)});
  }
  std::string html = "<section class=\"card wide\" id=\"ranks\"><h2>Ranks</h2>\n" + table.html();
  if (figures.ranks.size() > most_rows) html += fmt::format("<p class=\"note\">The first {} ranks.</p>\n", most_rows);
  return html + "</section>\n";
}

/// Returns tables of the numbers behind the curves.
PDP_INLINE std::string numbers_of(const Figures& figures, const Record& record) {
  Table steps{"Numbers of the steps", {"steps", "loss", "least", "largest", "accuracy", "learning rate", "time", "samples per second"}};
  const std::vector<Point> throughput = throughput_points(record);
  const auto mean = [](const Curve::Bucket& bucket) { return bucket.values > 0 ? number(bucket.mean) : std::string{"NaN"}; };
  const auto accuracy = [&](const Curve& curve, std::size_t at) { return figures.has_accuracy ? mean(curve.buckets()[at]) : "none"; };
  for (std::size_t at = 0; at < record.loss.buckets().size(); ++at) {
    const Curve::Bucket& loss = record.loss.buckets()[at];
    const std::string from = whole(loss.first);
    steps.row({loss.first == loss.last ? from : fmt::format("{} to {}", from, whole(loss.last)), mean(loss),
               loss.values > 0 ? number(loss.low) : "NaN", loss.values > 0 ? number(loss.high) : "NaN", accuracy(record.accuracy, at),
               mean(record.rate.buckets()[at]), time_text(record.seconds.buckets()[at].mean), number(throughput[at].middle)});
  }
  Table epochs{"Epochs", {"epoch", "loss", "accuracy", "time"}};
  for (std::size_t at = 0; at < record.epoch_loss.buckets().size(); ++at) {
    const Curve::Bucket& loss = record.epoch_loss.buckets()[at];
    epochs.row({loss.first == loss.last ? whole(loss.first) : fmt::format("{} to {}", whole(loss.first), whole(loss.last)), mean(loss),
                accuracy(record.epoch_accuracy, at), time_text(record.epoch_seconds.buckets()[at].mean)});
  }
  std::string html =
      "<section class=\"card wide\" id=\"numbers\"><h2>Numbers</h2>\n<p class=\"note\">A row for several steps or epochs has their "
      "means.</p>\n";
  if (!record.epoch_loss.empty()) html += details("Epochs", epochs.html());
  html += details("Steps", steps.html());
  for (const Record::Metric& metric : record.metrics()) {
    Table table{metric.name, {"step", "value"}};
    for (const Curve::Bucket& bucket : metric.values.buckets()) table.row({whole(bucket.last), mean(bucket)});
    html += details(metric.name, table.html());
  }
  return html + "</section>\n";
}

PDP_INLINE std::string environment_of(const Figures& figures) {
  std::string html = "<section class=\"card wide\" id=\"environment\"><h2>Environment</h2>\n<dl class=\"facts\">\n";
  for (const auto& [name, value] : figures.environment) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  return html + "</dl></section>\n";
}

}  // namespace detail

PDP_INLINE std::string page_of(const Figures& figures, const Record& record) {
  std::string colours;
  for (std::size_t at = 0; at < activities.size(); ++at)
    colours += fmt::format("svg .a{0}{{fill:{1}}}.legend .a{0}{{background:{1}}}\n", at, activities[at].colour);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"generator\" content=\"pdp {}\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
      version, escaped(figures.title), style, colours);
  html += fmt::format("<header><h1>{}</h1>\n<p>{}</p>\n", escaped(figures.title), escaped(figures.date));
  if (!figures.warning.empty()) html += fmt::format("<p class=\"warning\" id=\"warning\">{}</p>\n", escaped(figures.warning));
  if (record.first_step() > 0)
    html += fmt::format("<p id=\"earlier\">This run continues a training: the steps before {} are not shown.</p>\n",
                        whole(record.first_step()));
  html += "</header>\n<main>\n" + detail::summary_of(figures, record);
  html += "<div class=\"charts\">\n" + detail::curves_of(figures, record) + "</div>\n" + detail::memory_of(figures);
  html += html_of(figures.timeline) + detail::plan_of(figures) + detail::ranks_of(figures) + detail::numbers_of(figures, record);
  return html + detail::environment_of(figures) + "</main>\n</body>\n</html>\n";
}

}  // namespace pdp::report
