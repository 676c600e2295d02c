#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/dtype.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/engine/training_state.hpp>
#include <pdp/nn/parameter.hpp>
#include <pdp/nn/stage_parameters.hpp>

/// The state of a training, to and from the pieces of a checkpoint.
namespace pdp::checkpoint {

/// A place in a rank's memory for some elements of a tensor of a checkpoint.
struct Destination {
  std::size_t tensor = 0;                       // number in the manifest
  bool transposed = false;                      // PyTorch's tensor is the transpose of the one in memory
  random::GroupedColumns order{};               // of the columns in PyTorch's tensor
  std::vector<std::pair<Block, Index>> blocks;  // and the number of the first element of each in the place
  std::function<std::span<std::byte>()> begin;  // returns memory for the elements, in the checkpoint's element type
  std::function<void()> end;                    // called when the memory is filled; may be empty
};

/// The tensors of a checkpoint that a reader needs: all of them, or the parameters without the optimizer's state.
enum class Needs : std::uint8_t { all, parameters };

/// Throws FileError unless the tensors of a checkpoint are those that are expected, or their transposes. `source` names it in messages.
void check_tensors(const std::vector<StoredTensor>& found, const std::vector<StoredTensor>& expected, std::string_view source,
                   Needs needs = Needs::all);

/// Fills all destinations. Reads each piece once, and only those of which an element is needed. The checkpoint may hold a tensor or its
/// transpose. Throws FileError.
void fill(const PieceReader& from, const std::vector<Destination>& destinations);

/// Returns the number of a tensor in a list. It must be there.
[[nodiscard]] std::size_t number_of(const std::vector<StoredTensor>& tensors, std::string_view name, std::string_view state);

namespace detail {

template <class T>
inline constexpr const char* type_name = std::same_as<T, double> ? "F64" : "F32";

/// Returns the name of the state to which a part belongs; empty for the parameters themselves.
[[nodiscard]] inline std::string_view name_of(const std::vector<std::string>& names, int field) {
  return field < 0 ? std::string_view{} : std::string_view{names[as_size(field)]};
}

}  // namespace detail

/// Returns the tensors of a whole model and, for each parameter, of states with these names. `type`: of their elements.
[[nodiscard]] std::vector<StoredTensor> tensors_of(const std::vector<nn::LayerParameter>& of_model, const std::vector<std::string>& names,
                                                   const char* type);

/// Memory for copies of the parts of a state. A copy of the next state takes the same memory.
using Copies = std::vector<std::vector<std::byte>>;

/// Returns the parts of the state that a rank writes. On a CPU they are the engine's memory, unless `always_copies`; from a GPU they are
/// copies. Copies lie in `copies`.
template <class C, class D, class T>
[[nodiscard]] std::vector<PartToWrite> own_parts(const engine::TrainingState<C, D, T>& state, Copies& copies, bool always_copies) {
  using E = Accumulated<T>;
  std::vector<PartToWrite> parts;
  std::size_t used = 0;
  const auto copy = [&](std::span<const std::byte> from) {
    if (used == copies.size()) copies.emplace_back();
    std::vector<std::byte>& to = copies[used++];
    to.assign(from.begin(), from.end());
    return std::span<const std::byte>{to};
  };
  for (const engine::StatePart<E>& part : state.owned()) {
    std::span<const std::byte> bytes = std::as_bytes(part.values);
    if constexpr (!D::uses_host_memory) {
      const auto& read = on_host(state.device(), std::span<const E>{part.values});
      bytes = copy(std::as_bytes(std::span{read}));
    } else if (always_copies) {
      bytes = copy(bytes);
    }
    const StoredTensor tensor = stored_tensor(*part.parameter, detail::name_of(state.names(), part.field), detail::type_name<E>);
    for_each_block(*part.parameter, part.first, as_index(part.values.size()), [&](const Block& block, Index at) {
      parts.push_back({tensor, block, bytes.subspan(as_size(at) * sizeof(E), as_size(block.elements()) * sizeof(E))});
    });
  }
  return parts;
}

namespace detail {

/// Returns the destination of elements of a parameter, or of a state of it, that lie in a device's memory: those from `first` on. Borrows
/// the device. `tensors`: those of the checkpoint. `Stored`: their element type.
template <class Stored, class D, class E>
[[nodiscard]] Destination destination(const std::vector<StoredTensor>& tensors, const D& device, const nn::Parameter& parameter,
                                      Index first, std::string_view state, std::span<E> values) {
  Destination to;
  to.tensor = number_of(tensors, parameter.full_name(), state);
  to.transposed = parameter.transposed;
  to.order = parameter.order;
  for_each_block(parameter, first, as_index(values.size()), [&](const Block& block, Index at) { to.blocks.emplace_back(block, at); });
  if constexpr (std::same_as<E, Stored> && D::uses_host_memory) {
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
  return to;
}

/// Returns the destinations of the parameters that a rank keeps, masters included.
template <class D, class T>
[[nodiscard]] std::vector<Destination> destinations_of(nn::StageParameters<D, T>& stage, const std::vector<StoredTensor>& tensors) {
  std::vector<Destination> all;
  stage.for_each_kept([&]<class E>(const nn::Parameter& parameter, Index first, std::span<E> values) {
    all.push_back(destination<Accumulated<T>>(tensors, stage.device(), parameter, first, "", values));
  });
  return all;
}

}  // namespace detail

/// Reads the state that a rank keeps: parameters, masters and optimizer state. If it throws FileError, a part of the state may have been
/// read.
template <class C, class D, class T>
void read_state(const engine::TrainingState<C, D, T>& state, const PieceReader& from) {
  using E = Accumulated<T>;
  const std::vector<StoredTensor>& tensors = from.manifest().tensors;
  std::vector<Destination> destinations = detail::destinations_of(state.stage(), tensors);
  for (const engine::StatePart<E>& part : state.updated()) {
    if (part.field < 0) continue;
    const std::string_view name = detail::name_of(state.names(), part.field);
    destinations.push_back(detail::destination<E>(tensors, state.device(), *part.parameter, part.first, name, part.values));
  }
  fill(from, destinations);
}

/// Reads the parameters of a checkpoint, or of the newest one in a folder, without communication and without the rest of its state. Throws
/// FileError if there is none, if it is damaged, or if it is one of another model or precision.
template <class D, class T>
void read_parameters(nn::StageParameters<D, T>& stage, const std::filesystem::path& path) {
  const PieceReader from{find_checkpoint(path)};
  const auto expected = tensors_of(stage.of_model(), {}, detail::type_name<Accumulated<T>>);
  check_tensors(from.manifest().tensors, expected, from.folder().string(), Needs::parameters);
  from.check_headers();
  fill(from, detail::destinations_of(stage, from.manifest().tensors));
}

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/state.hpp>
#endif
