#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/core/random.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/nn/parameter.hpp>

namespace pdp::checkpoint {

/// A tensor of a checkpoint: a parameter, or one value of the optimizer's state for each element of a parameter.
struct StoredTensor {
  std::string name;          // of the parameter: "0.weight"
  std::string state;         // empty for the parameter itself, else PyTorch's name of the state, such as "exp_avg"
  std::string type = "F32";  // F32 or F64
  Index rows = 0, cols = 0;  // of the whole tensor in pdp's memory; a vector has one column
  bool is_vector = false;
  bool transposed = false;          // PyTorch's tensor has `cols` rows and `rows` columns
  random::GroupedColumns order{};   // of the columns (of a vector: its elements) in PyTorch's tensor
  std::vector<Index> file_shape{};  // of PyTorch's tensor, if it has more than two dimensions and is known

  [[nodiscard]] std::size_t bytes_of_element() const { return type == "F64" ? 8 : 4; }
  /// Returns the shape of PyTorch's tensor.
  [[nodiscard]] std::vector<Index> shape() const;
  /// Returns the number of an element in PyTorch's tensor, and back: the row and the column of such an element in memory.
  [[nodiscard]] Index file_element(Index row, Index col) const;
  [[nodiscard]] std::pair<Index, Index> place_of(Index file_element) const;
  /// Returns the name of the parameter, and of the state if it is one: "exp_avg of 0.weight".
  [[nodiscard]] std::string words() const;
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

/// Returns the whole tensor of a parameter, or of its state. `type`: F32 or F64.
[[nodiscard]] StoredTensor stored_tensor(const nn::Parameter& parameter, std::string_view state, std::string_view type);

/// A file of a checkpoint: a safetensors file that one rank has written.
struct StoredFile {
  std::string name;
  std::uint64_t bytes = 0;   // of the file
  std::uint64_t header = 0;  // bytes before the first piece
  Hash header_hash{};
  friend bool operator==(const StoredFile&, const StoredFile&) = default;
};

/// A part of a tensor, in a file.
struct StoredPiece {
  std::size_t tensor = 0, file = 0;  // numbers in the lists of the manifest
  Block block{};
  std::uint64_t begin = 0;  // offset of the first byte in the file
  Hash hash{};              // of the bytes
  friend bool operator==(const StoredPiece&, const StoredPiece&) = default;
};

/// The point that a training has reached, and the numbers with which it continues.
struct Position {
  std::int64_t step = 0;   // steps that have been made
  std::int64_t epoch = 0;  // epochs that have been completed
  std::int64_t batch = 0;  // steps of the current epoch that have been made
  std::uint64_t seed = 0;
  std::int64_t global_batch = 0, samples = 0;  // samples: in the dataset; 0 if no epoch has begun
  bool shuffle = true;
  std::int64_t skipped = 0;                                  // steps without an update, because the gradient was not finite
  double loss_scale = 0;                                     // 0: losses are not scaled
  std::int64_t finite = 0;                                   // finite steps in a row since loss_scale changed
  double epoch_loss = 0, epoch_correct = 0, epoch_rows = 0;  // totals of the steps of the current epoch
  std::vector<std::int64_t> parts{};  // sizes of the parts of a data::PerRank, in the order of shares; empty for any other dataset
  double rate_factor = 1;             // factor of the learning rate, besides that of the schedule
  double epoch_weight = 0;            // sum of the weights of the current epoch's rows; 0 if the loss does not weigh rows
  friend bool operator==(const Position&, const Position&) = default;
};

/// A value of the program that a checkpoint keeps.
using Value = std::variant<std::int64_t, double, std::string>;
using Values = std::map<std::string, Value>;

/// The contents of a checkpoint's file manifest.json.
struct Manifest {
  static constexpr int newest = 2;  // version of the format; 1 is written if no tensor has an order
  static constexpr std::string_view file_name = "manifest.json";

  Position position{};
  int ranks = 1;  // that have written it
  Values values{};
  std::vector<StoredTensor> tensors{};
  std::vector<StoredFile> files{};
  std::vector<StoredPiece> pieces{};

  [[nodiscard]] std::uint64_t bytes_of(const StoredPiece& piece) const {
    return static_cast<std::uint64_t>(piece.block.elements()) * tensors[piece.tensor].bytes_of_element();
  }
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Returns the JSON of a manifest. It holds its own hash.
[[nodiscard]] std::string encode(const Manifest& manifest);

/// Returns the manifest that a text holds. `source` names the file in messages. Throws FileError if the text is not one, is damaged, is of
/// a newer version, or describes pieces that lie outside of their files or tensors. Throws it also if pieces overlap or do not cover each
/// tensor, unless it is the manifest of one rank's file.
[[nodiscard]] Manifest decode(std::string_view text, std::string_view source, bool of_one_file = false);

/// Returns the beginning of a safetensors file with the pieces of a manifest: the length of its header, and the header. The tensors have
/// names such as "0.weight exp_avg [0:10, 0:784]".
[[nodiscard]] std::string safetensors_header(const Manifest& manifest);

}  // namespace pdp::checkpoint

#ifndef PDP_SEPARATE_CORE
#include <pdp/checkpoint/source/manifest.hpp>
#endif
