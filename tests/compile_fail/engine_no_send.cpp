// error(g++): the required expression .*group.send_async\(out, peer, tag\).* is invalid
// error(clang): because 'group.send_async\(out, peer, tag\)' would be invalid
#include <pdp/comm/self.hpp>
#include <pdp/engine/engine.hpp>
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>

/// A communicator of one rank that lacks send_async for floats.
struct Forgetful : pdp::comm::Self {
  using Self::Self;
  Forgetful(Self&& group) : Self{std::move(group)} {}
  [[nodiscard]] Forgetful split(int color, int key) { return Self::split(color, key); }
  Work send_async(std::span<const float> values, int peer, int tag) = delete;
};

using Engine = pdp::engine::Engine<Forgetful, pdp::nn::LeafTypes<pdp::nn::Linear>, pdp::loss::CrossEntropy, pdp::optim::Adam>;
