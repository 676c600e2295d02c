#include "toy_data.hpp"

#include <algorithm>
#include <numeric>

#include <pdp/core/random.hpp>
#include <pdp/cpu/gemm.hpp>
#include <pdp/data/safetensors.hpp>

namespace examples {

using pdp::Index, pdp::text;

namespace {

constexpr Index clusters_per_class = 10;
constexpr double side = 1;  // the corners of the cube are at +-side

/// The dimensions in the order in which they are filled: informative ones first, wherever they lie in a sample.
std::vector<std::size_t> shuffled_dimensions(const SyntheticSet& set) {
  std::vector<std::size_t> order(static_cast<std::size_t>(set.width));
  std::iota(order.begin(), order.end(), std::size_t{0});
  pdp::random::Stream stream{pdp::random::make_key(set.seed, "toy dimensions")};
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[stream.below(left)]);
  return order;
}

/// Adds samples [first, last) of a set to others.
void append(const SyntheticSet& set, Index first, Index last, Samples& to) {
  const auto width = static_cast<std::size_t>(set.width), informative = (width + 1) / 2;
  const auto order = shuffled_dimensions(set);
  const auto clusters = static_cast<std::uint64_t>(set.classes * clusters_per_class);
  const std::size_t begin = to.y.size(), count = static_cast<std::size_t>(last - first);
  to.width = set.width;
  to.x.resize((begin + count) * width);
  to.y.resize(begin + count);

  std::vector<std::vector<Index>> members(clusters);
  for (Index sample = first; sample < last; ++sample) {
    pdp::random::Stream stream{pdp::random::make_key(set.seed, "toy cluster", sample)};
    const std::uint64_t cluster = stream.below(clusters);
    members[cluster].push_back(sample);
    const bool wrong = stream.below(100) == 0;
    const auto of_cluster = static_cast<std::int32_t>(cluster % static_cast<std::uint64_t>(set.classes));
    to.y[begin + static_cast<std::size_t>(sample - first)] =
        wrong ? static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(set.classes))) : of_cluster;
  }
  std::vector<float> mixing(informative * informative), points, mixed, noise(width);
  for (std::uint64_t cluster = 0; cluster < clusters; ++cluster) {
    const std::vector<Index>& samples = members[cluster];
    if (samples.empty()) continue;
    pdp::random::fill_uniform<float>(pdp::random::make_key(set.seed, "toy mixing", cluster), 0, mixing);
    for (float& each : mixing) each = 2 * each - 1;
    points.resize(samples.size() * informative);
    mixed.resize(points.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      pdp::random::fill_normal<float>(pdp::random::make_key(set.seed, "toy point", samples[i]), 0,
                                      std::span{points}.subspan(i * informative, informative));
    const auto rows = static_cast<Index>(samples.size()), columns = static_cast<Index>(informative);
    pdp::cpu::gemm<float>(pdp::cpu::Cpu{}, {points.data(), rows, columns}, {mixing.data(), columns, columns}, {mixed.data(), rows, columns},
                          false);
    pdp::random::Stream corner{pdp::random::make_key(set.seed, "toy corner", cluster)};
    std::vector<float> centre(informative);
    for (float& each : centre) each = static_cast<float>(corner.below(2) == 0 ? -side : side);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::span row = std::span{to.x}.subspan((begin + static_cast<std::size_t>(samples[i] - first)) * width, width);
      pdp::random::fill_normal<float>(pdp::random::make_key(set.seed, "toy noise", samples[i]), 0, std::span{noise});
      for (std::size_t d = 0; d < width; ++d) row[order[d]] = d < informative ? mixed[i * informative + d] + centre[d] : noise[d];
    }
  }
}

Samples read_samples(const pdp::data::SafeTensors& file, const std::string& name) {
  const auto &x = file.at(name + ".x"), &y = file.at(name + ".y");
  if (x.shape.size() != 2 || y.shape.size() != 1 || x.shape[0] != y.shape[0] || x.shape[0] < 1 || x.shape[1] < 1)
    throw pdp::FileError{text(file.name(), ": expected ", name, ".x of shape [samples, values] and ", name, ".y of shape [samples], found ",
                              x.elements(), " and ", y.elements(),
                              " elements that do not fit together; write a row and a label for each sample")};
  Samples samples{.width = x.shape[1], .x = std::vector<float>(static_cast<std::size_t>(x.elements())), .y = {}};
  file.read<float>(name + ".x", std::span{samples.x});
  std::vector<std::int64_t> labels(static_cast<std::size_t>(y.elements()));
  file.read<std::int64_t>(name + ".y", std::span{labels});
  for (const std::int64_t label : labels) {
    if (label < 0 || label >= 1 << 24)
      throw pdp::FileError{text(file.name(), ": expected labels from 0 on in ", name, ".y, found ", label, "; number the classes from 0")};
    samples.y.push_back(static_cast<std::int32_t>(label));
  }
  return samples;
}

}  // namespace

TrainAndTest make(const SyntheticSet& set) {
  TrainAndTest made{.train = {}, .test = {}, .classes = set.classes};
  const Index tenth = set.samples / 10;
  append(set, 0, tenth, made.train);
  append(set, set.samples - tenth, set.samples, made.test);
  return made;
}

TrainAndTest read_toy(const std::string& file, Index classes) {
  const pdp::data::SafeTensors tensors{file};
  TrainAndTest found{read_samples(tensors, "train"), read_samples(tensors, "test"), classes};
  if (found.train.width != found.test.width)
    throw pdp::FileError{text(file, ": expected samples of one width, found ", found.train.width, " values in train.x and ",
                              found.test.width, " in test.x; write both sets alike")};
  const Index largest = std::max(*std::ranges::max_element(found.train.y), *std::ranges::max_element(found.test.y));
  if (classes == 0) found.classes = largest + 1;
  if (largest >= found.classes)
    throw pdp::FileError{text(file, ": expected labels below ", found.classes, ", the outputs of the model, found ", largest,
                              "; give the model more outputs")};
  return found;
}

std::vector<Index> widths_in(const std::string& file) {
  const pdp::data::SafeTensors tensors{file};
  std::vector<Index> widths;
  for (Index layer = 0;; layer += 2) {
    const std::string name = text(layer, ".weight");
    if (layer > 0 && !tensors.contains(name)) return widths;
    const auto& weight = tensors.at(name);
    if (weight.shape.size() != 2 || (layer > 0 && weight.shape[1] != widths.back()))
      throw pdp::FileError{text(file, ": expected ", name, " to be a matrix [outputs, inputs] that takes what the layer before it gives",
                                "; is it a file of another model?")};
    if (layer == 0) widths.push_back(weight.shape[1]);
    widths.push_back(weight.shape[0]);
  }
}

}  // namespace examples
