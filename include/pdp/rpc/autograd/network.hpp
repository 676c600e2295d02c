#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include <pdp/rpc/future.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc {

/// A class whose remote objects a Context can call: SubNetwork, a class derived from it, or one with the same methods.
template <class N>
concept Network = requires(N& network, const CallId& call, const OwnedMatrix& rows, const BackwardRequest& backward,
                           const StepPreparation& step, SlotId context) {
  { network.forward(call, rows) } -> std::same_as<OwnedMatrix>;
  { network.add_gradient(call, rows) } -> std::same_as<void>;
  { network.backward(backward, rows) } -> std::same_as<OwnedMatrix>;
  { network.prepare_step(step, double{}) } -> std::same_as<double>;
  network.end_context(context);
};

/// Returns true. Does not compile, with a sentence, unless N is a Network.
template <class N>
consteval bool check_network() {
  static_assert(Network<N>,
                "pdp: this remote object is not a network: make it of the type SubNetworkOf<function> or of a class derived "
                "from SubNetwork (see pdp/rpc/sub_network.hpp)");
  return Network<N>;
}

namespace autograd {

/// The calls of one network that do not depend on its type.
class NetworkCalls {
 public:
  NetworkCalls() = default;
  NetworkCalls(NetworkCalls&&) = delete;
  virtual ~NetworkCalls() = default;

  // The errors of these are those of prepare_step().
  virtual void add_gradient(const CallId& call, const Remote<OwnedMatrix>& gradient) const = 0;
  /// `gradient`: of the output; null: the network has all gradients already.
  [[nodiscard]] virtual Remote<OwnedMatrix> backward(const BackwardRequest& request, const Remote<OwnedMatrix>* gradient) const = 0;

  [[nodiscard]] virtual Future<double> prepare_step(const StepPreparation& step, const Future<double>& before) const = 0;
  virtual void end_context(SlotId context) const noexcept = 0;
};

template <Network N>
class NetworkCallsOf final : public NetworkCalls {
 public:
  explicit NetworkCallsOf(Remote<N> network) : network_{std::move(network)} {}

  void add_gradient(const CallId& call, const Remote<OwnedMatrix>& gradient) const override {
    network_.template async<&N::add_gradient>(call, gradient).ignore();
  }
  [[nodiscard]] Remote<OwnedMatrix> backward(const BackwardRequest& request, const Remote<OwnedMatrix>* gradient) const override {
    auto to_input = gradient != nullptr ? network_.template remote<&N::backward>(request, *gradient)
                                        : network_.template remote<&N::backward>(request, OwnedMatrix{});
    to_input.reference().silence();
    return to_input;
  }
  [[nodiscard]] Future<double> prepare_step(const StepPreparation& step, const Future<double>& before) const override {
    return before ? network_.template async<&N::prepare_step>(step, before) : network_.template async<&N::prepare_step>(step, 0.0);
  }
  void end_context(SlotId context) const noexcept override { network_.template tell<&N::end_context>(context); }

 private:
  Remote<N> network_;
};

}  // namespace autograd

}  // namespace pdp::rpc
