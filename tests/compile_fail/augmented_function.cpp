// error: pdp: the function of Augmented must take `random::Key key, std::span<float> sample`
#include <pdp/core/random.hpp>
#include <pdp/data/augmented.hpp>
#include <pdp/data/in_memory.hpp>

#include <span>

void augment(const pdp::data::InMemory<float>& set) {
  pdp::data::Augmented augmented{set, [](std::span<float> sample) { sample[0] = 0; }};
}
