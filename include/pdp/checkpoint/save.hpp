#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/checkpoint/pieces.hpp>
#include <pdp/checkpoint/state.hpp>
#include <pdp/checkpoint/together.hpp>
#include <pdp/comm/communicator.hpp>
#include <pdp/core/device.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/step_state.hpp>
#include <pdp/engine/training_state.hpp>

/// Saving and loading the whole state of a training. Any number of ranks, with any strategy, can load what others have saved.
namespace pdp::checkpoint {

/// Returns "rank-00003.safetensors".
[[nodiscard]] inline std::string name_of_file(int rank) {
  const std::string digits = std::to_string(rank);
  return text("rank-", std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0'), digits, ".safetensors");
}

/// The time at which the ranks write the files of a checkpoint.
enum class Writing : std::uint8_t {
  now,            // in Save::finish(). The ranks wait until the files are on the disk
  in_background,  // on a thread of each rank, from a copy of the state. Training may continue
};

/// A call of a function that writes files and returns a text: when the text is taken, or on a thread.
class WriteTask {
 public:
  /// No call.
  WriteTask();
  WriteTask(Writing writing, std::function<std::string()> write);
  WriteTask(WriteTask&&) noexcept;
  WriteTask& operator=(WriteTask&&) noexcept;
  /// Waits for the thread.
  ~WriteTask();

  /// Returns whether there is a call of which the text has not been taken.
  [[nodiscard]] explicit operator bool() const { return state_ != nullptr; }
  /// Returns whether the thread is still writing.
  [[nodiscard]] bool is_busy() const;
  /// Waits for the call and returns its text. Rethrows its exception.
  std::string take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The arguments of a Save that do not depend on the state. All ranks give the same, except for `lock`.
struct SaveOptions {
  const FolderLock* lock = nullptr;  // on rank 0: the right to write to the folder, which must outlive the Save. Null on other ranks
  Position position{};               // of the training in its data; Save adds the numbers that the state has
  Values values{};
  int keep = 0;  // the number of the newest checkpoints to keep; 0: all
  Writing writing = Writing::now;
};

/// A checkpoint that the ranks are saving. Each rank writes a file of its own; then rank 0 writes the manifest and gives the checkpoint its
/// name. If a rank cannot write, every rank throws FileError with the same text, and the folder still has its previous checkpoints. Without
/// finish(), the destructor waits for this rank's thread, and the checkpoint does not come to exist.
///
/// Every rank makes the same calls. Only `is_busy` is for one rank.
template <comm::Communicator C, class D, class T>
class Save {
 public:
  /// Makes a folder and takes the state. `copies`: memory for copies of the state, which must outlive the Save. It may be used again by a
  /// later one.
  Save(C& world, const engine::TrainingState<C, D, T>& state, SaveOptions options, Copies& copies);
  Save(const Save&) = delete;
  Save& operator=(const Save&) = delete;

  /// Whether this rank's thread is busy.
  [[nodiscard]] bool is_busy() const;
  /// Goes on after the current part: the files, or the manifest. Waits for it if a rank is busy. Returns whether the checkpoint is
  /// complete.
  bool advance();
  /// Waits until the checkpoint is complete. Returns its path.
  std::filesystem::path finish();

 private:
  void publish(std::vector<std::string> files);

  C& world_;
  const D& device_;
  SaveOptions options_;
  std::optional<NewCheckpoint> made_;  // on rank 0
  std::filesystem::path folder_, path_;
  bool has_files_ = false, is_complete_ = false;
  WriteTask task_;  // of this rank, if it has one. The last member: its destructor waits for the thread
};

template <comm::Communicator C, class D, class T>
Save<C, D, T>::Save(C& world, const engine::TrainingState<C, D, T>& state, SaveOptions options, Copies& copies)
    : world_{world}, device_{state.device()}, options_{std::move(options)} {
  const StepHistory history = state.history();
  options_.position.step = state.steps();
  options_.position.skipped = history.skipped;
  options_.position.loss_scale = history.loss_scale;
  options_.position.finite = history.finite;
  on_every_rank(world_, device_, [&] {
    if (world_.rank() == 0) made_.emplace(*options_.lock, options_.position.step);
  });
  folder_ = broadcast_text(world_, device_, made_ ? made_->folder().string() : std::string{});
  on_every_rank(world_, device_, [&] {
    task_ = WriteTask{options_.writing, [this, parts = own_parts(state, copies, options_.writing == Writing::in_background)] {
                        return encode(write_pieces(folder_ / name_of_file(world_.rank()), parts));
                      }};
  });
}

template <comm::Communicator C, class D, class T>
bool Save<C, D, T>::is_busy() const {
  return task_.is_busy();
}

template <comm::Communicator C, class D, class T>
bool Save<C, D, T>::advance() {
  std::string text;
  on_every_rank(world_, device_, [&] {
    if (task_) text = task_.take();
  });
  if (!has_files_) {
    publish(gather_texts(world_, device_, text));
  } else {
    path_ = broadcast_text(world_, device_, text);
    made_.reset();
    is_complete_ = true;
  }
  has_files_ = true;
  return is_complete_;
}

template <comm::Communicator C, class D, class T>
std::filesystem::path Save<C, D, T>::finish() {
  while (!is_complete_) advance();
  return path_;
}

template <comm::Communicator C, class D, class T>
void Save<C, D, T>::publish(std::vector<std::string> files) {
  on_every_rank(world_, device_, [&] {
    if (world_.rank() != 0) return;
    task_ = WriteTask{options_.writing, [this, files = std::move(files)] {
                        std::vector<Manifest> parts;
                        for (const std::string& file : files) parts.push_back(decode(file, folder_.string(), true));
                        const std::filesystem::path path = made_->publish(joined(options_.position, options_.values, parts));
                        if (options_.keep > 0) remove_old_checkpoints(*options_.lock, options_.keep);
                        return path.string();
                      }};
  });
}

/// The part of a checkpoint that is not in an engine.
struct Loaded {
  Position position;
  Values values;
  std::filesystem::path path;
};

/// Reads a checkpoint: `path` itself, or the newest one in it. Every rank makes this call and reads what it keeps. Every rank throws
/// FileError, with the same text, if the checkpoint is damaged, or is one of another model, optimizer or precision. The state is then
/// undefined if a piece was damaged, and unchanged otherwise.
template <comm::Communicator C, class D, class T>
[[nodiscard]] Loaded load_state(C& world, const engine::TrainingState<C, D, T>& state, const std::filesystem::path& path) {
  const D& device = state.device();
  std::filesystem::path found;
  on_every_rank(world, device, [&] {
    if (world.rank() == 0) found = find_checkpoint(path);
  });
  found = broadcast_text(world, device, found.string());
  std::optional<PieceReader> reader;
  on_every_rank(world, device, [&] { reader.emplace(found); });
  const std::string hash = text_of(reader->hash()), of_first = broadcast_text(world, device, hash);
  const std::vector<StoredTensor> expected = tensors_of(state.stage().of_model(), state.names(), detail::type_name<Accumulated<T>>);
  on_every_rank(world, device, [&] {
    if (hash != of_first)
      throw FileError{text(found.string(), ": this rank sees another manifest than rank 0. Give all ranks the same folder.")};
    check_tensors(reader->manifest().tensors, expected, found.string());
    if (world.rank() == 0) reader->check_headers();
  });
  on_every_rank(world, device, [&] { read_state(state, *reader); });
  const Position& at = reader->manifest().position;
  state.set_history(at.step, StepHistory{.skipped = at.skipped, .loss_scale = at.loss_scale, .finite = at.finite});
  return {at, reader->manifest().values, found};
}

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/save.hpp>
#endif
