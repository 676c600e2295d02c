#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/checkpoint/block.hpp>
#include <pdp/checkpoint/hash.hpp>
#include <pdp/checkpoint/manifest.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/finite.hpp>
#include <pdp/core/shape.hpp>
#include <pdp/data/shown.hpp>

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace pdp::checkpoint::detail {

using Json = nlohmann::ordered_json;

constexpr std::string_view format_name = "pdp checkpoint";
constexpr std::string_view hash_key = R"("hash":")";

/// Returns a number as JSON, which has no numbers that are not finite: {"number": "inf"}.
inline Json json_of(double number) {
  if (is_finite(number)) return number;
  return {{"number", is_nan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
}

/// Reads the members of a manifest. All errors are FileErrors that name the file.
class ManifestReader {
 public:
  explicit ManifestReader(std::string_view source) : source_{source} {}

  [[nodiscard]] Manifest read(std::string_view words, bool of_one_file) const {
    const Json all = Json::parse(words, nullptr, false);
    if (all.is_discarded() || !all.is_object()) fail("it is not a JSON object");
    if (member<std::string>(all, "format") != format_name) fail("it is no manifest of a pdp checkpoint");
    if (const auto version = member<std::int64_t>(all, "version"); version < 1 || version > Manifest::newest)
      throw FileError{text(source_, ": expected a manifest of version 1 to ", Manifest::newest, ", found version ", version,
                           ". Read it with the version of pdp that wrote it, or a newer one.")};
    check_hash(words);
    Manifest manifest;
    manifest.ranks = as_int(in(1, std::numeric_limits<int>::max(), member<std::int64_t>(all, "ranks")));
    read_position(at(all, "position"), manifest.position);
    for (const auto& [name, value] : at(all, "values").items()) manifest.values.emplace(name, value_of(value));
    for (const Json& each : list(all, "tensors")) manifest.tensors.push_back(tensor(each));
    for (const Json& each : list(all, "files")) manifest.files.push_back(file(each));
    for (const Json& each : list(all, "pieces")) manifest.pieces.push_back(piece(each, manifest));
    if (!of_one_file) check_cover(manifest);
    return manifest;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw FileError{text(source_, ": expected the manifest of a checkpoint, but ", why, ". Use another checkpoint.")};
  }

  /// The hash is that of the text with zeros in place of the hash.
  void check_hash(std::string_view words) const {
    const std::size_t at = words.rfind(hash_key);
    const std::size_t first = at == std::string_view::npos ? words.size() : at + hash_key.size();
    const auto expected = first + 32 <= words.size() ? hash_in(words.substr(first, 32)) : std::nullopt;
    if (!expected) fail("it does not end in its hash");
    std::string without{words};
    std::fill_n(without.begin() + static_cast<std::ptrdiff_t>(first), 32, '0');
    if (hash_of(std::as_bytes(std::span{without})) != *expected)
      throw FileError{text(source_, ": the manifest is damaged: its hash is ", text_of(hash_of(std::as_bytes(std::span{without}))),
                           ", but it says ", text_of(*expected), ". Use another checkpoint.")};
  }

  [[nodiscard]] const Json& at(const Json& object, const char* key) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) fail(text("a member \"", key, "\" is missing"));
    return *found;
  }
  [[nodiscard]] const Json& list(const Json& object, const char* key) const {
    const Json& found = at(object, key);
    if (!found.is_array()) fail(text("its member \"", key, "\" is not a list"));
    return found;
  }
  template <class T>
  [[nodiscard]] T member(const Json& object, const char* key) const {
    return as<T>(at(object, key), key);
  }
  /// `key`: of the member that the value belongs to.
  template <class T>
  [[nodiscard]] T as(const Json& found, const char* key) const {
    const bool fits = std::is_same_v<T, bool>          ? found.is_boolean()
                      : std::is_same_v<T, std::string> ? found.is_string()
                      : std::is_unsigned_v<T>          ? found.is_number_unsigned()
                                                       : found.is_number_integer() &&
                                                    (!found.is_number_unsigned() || found.get<std::uint64_t>() <= std::uint64_t{1} << 62);
    if (!fits) fail(text("its member \"", key, "\" is ", data::detail::shown(found.dump(-1, ' ', true, Json::error_handler_t::replace))));
    return found.get<T>();
  }
  [[nodiscard]] std::int64_t in(std::int64_t least, std::int64_t most, std::int64_t value) const {
    if (value < least || value > most) fail(text("it has the number ", value, ", expected ", least, " to ", most));
    return value;
  }
  [[nodiscard]] std::int64_t count(std::int64_t number) const { return in(0, std::int64_t{1} << 58, number); }
  [[nodiscard]] std::int64_t count(const Json& object, const char* key) const { return count(member<std::int64_t>(object, key)); }

  void read_position(const Json& from, Position& position) const {
    position = {count(from, "step"),         count(from, "epoch"),   count(from, "batch"),          member<std::uint64_t>(from, "seed"),
                count(from, "global_batch"), count(from, "samples"), member<bool>(from, "shuffle"), count(from, "skipped"),
                real(from, "loss_scale"),    count(from, "finite"),  real(from, "epoch_loss"),      real(from, "epoch_correct"),
                real(from, "epoch_rows")};
    if (from.contains("parts"))
      for (const Json& each : list(from, "parts")) position.parts.push_back(count(as<std::int64_t>(each, "parts")));
    if (from.contains("epoch_weight")) position.epoch_weight = real(from, "epoch_weight");
    if (from.contains("rate_factor")) position.rate_factor = real(from, "rate_factor");  // older manifests have none
    if (!is_finite(position.rate_factor) || position.rate_factor < 0) fail("its factor of the learning rate is negative or not finite");
  }
  [[nodiscard]] Value value_of(const Json& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    return real_of(value);
  }
  [[nodiscard]] double real(const Json& object, const char* key) const { return real_of(at(object, key)); }
  [[nodiscard]] double real_of(const Json& value) const {
    if (value.is_number()) return value.get<double>();
    const auto words = value.is_object() ? member<std::string>(value, "number") : std::string{};
    constexpr auto infinity = positive_infinity<double>();
    if (words == "inf") return infinity;
    if (words == "-inf") return -infinity;
    if (words != "nan") fail("one of its values is neither a number nor a text");
    return std::numeric_limits<double>::quiet_NaN();
  }
  [[nodiscard]] StoredTensor tensor(const Json& from) const {
    StoredTensor made{member<std::string>(from, "name"),
                      member<std::string>(from, "state"),
                      member<std::string>(from, "type"),
                      count(from, "rows"),
                      count(from, "cols"),
                      member<bool>(from, "vector"),
                      member<bool>(from, "transposed")};
    if (made.type != "F32" && made.type != "F64") fail(text("a tensor has the type ", data::detail::shown(made.type)));
    if (made.cols > 0 && made.rows > (std::int64_t{1} << 58) / made.cols) fail(text(made.words(), " is too large"));
    if (from.contains("order")) made.order = order(from, made);
    if (from.contains("shape")) made.file_shape = shape(from, made);
    return made;
  }
  [[nodiscard]] random::GroupedColumns order(const Json& from, const StoredTensor& tensor) const {
    const Json& numbers = list(from, "order");
    const Index columns = tensor.is_vector ? tensor.rows : tensor.cols;
    if (numbers.size() != 3) fail(text("the order of ", tensor.words(), " has not three numbers"));
    const auto number = [&](std::size_t which) { return in(1, columns, as<std::int64_t>(numbers[which], "order")); };
    const random::GroupedColumns made{number(0), number(1), number(2)};
    if (columns % made.groups != 0 || columns / made.groups != made.leading + 2 * made.width)
      fail(text("the order of ", tensor.words(), " is not that of ", columns, " columns"));
    return made;
  }
  [[nodiscard]] std::vector<Index> shape(const Json& from, const StoredTensor& tensor) const {
    std::vector<Index> made;
    Index elements = 1;
    for (const Json& each : list(from, "shape")) {
      made.push_back(in(1, std::int64_t{1} << 58, as<std::int64_t>(each, "shape")));
      if (elements > (std::int64_t{1} << 58) / made.back()) fail(text("the shape of ", tensor.words(), " is too large"));
      elements *= made.back();
    }
    if (made.size() < 3 || made.front() != tensor.rows || elements != tensor.rows * tensor.cols || tensor.transposed || tensor.is_vector)
      fail(text("the shape of ", tensor.words(), " is not that of its rows and columns"));
    return made;
  }
  [[nodiscard]] StoredFile file(const Json& from) const {
    StoredFile made{member<std::string>(from, "name"), member<std::uint64_t>(from, "bytes"), member<std::uint64_t>(from, "header"),
                    hash(from)};
    if (made.name.empty() || made.name.find('/') != std::string::npos || made.name == "." || made.name == "..")
      fail(text("a file has the name ", data::detail::shown(made.name)));
    if (made.header > made.bytes) fail(text("the header of ", made.name, " is longer than the file"));
    return made;
  }
  [[nodiscard]] StoredPiece piece(const Json& from, const Manifest& manifest) const {
    const auto limit = [&](const auto& of) { return std::max<std::int64_t>(as_index(of.size()), 1) - 1; };
    StoredPiece made{as_size(in(0, limit(manifest.tensors), member<std::int64_t>(from, "tensor"))),
                     as_size(in(0, limit(manifest.files), member<std::int64_t>(from, "file"))),
                     {count(from, "row"), count(from, "col"), count(from, "rows"), count(from, "cols")},
                     member<std::uint64_t>(from, "begin"),
                     hash(from)};
    if (manifest.tensors.empty() || manifest.files.empty()) fail("it has pieces, but no tensors or no files");
    const StoredTensor& tensor = manifest.tensors[made.tensor];
    if (made.block.is_empty() || common(made.block, {0, 0, tensor.rows, tensor.cols}) != made.block)
      fail(text("a piece lies outside of ", tensor.words()));
    const StoredFile& file = manifest.files[made.file];
    if (made.begin < file.header || made.begin > file.bytes || manifest.bytes_of(made) > file.bytes - made.begin)
      fail(text("a piece of ", tensor.words(), " lies outside of ", file.name));
    return made;
  }
  [[nodiscard]] Hash hash(const Json& from) const {
    const auto found = hash_in(member<std::string>(from, "hash"));
    if (!found) fail("a hash does not have 32 hexadecimal digits");
    return *found;
  }

  /// Checks that the pieces of each tensor neither overlap nor leave a gap, and that those of each file do not either.
  void check_cover(const Manifest& manifest) const {
    std::vector<Index> left;
    for (const StoredTensor& tensor : manifest.tensors) left.push_back(tensor.rows * tensor.cols);
    std::vector<const StoredPiece*> order;
    for (const StoredPiece& each : manifest.pieces) {
      left[each.tensor] -= each.block.elements();
      order.push_back(&each);
    }
    for (std::size_t t = 0; t < left.size(); ++t)
      if (left[t] != 0) fail(text("its pieces do not cover ", manifest.tensors[t].words()));
    // With the right number of elements, pieces that overlap also leave a gap. They overlap if two neighbours do: sorted by their rows,
    // blocks that share a row follow each other up to the end of the first.
    std::ranges::sort(order, {}, [](const StoredPiece* each) { return std::pair{each->tensor, each->block.row}; });
    const auto share_rows = [](const StoredPiece& first, const StoredPiece& other) {
      return other.tensor == first.tensor && other.block.row < first.block.row + first.block.rows;
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = i + 1; j < order.size() && share_rows(*order[i], *order[j]); ++j)
        if (!common(order[i]->block, order[j]->block).is_empty())
          fail(text("two of its pieces of ", manifest.tensors[order[i]->tensor].words(), " overlap"));
    }
    std::ranges::sort(order, {}, [](const StoredPiece* each) { return std::pair{each->file, each->begin}; });
    std::vector<std::uint64_t> end;
    for (const StoredFile& file : manifest.files) end.push_back(file.header);
    for (const StoredPiece* each : order) {
      if (end[each->file] != each->begin) fail(text("the pieces of ", manifest.files[each->file].name, " do not follow each other"));
      end[each->file] += manifest.bytes_of(*each);
    }
    for (std::size_t f = 0; f < end.size(); ++f)
      if (end[f] != manifest.files[f].bytes) fail(text(manifest.files[f].name, " does not end with its last piece"));
  }

  std::string_view source_;
};

}  // namespace pdp::checkpoint::detail

#endif
