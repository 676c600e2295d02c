#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/matrix.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/dataset.hpp>
#include <pdp/engine/batch.hpp>
#include <pdp/engine/groups.hpp>
#include <pdp/plan/plan.hpp>
#include <pdp/train/dataset_checks.hpp>
#include <pdp/train/dataset_chunks.hpp>

namespace pdp::detail {

/// Returns an engine's outputs for any number of rows, in chunks that its memory is for. Ranks that predict together make the same number
/// of calls.
template <comm::Communicator C, class Engine>
[[nodiscard]] std::vector<typename Engine::Input> predict(C& world, Engine& engine, const plan::Plan& plan,
                                                          Matrix<const typename Engine::Input> rows) {
  std::vector<typename Engine::Input> outputs;
  const Index chunk = engine.evaluation_rows();
  Index chunks = (rows.rows + chunk - 1) / chunk;
  const auto is_compute = [](const plan::Instruction& i) { return i.op == plan::Op::forward || i.op == plan::Op::loss; };
  if (!std::ranges::all_of(plan.evaluate, is_compute))
    engine::HostCalls{world, engine.stage().device()}.all_reduce(std::span{&chunks, 1}, comm::Max{});
  for (Index number = 0; number < chunks; ++number) {
    const Index first = std::min(number * chunk, rows.rows);
    const auto part = engine.predict({rows.row(first), std::min(chunk, rows.rows - first), rows.cols}).values();
    outputs.insert(outputs.end(), part.begin(), part.end());
  }
  return outputs;
}

/// Returns the totals over a dataset, of which this rank evaluates its share. `outputs`: the outputs of the model.
template <comm::Communicator C, class Engine, class Loss, data::Dataset Data>
[[nodiscard]] engine::Totals evaluate(C& world, Engine& engine, const Loss& loss, const Data& data, data::Shard share, Index inputs,
                                      Index outputs) {
  std::array<double, 3> sums{};
  for (DatasetChunks chunks{data, share, engine.evaluation_rows()}; chunks.next();) {
    check_targets(loss, chunks.targets(), chunks.samples(), outputs, std::nullopt);
    const engine::Totals totals = engine.evaluate({rows_of(chunks.inputs(), inputs), chunks.targets()});
    sums[0] += totals.loss;
    sums[1] += totals.correct;
    sums[2] += totals.rows;
  }
  engine::HostCalls{world, engine.stage().device()}.all_reduce(std::span<double>{sums}, comm::Sum{});
  return {sums[0], sums[1], sums[2]};
}

}  // namespace pdp::detail
