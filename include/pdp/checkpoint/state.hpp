#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>
#include <pdp/optim/optimizer.hpp>

/// The state of a training in an engine, to and from the pieces of a checkpoint.
namespace pdp::checkpoint {

/// A place in a rank's memory for some elements of a tensor of a checkpoint.
struct Destination {
  std::size_t tensor = 0;                       // number in the manifest
  bool transposed = false;                      // PyTorch's tensor is the transpose of the one in memory
  std::vector<std::pair<Block, Index>> blocks;  // and the number of the first element of each in the place
  std::function<std::span<std::byte>()> begin;  // returns memory for the elements, in the checkpoint's element type
  std::function<void()> end;                    // called when the memory is filled; may be empty
};

/// Throws FileError unless the tensors of a checkpoint are those that are expected, or their transposes. `source` names it in messages.
void check_tensors(const std::vector<StoredTensor>& found, const std::vector<StoredTensor>& expected, std::string_view source);

/// Fills all destinations. Reads each piece once, and only those of which an element is needed. The checkpoint may hold a tensor or its
/// transpose. Throws FileError.
void fill(const PieceReader& from, const std::vector<Destination>& destinations);

/// Returns the number of a tensor in a list. It must be there.
[[nodiscard]] std::size_t number_of(const std::vector<StoredTensor>& tensors, std::string_view name, std::string_view state);

namespace detail {

template <class T>
inline constexpr const char* type_name = std::same_as<T, double> ? "F64" : "F32";

template <class Engine>
using OptimizerOf = std::remove_cvref_t<decltype(std::declval<Engine&>().optimizer())>;

}  // namespace detail

/// Returns the tensors of an engine's whole model and optimizer, those of other ranks included.
template <class Engine>
[[nodiscard]] std::vector<StoredTensor> tensors_of(Engine& engine) {
  using Optimizer = detail::OptimizerOf<Engine>;
  const char* type = detail::type_name<typename Engine::Gradient>;
  std::vector<StoredTensor> tensors;
  for (const nn::LayerParameter& each : engine.stage().of_model()) {
    tensors.push_back(stored_tensor(each.parameter, "", type));
    for (std::size_t field = 0; field < optim::needed_state_fields(engine.optimizer()); ++field)
      tensors.push_back(stored_tensor(each.parameter, optim::state_name<Optimizer>(as_int(field)), type));
  }
  return tensors;
}

/// Memory for copies of the parts of a state. A copy of the next state takes the same memory.
using Copies = std::vector<std::vector<std::byte>>;

/// Returns the parts of the state that a rank writes. On a CPU they are the engine's memory, unless `always_copies`; from a GPU they are
/// copies. Copies lie in `copies`.
template <class Engine>
[[nodiscard]] std::vector<PartToWrite> own_parts(Engine& engine, Copies& copies, bool always_copies) {
  using Optimizer = detail::OptimizerOf<Engine>;
  std::vector<PartToWrite> parts;
  std::size_t used = 0;
  const auto copy = [&](std::span<const std::byte> from) {
    if (used == copies.size()) copies.emplace_back();
    std::vector<std::byte>& to = copies[used++];
    to.assign(from.begin(), from.end());
    return std::span<const std::byte>{to};
  };
  engine.for_each_owned([&]<class E>(const nn::Parameter& parameter, Index first, int field, std::span<E> values) {
    const auto& device = engine.stage().device();
    std::span<const std::byte> bytes = std::as_bytes(values);
    if constexpr (!std::remove_cvref_t<decltype(device)>::uses_host_memory) {
      const auto& read = on_host(device, std::span<const E>{values});
      bytes = copy(std::as_bytes(std::span{read}));
    } else if (always_copies) {
      bytes = copy(bytes);
    }
    const StoredTensor tensor =
        stored_tensor(parameter, field < 0 ? "" : optim::state_name<Optimizer>(field), detail::type_name<typename Engine::Gradient>);
    for_each_block(parameter, first, as_index(values.size()), [&](const Block& block, Index at) {
      parts.push_back({tensor, block, bytes.subspan(as_size(at) * sizeof(E), as_size(block.elements()) * sizeof(E))});
    });
  });
  return parts;
}

/// Reads the state that a rank keeps: parameters, masters and optimizer state. `tensors`: those of the checkpoint. If it throws FileError,
/// a part of the state may have been read.
template <class Engine>
void read_state(Engine& engine, const PieceReader& from) {
  using Optimizer = detail::OptimizerOf<Engine>;
  using Stored = typename Engine::Gradient;
  const std::vector<StoredTensor>& tensors = from.manifest().tensors;
  const auto& device = engine.stage().device();
  std::vector<Destination> destinations;
  const auto add = [&]<class E>(const nn::Parameter& parameter, Index first, std::string_view state, std::span<E> values) {
    Destination& to = destinations.emplace_back();
    to.tensor = number_of(tensors, parameter.full_name(), state);
    to.transposed = parameter.transposed;
    for_each_block(parameter, first, as_index(values.size()), [&](const Block& block, Index at) { to.blocks.emplace_back(block, at); });
    if constexpr (std::same_as<E, Stored> && std::remove_cvref_t<decltype(device)>::uses_host_memory) {
      to.begin = [values] { return std::as_writable_bytes(values); };
    } else {
      const auto staged = std::make_shared<std::vector<Stored>>();
      to.begin = [staged, values] {
        staged->resize(values.size());
        return std::as_writable_bytes(std::span{*staged});
      };
      to.end = [staged, values, &device] {
        std::vector<E> converted(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) converted[i] = static_cast<E>((*staged)[i]);
        upload(device, std::span<const E>{converted}, values.data());
        *staged = {};
      };
    }
  };
  engine.stage().for_each_kept(
      [&]<class E>(const nn::Parameter& parameter, Index first, std::span<E> values) { add(parameter, first, "", values); });
  engine.for_each_updated([&]<class E>(const nn::Parameter& parameter, Index first, int field, std::span<E> values) {
    if (field >= 0) add(parameter, first, optim::state_name<Optimizer>(field), values);
  });
  fill(from, destinations);
}

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/state.hpp>
#endif
