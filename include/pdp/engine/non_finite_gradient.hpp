#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/engine/gradient_norm.hpp>
#include <pdp/engine/host_calls.hpp>

namespace pdp::engine {

/// Every rank of the world makes this call, and throws the same: on which rank the gradient of which tensor was not finite, of several the
/// one that is nearest to the loss, and there on the lowest rank. Of a name the first 64 letters are told.
template <comm::Communicator C, class Stage>
[[noreturn]] void throw_non_finite_gradient(C& world, Stage& stage, const GradientNorm<Stage>& norm, std::int64_t step) {
  HostCalls calls{world, stage.device()};
  const auto culprit = norm.culprit(stage.device());
  std::int64_t found = culprit.layer < 0 ? -1 : std::int64_t{culprit.layer} * world.size() + (world.size() - 1 - world.rank());
  calls.all_reduce(std::span{&found, 1}, comm::Max{});
  constexpr const char* what_to_do =
      "and no parameter has been changed; look at the samples of that step, lower the learning rate, or skip such steps "
      "(NonFinite::skip)";
  if (found < 0)
    throw NonFiniteGradient{text("step ", step, ": the gradient is finite on each rank, but its sum over all ranks is not, ", what_to_do)};
  const int rank = world.size() - 1 - as_int(found % world.size());
  std::array<std::byte, 64> letters{};
  std::string name = culprit.name;
  std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(name.size(), letters.size())), letters.begin(),
                 [](char letter) { return static_cast<std::byte>(letter); });
  calls.broadcast(std::span<std::byte>{letters}, rank);
  name.clear();
  for (const std::byte letter : letters)
    if (letter != std::byte{}) name += static_cast<char>(letter);
  throw NonFiniteGradient{
      text("step ", step, ": the gradient of ", name, " on rank ", rank, " is not finite (NaN or infinity), ", what_to_do)};
}

}  // namespace pdp::engine
