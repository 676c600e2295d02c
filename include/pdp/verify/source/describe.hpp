#pragma once

/// Definitions for pdp/verify/describe.hpp; see pdp/core/separate_compilation.hpp.

#if !__has_include(<fmt/format.h>)
#error "pdp needs fmt 9 or newer (Debian: libfmt-dev)"
#include <see the error above>
#endif
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/precision.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/plan/cuts.hpp>
#include <pdp/plan/gradient_policy.hpp>
#include <pdp/plan/layout.hpp>
#include <pdp/plan/liveness.hpp>
#include <pdp/verify/describe.hpp>
#include <pdp/verify/verify.hpp>

namespace pdp::plan {

namespace detail {

PDP_INLINE RankUse use_of(const Outline& model, const std::vector<Plan>& plans, int rank, const Workload& work) {
  const Plan& plan = plans[as_size(rank)];
  const ElementBytes& bytes = work.bytes;
  const Layout layout = plan::layout(plan, model);
  RankUse use;
  use.rows = (work.global_batch + plan.share.count - 1) / plan.share.count;
  const Index micro_rows = micro_batch_rows(plan, use.rows);
  for (const Unit& unit : plan.units) use.layers.emplace_back(unit.first, unit.last);
  std::ranges::sort(use.layers);
  for (std::size_t at = 1; at < use.layers.size();) {
    if (use.layers[at - 1].second == use.layers[at].first) {
      use.layers[at - 1].second = use.layers[at].second;
      use.layers.erase(use.layers.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  use.parameters = bytes.compute * layout.values.elements() + (bytes.compute != bytes.master ? bytes.master * layout.updated() : 0);
  use.gradients = bytes.master * (layout.gradients.elements() + Layout::sum(layout.scratch)) +
                  (bytes.reduce != bytes.master ? bytes.reduce * Layout::sum(layout.rounded) : 0);
  use.optimizer_state = bytes.master * as_index(work.state_fields) * layout.updated();
  for (std::size_t number = 0; number < plan.units.size(); ++number) {
    const Unit& unit = plan.units[number];  // ranks that update the same elements divide them
    const Index copies = unit.sharding == Sharding::none && unit.group >= 0 ? as_index(members(plans, rank, unit.group).size()) : 1;
    const bool has_copy = unit.first <= model.tied_output && model.tied_output < unit.last;  // which is not saved
    const Index own = layout.units[number].slice - (has_copy ? model.elements(0, 1) / unit.slices : 0);
    use.checkpoint += bytes.master * as_index(1 + work.state_fields) * ((own + copies - 1) / copies);
  }
  use.activations = Boundaries{model, plan}.row_elements() * micro_rows * bytes.compute;
  for (std::size_t number = 0; number < plan.units.size() && work.common_memory; ++number) {
    const Unit& unit = plan.units[number];  // a rank reads its slice of others' gradients, and writes its slice of their parameters
    if (unit.sharding == Sharding::state)
      use.mapped += (bytes.compute + bytes.master) * layout.units[number].slice * as_index(unit.slices - 1);
  }

  for (const Instruction& i : plan.step) {
    const auto ranks = as_index(members(plans, rank, i.group).size());
    const auto of_unit = [&] { return layout.units[as_size(i.unit)].whole() * (i.op == Op::reduce_start ? bytes.reduce : bytes.compute); };
    const Index rows = std::clamp(use.rows - i.micro_batch * micro_rows, Index{0}, micro_rows);
    if (i.op == Op::send_start) {
      ++use.calls;
      use.sent += model.width(i.first) * rows * bytes.compute;
    }
    if (ranks == 1) continue;
    if (i.op == Op::sum_start || i.op == Op::share_loss) ++use.calls;
    if (i.op == Op::sum_start) use.sent += 2 * model.width(i.first) * rows * bytes.compute * (ranks - 1) / ranks;
    if (i.op == Op::sum_in_pause) {
      const nn::PauseSum sum = model.sum_of_pause(i.first, i.pause, i.tensor == Tensor::gradient);
      const Index size = sum.over == nn::SummedOver::parts ? rows * bytes.compute : static_cast<Index>(sizeof(double));
      ++use.calls;
      use.sent += 2 * sum.count * size * (ranks - 1) / ranks;
    }
    if (i.op == Op::norm_start || i.op == Op::totals_start || i.op == Op::sum_tied) ++use.calls;
    if (i.op == Op::sum_tied) use.sent += 2 * layout.units[as_size(i.unit)].slice * bytes.master * (ranks - 1) / ranks;
    if (i.op != Op::reduce_start && i.op != Op::gather_start) continue;
    ++use.calls;
    const Sharding sharding = plan.units[as_size(i.unit)].sharding;
    if (work.common_memory && sharding == Sharding::state) continue;
    const bool whole = i.op == Op::reduce_start && sharding == Sharding::none;
    use.sent += of_unit() * (ranks - 1) / ranks * (whole ? 2 : 1);
  }
  return use;
}

PDP_INLINE std::string byte_text(Index bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = as_double(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit > 0 && value < 10 ? 1 : 0, units[unit]);
}

PDP_INLINE std::string layers_text(const RankUse& use) {
  std::string layers;
  for (const auto& [first, last] : use.layers)
    layers += pdp::text(layers.empty() ? "" : ", ", first, last - first > 1 ? pdp::text(" to ", last - 1) : std::string{});
  return layers.empty() ? "none" : layers;
}

PDP_INLINE std::vector<std::string> layer_lines(const Description& description) {
  constexpr int most = 8;  // names in a line
  std::vector<std::string> lines;
  std::vector<std::vector<std::pair<int, int>>> seen;
  for (const RankUse& use : description.ranks) {
    if (use.layers.empty() || description.layers.empty() || std::ranges::find(seen, use.layers) != seen.end()) continue;
    seen.push_back(use.layers);
    std::vector<int> numbers;
    for (const auto& [first, last] : use.layers)
      for (int layer = first; layer < last; ++layer) numbers.push_back(layer);
    Index parameters = 0, buffers = 0, frozen = 0;
    std::string names;
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      const nn::LayerInfo& layer = description.layers[as_size(numbers[at])];
      parameters += layer.parameters;
      buffers += layer.buffers;
      frozen += layer.frozen;
      const bool is_shown = as_index(numbers.size()) <= most || as_index(at) < most - 1 || at + 1 == numbers.size();
      if (is_shown) names += pdp::text(at == 0 ? "" : ", ", layer.text());
      if (as_index(numbers.size()) > most && as_index(at) == most - 1) names += ", ...";
    }
    std::string of_these;
    if (buffers > 0) of_these = pdp::text(buffers, " in buffers");
    if (frozen > 0) of_these += pdp::text(buffers > 0 ? ", " : "", frozen, " frozen");
    if (!of_these.empty()) of_these = pdp::text(" (", of_these, ")");
    lines.push_back(
        pdp::text(numbers.size() == 1 ? "layer " : "layers ", layers_text(use), ": ", parameters, " parameters", of_these, ": ", names));
  }
  return lines;
}

PDP_INLINE std::string mapped_text(const Description& description) {
  const RankUse total = description.total();
  if (total.mapped == 0) return {};
  return pdp::text("the ranks hold ", byte_text(total.memory()), " together; if they are processes, their resident memory adds up to ",
                   byte_text(total.memory() + total.mapped), ", since each also counts the memory of other ranks that it uses");
}

PDP_INLINE std::string table_text(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::string words;
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column) widths[column] = std::max(widths[column], row[column].size());
  for (const auto& row : rows) {
    if (!words.empty()) words += '\n';
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string space(widths[column] - row[column].size(), ' ');
      words += (column > 0 ? "  " : "") + (column < left ? row[column] + space : space + row[column]);
    }
  }
  return words;
}

}  // namespace detail

PDP_INLINE Description describe(const Outline& model, const std::vector<Plan>& plans, const Workload& work,
                                std::vector<nn::LayerInfo> layers) {
  if (const Verdict verdict = verify(model, plans); !verdict) throw PlanError{explain(verdict, plans)};
  Description found{.global_batch = work.global_batch, .ranks = {}, .device = {}, .layers = std::move(layers)};
  for (const nn::LayerInfo& layer : found.layers) found.parameters += layer.whole;
  if (found.layers.empty()) found.parameters = model.elements(0, model.size());
  const std::vector<double> idle = idle_of(model, plans);
  for (int rank = 0; rank < as_int(plans.size()); ++rank) {
    found.ranks.push_back(detail::use_of(model, plans, rank, work));
    found.ranks.back().idle = idle[as_size(rank)];
  }
  return found;
}

PDP_INLINE RankUse Description::total() const {
  RankUse total;
  for (const RankUse& use : ranks) {
    total.parameters += use.parameters;
    total.gradients += use.gradients;
    total.optimizer_state += use.optimizer_state;
    total.activations += use.activations;
    total.calls += use.calls;
    total.sent += use.sent;
    total.checkpoint += use.checkpoint;
    total.mapped += use.mapped;
  }
  return total;
}

PDP_INLINE std::string Description::warning() const {
  Index needed = 0;
  const auto end = std::min(as_index(machine.first_rank) + machine.ranks, as_index(ranks.size()));
  for (Index rank = machine.first_rank; rank < end; ++rank) needed += ranks[as_size(rank)].memory();
  if (machine.memory == 0 || needed <= machine.memory) return {};
  return pdp::text("warning: the ", end - machine.first_rank, end - machine.first_rank == 1 ? " rank" : " ranks", " of this machine need ",
                   detail::byte_text(needed), ", but it has ", detail::byte_text(machine.memory),
                   " of memory; use more machines, a smaller batch, or a strategy that divides what is largest");
}

PDP_INLINE std::string Description::text() const {
  std::vector<std::vector<std::string>> rows{{"rank", "layers", "samples", "parameters", "gradients", "optimizer", "activations", "memory",
                                              "calls", "sent", "idle", "checkpoint"}};
  const auto add = [&rows](std::string name, std::string layer_names, std::string samples, const RankUse& use, std::string idle) {
    rows.push_back({std::move(name), std::move(layer_names), std::move(samples), detail::byte_text(use.parameters),
                    detail::byte_text(use.gradients), detail::byte_text(use.optimizer_state), detail::byte_text(use.activations),
                    detail::byte_text(use.memory()), pdp::text(use.calls), detail::byte_text(use.sent), std::move(idle),
                    detail::byte_text(use.checkpoint)});
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankUse& use = ranks[rank];
    add(pdp::text(rank), detail::layers_text(use), pdp::text(use.rows), use, pdp::text(std::lround(100 * use.idle), " %"));
  }
  if (ranks.size() > 1) add("total", {}, {}, total(), {});
  std::string words = pdp::text(parameters, " parameters, ", global_batch, " samples a step, ", ranks.size(),
                                ranks.size() == 1 ? " rank" : " ranks", ", bubble ", std::lround(100 * bubble()), " %\n");
  words += detail::table_text(rows);
  for (const std::string& line : detail::layer_lines(*this)) words += '\n' + line;
  for (const std::string& line : {detail::mapped_text(*this), device, warning()})
    if (!line.empty()) words += '\n' + line;
  return words;
}

}  // namespace pdp::plan
