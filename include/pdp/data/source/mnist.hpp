#pragma once

/// Definitions for pdp/data/mnist.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/data/idx.hpp>
#include <pdp/data/mnist.hpp>
#include <pdp/data/shown.hpp>

namespace pdp::data {

namespace detail::mnist {

inline constexpr std::array<float, 256> normalised = [] {
  std::array<float, 256> values{};
  for (std::size_t byte = 0; byte < values.size(); ++byte)
    values[byte] = (static_cast<float>(byte) / 255.0f - Digits::mean) / Digits::deviation;
  return values;
}();

PDP_INLINE void check_extents(const IdxFile& images, const IdxFile& labels) {
  if (images.extents().size() != 3 || images.extents()[1] != 28 || images.extents()[2] != 28) {
    std::string found;
    for (const Index extent : images.extents()) found += text(found.empty() ? "" : " x ", extent);
    throw FileError{text(images.name(), ": expected images of 28 x 28 pixels (N x 28 x 28 bytes), found ", found, " bytes. ",
                         "Give MNIST's image file; are images and labels swapped?")};
  }
  if (labels.extents().size() != 1)
    throw FileError{
        text(labels.name(), ": expected labels in 1 dimension, found ", labels.extents().size(), " dimensions. Give MNIST's label file.")};
  if (images.extents()[0] != labels.extents()[0])
    throw FileError{text(labels.name(), ": expected ", images.extents()[0], " labels, one for each image of ", images.name(), ", found ",
                         labels.extents()[0], ". Give two files of the same set.")};
}

PDP_INLINE void check_labels(const std::vector<std::uint8_t>& labels, const std::string& name) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= Digits::classes)
      throw FileError{text(name, ": expected labels from 0 to 9, found ", int{labels[i]}, " as label number ", i,
                           ". The file is damaged or of another set: copy or download it again.")};
}

using Path = std::filesystem::path;

inline constexpr auto train_images = "train-images-idx3-ubyte";
inline constexpr auto train_labels = "train-labels-idx1-ubyte";
inline constexpr auto test_images = "t10k-images-idx3-ubyte";
inline constexpr auto test_labels = "t10k-labels-idx1-ubyte";

PDP_INLINE std::string what_is_needed() {
  return text("Give a folder with ", test_images, " and ", test_labels, " (which are then split 9 : 1), or with ", train_images, " and ",
              train_labels, " as well; each plain or with .gz. pdp ships 10,000 digits in examples/data/mnist of its repository, and ",
              "installs them as share/pdp/mnist.");
}

/// Returns whether the error leaves open if a path exists: true for all errors except "no such file" and "not a directory".
PDP_INLINE bool is_unknown(const std::error_code& error) {
  return error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory;
}
[[noreturn]] PDP_INLINE void fail(const Path& path, const std::error_code& error) {
  throw FileError{text(path.string(), ": cannot find out whether it is there: ", error.message(), ". ",
                       error == std::errc::permission_denied ? "Let this user search the folder that holds it (chmod u+x)"
                                                             : "Check the path and its file system",
                       ", or give another folder.")};
}

PDP_INLINE void check_folder(const Path& folder) {
  std::error_code error;
  const auto found = std::filesystem::status(folder, error);
  if (is_unknown(error)) fail(folder, error);
  if (!std::filesystem::exists(found))
    throw FileError{text(folder.string(), ": expected a folder with the files of MNIST, found that it does not exist. ", what_is_needed())};
  if (!std::filesystem::is_directory(found))
    throw FileError{text(folder.string(), ": expected a folder with the files of MNIST, found a file. Give the folder that holds it.")};
}

/// Returns the path of the file, plain or .gz, or an empty path if neither is a file or a link to one. Throws FileError if the system
/// cannot say which.
PDP_INLINE Path find(const Path& folder, const char* name) {
  Path unknown;
  std::error_code why;
  for (const char* suffix : {"", ".gz"}) {
    Path path = folder / text(name, suffix);
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path;
    if (!is_unknown(error) || why) continue;
    unknown = std::move(path);
    why = error;
  }
  if (why) fail(unknown, why);
  return {};
}

/// Returns the letters and digits of a name, in lower case.
PDP_INLINE std::string letters(std::string_view name) {
  std::string kept;
  for (const char letter : name) {
    const bool upper = letter >= 'A' && letter <= 'Z';
    if (upper || (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9'))
      kept += static_cast<char>(upper ? letter - 'A' + 'a' : letter);
  }
  return kept;
}

/// Returns a clause for an error message about an entry of the folder with a similar name, or an empty string if there is none. A similar
/// name begins with the letters and digits of `name` in any case and with any punctuation, such as train-images.idx3-ubyte. The entry may
/// also be a folder or a device.
PDP_INLINE std::string near_miss(const Path& folder, const char* name) {
  const std::string wanted = letters(name);
  std::string nearest;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error))
    if (std::string found = entry->path().filename(); letters(found).starts_with(wanted) && (nearest.empty() || found < nearest))
      nearest = std::move(found);
  // A folder without read permission cannot be listed but may still contain the files.
  if (is_unknown(error) && error != std::errc::permission_denied) fail(folder, error);
  if (nearest.empty()) return {};
  const Path path = folder / nearest;
  const std::string but = text(", but ", shown(nearest));
  const auto there = std::filesystem::status(path, error);
  if (is_unknown(error)) return text(but, ", which cannot be examined: ", error.message());
  if (std::filesystem::is_regular_file(there))
    return text(but, ": rename it to ", name, nearest.ends_with(".gz") ? ".gz" : "", " if it is that file");
  if (!std::filesystem::is_directory(there)) return text(but, ", which is not a file");
  const Path inside = find(path, name);
  return text(but, ", which is a folder", inside.empty() ? "" : text(": move the file of this name in it out of it"));
}

PDP_INLINE std::string near_misses(const Path& folder) {
  std::string all;
  for (const char* name : {train_images, train_labels, test_images, test_labels}) all += near_miss(folder, name);
  return all;
}

PDP_INLINE Path need(const Path& folder, const char* name) {
  Path path = find(folder, name);
  if (path.empty())
    throw FileError{
        text(folder.string(), ": expected ", name, " or ", name, ".gz, found neither", near_miss(folder, name), ". ", what_is_needed())};
  return path;
}

PDP_INLINE const Digits& not_empty(const Digits& digits, const Path& folder) {
  if (digits.size() == 0)
    throw FileError{
        text(folder.string(), ": expected at least one training digit and one test digit, found too few digits. Give a larger set.")};
  return digits;
}

}  // namespace detail::mnist

struct Digits::Bytes {
  std::vector<std::uint8_t> images;  // [samples, 784]
  std::vector<std::uint8_t> labels;  // [samples]
};

PDP_INLINE const std::uint8_t* Digits::image(Index sample) const { return bytes_->images.data() + as_size((first_ + sample) * pixels); }

PDP_INLINE Digits::Digits(const std::filesystem::path& images_file, const std::filesystem::path& labels_file) {
  IdxFile images{images_file};
  IdxFile labels{labels_file};
  detail::mnist::check_extents(images, labels);  // before any data is decompressed
  Bytes bytes{images.values(), labels.values()};
  detail::mnist::check_labels(bytes.labels, labels.name());
  size_ = images.extents().front();
  bytes_ = std::make_shared<const Bytes>(std::move(bytes));
}

PDP_INLINE void Digits::gather(std::span<const Index> which, std::span<float> x, std::span<Target> y) const {
  check_gather(*this, which, x, y);
  // The rows are at random addresses: without prefetch, half of the time is spent waiting for the first bytes of each.
  constexpr std::size_t ahead = 2, line = 64;
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (i + ahead < which.size())
      for (std::size_t byte = 0; byte < pixels; byte += line) __builtin_prefetch(image(which[i + ahead]) + byte);
    std::transform(image(which[i]), image(which[i]) + pixels, x.data() + i * pixels,
                   [](std::uint8_t byte) { return detail::mnist::normalised[byte]; });
    y[i] = bytes_->labels[as_size(first_ + which[i])];
  }
}

PDP_INLINE void Digits::gather_pixels(std::span<const Index> which, std::span<float> x) const {
  detail::check_gather(size(), which, {x.size(), which.size(), pixels, 1});
  for (std::size_t i = 0; i < which.size(); ++i)
    std::transform(image(which[i]), image(which[i]) + pixels, x.data() + i * pixels,
                   [](std::uint8_t byte) { return static_cast<float>(byte) / 255; });
}

PDP_INLINE Digits Digits::part(Index first, Index last) const {
  if (first < 0 || last < first || last > size_)
    throw ShapeError{
        text("expected a part of the ", size_, " digits, found [", first, ", ", last, "). Choose 0 <= first <= last <= size().")};
  Digits digits{*this};
  digits.first_ += first;
  digits.size_ = last - first;
  return digits;
}

PDP_INLINE Mnist::Mnist(const std::filesystem::path& folder) : Mnist{load(folder)} {}

PDP_INLINE Mnist Mnist::load(const std::filesystem::path& folder) {
  using namespace detail::mnist;
  check_folder(folder);
  const auto has = [&](const char* name) { return !find(folder, name).empty(); };
  const auto read = [&](const char* images, const char* labels) { return Digits{need(folder, images), need(folder, labels)}; };
  if (!has(train_images) && !has(train_labels) && !has(test_images) && !has(test_labels))
    throw FileError{
        text(folder.string(), ": expected the files of MNIST, found none of them", near_misses(folder), ". ", what_is_needed())};

  const Digits published_test = read(test_images, test_labels);
  // If the names of training files are slightly wrong, report that instead of silently splitting the test set.
  if (has(train_images) || has(train_labels) || !near_miss(folder, train_images).empty() || !near_miss(folder, train_labels).empty())
    return {not_empty(read(train_images, train_labels), folder), not_empty(published_test, folder)};
  const Index digits = published_test.size();
  const Index split = digits * 9 / 10;
  return {not_empty(published_test.part(0, split), folder), not_empty(published_test.part(split, digits), folder)};
}

}  // namespace pdp::data
