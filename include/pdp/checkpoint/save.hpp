#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/checkpoint/together.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/step_state.hpp>

/// Saving and loading the whole state of a training. Any number of ranks, with any strategy, can load what others have saved.
namespace pdp::checkpoint {

/// Returns "rank-00003.safetensors".
[[nodiscard]] inline std::string name_of_file(int rank) {
  const std::string digits = std::to_string(rank);
  return text("rank-", std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0'), digits, ".safetensors");
}

/// Saves an engine's state as a checkpoint in a folder. Each rank writes a file of its own. `lock`: on rank 0, the right to write to the
/// folder; not used on other ranks. `position`: that of the training in its data; this function adds the numbers that the engine has. Keeps
/// the newest `keep` checkpoints; 0: all. Returns the path of the checkpoint. Every rank makes this call, with the same arguments. Every
/// rank throws FileError, with the same text, if a rank cannot write; the folder then still has its previous checkpoints.
template <comm::Communicator C, class Engine>
std::filesystem::path save_state(C& world, Engine& engine, const FolderLock* lock, Position position, const Values& values, int keep) {
  const StepHistory history = engine.history();
  position.step = engine.steps();
  position.skipped = history.skipped;
  position.loss_scale = history.loss_scale;
  position.finite = history.finite;
  const auto& device = engine.stage().device();
  std::optional<NewCheckpoint> made;
  on_every_rank(world, device, [&] {
    if (world.rank() == 0) made.emplace(*lock, position.step);
  });
  const std::filesystem::path folder = broadcast_text(world, device, made ? made->folder().string() : std::string{});
  std::string own;
  const OwnParts state = own_parts(engine);
  on_every_rank(world, device, [&] { own = encode(write_pieces(folder / name_of_file(world.rank()), state.parts)); });
  const std::vector<std::string> files = gather_texts(world, device, own);
  std::filesystem::path path;
  on_every_rank(world, device, [&] {
    if (world.rank() != 0) return;
    std::vector<Manifest> parts;
    for (const std::string& file : files) parts.push_back(decode(file, folder.string(), true));
    path = made->publish(joined(position, values, parts));
    if (keep > 0) remove_old_checkpoints(*lock, keep);
  });
  return broadcast_text(world, device, path.string());
}

/// The part of a checkpoint that is not in an engine.
struct Loaded {
  Position position;
  Values values;
  std::filesystem::path path;
};

/// Reads a checkpoint into an engine: `path` itself, or the newest one in it. Every rank makes this call and reads what it keeps. Every
/// rank throws FileError, with the same text, if the checkpoint is damaged, or is one of another model, optimizer or precision. The state
/// of the engine is then undefined if a piece was damaged, and unchanged otherwise.
template <comm::Communicator C, class Engine>
[[nodiscard]] Loaded load_state(C& world, Engine& engine, const std::filesystem::path& path) {
  const auto& device = engine.stage().device();
  std::filesystem::path found;
  on_every_rank(world, device, [&] {
    if (world.rank() == 0) found = find_checkpoint(path);
  });
  found = broadcast_text(world, device, found.string());
  std::optional<PieceReader> reader;
  on_every_rank(world, device, [&] { reader.emplace(found); });
  const std::string hash = text_of(reader->hash()), of_first = broadcast_text(world, device, hash);
  const std::vector<StoredTensor> expected = tensors_of(engine);
  on_every_rank(world, device, [&] {
    if (hash != of_first)
      throw FileError{text(found.string(), ": this rank sees another manifest than rank 0. Give all ranks the same folder.")};
    check_tensors(reader->manifest().tensors, expected, found.string());
    if (world.rank() == 0) reader->check_headers();
  });
  on_every_rank(world, device, [&] { read_state(engine, *reader); });
  const Position& at = reader->manifest().position;
  engine.set_history(at.step, StepHistory{.skipped = at.skipped, .loss_scale = at.loss_scale, .finite = at.finite});
  return {at, reader->manifest().values, found};
}

}  // namespace pdp::checkpoint
