#include <pdp/core/random.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/in_memory.hpp>

#include <span>

void augment(const pdp::data::InMemory<float>& set) {
  pdp::data::Augmented augmented{set, [](pdp::random::Key, std::span<float> sample) { sample[0] = 0; }};
}
