#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/loss/counted_rows.hpp>
#include <pdp/rpc/autograd/loss.hpp>
#include <pdp/rpc/autograd/network.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/node.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

/// Backward passes through remote networks.
namespace pdp::rpc::autograd {

/// The reaction of an optimizer if one of its networks has no gradient in the context of a step.
enum class MissingGradient : std::uint8_t {
  stop,  // the step throws, and no parameter is changed
  skip   // the step leaves this network as it is
};

/// A record of forward calls of networks, from which backward() runs their backward passes. Gradients belong to the context until the step
/// of an optimizer applies them, so several contexts can be in flight. The end of a context frees all that the networks keep for it.
///
/// All calls return at once. The networks compute on their own ranks, and values and gradients travel from network to network,
/// not through this rank. An error of a call is thrown by what depends on it: Loss::get(), Output::to_here(), and the optimizer's step.
/// Move-only. Use it on the thread of its Node, and destroy it before the Node ends.
class Context {
 public:
  explicit Context(Node& node) : id_{node.new_id()} {}
  Context(Context&&) noexcept = default;
  Context& operator=(Context&&) = delete;
  ~Context();

  /// Calls a network with rows of input.
  template <class N>
  Output<N> forward(const Remote<N>& network, OwnedMatrix x) {
    static_assert(check_network<N>());
    const Index rows = x.rows;
    const CallId id = record(network, -1);
    return output(id, rows, network, network.template remote<&N::forward>(id, std::move(x)));
  }
  /// Calls a network with the output of an earlier call of this context.
  template <class N, class From>
  Output<N> forward(const Remote<N>& network, const Output<From>& x) {
    static_assert(check_network<N>());
    check_own(x.context());
    const CallId id = record(network, x.call());
    return output(id, x.rows(), network, network.template remote<&N::forward>(id, x.values()));
  }

  /// Computes a loss of an output, at the owner of the output. `targets`: those of all rows, one after another. `rows`: the number of rows
  /// over which the gradient is averaged, if the rows of the output are a part of a batch; 0: the rows of the output. Rows that the loss
  /// ignores do not belong to either number. If the loss weighs rows, the average is by their weights. Throws ConfigError if there are
  /// fewer than in the output, or if a number is given for a loss that weighs rows.
  template <class L, class N>
  Loss loss(const L& loss, const Output<N>& output, std::vector<typename L::Target> targets, Index rows = 0) {
    check_own(output.context());
    check_open();
    const Index own = loss::counted_rows(loss, std::span<const typename L::Target>{targets}, output.rows());
    check_rows(own, rows);
    if (rows != 0) loss::check_rows_given<L>();
    const double divisor = loss::divisor_of_rows(loss, std::span<const typename L::Target>{targets}, output.rows());
    const CallId id{id_, output.call()};
    const int number = losses_++;
    return {id_,
            id.number,
            number,
            own,
            divisor,
            output.network().template async<&N::template loss<L>>(id, output.values(), loss, number, std::move(targets),
                                                                  rows == 0 ? divisor : as_double(rows))};
  }

  /// Runs the backward passes of all calls that these losses depend on, the last call first. Other losses have no part in it. Each call can
  /// be part of one backward() only, so losses that share a call must be given together. Gradients add up over all backward() of the
  /// context.
  template <std::same_as<Loss>... L>
  requires(sizeof...(L) > 0) void backward(const L&... losses) {
    (check_own(losses.context()), ...);
    run_backward({Beginning{losses.call(), losses.number()}...});
  }
  /// Does the same for an output whose gradient this rank has computed.
  template <class N>
  void backward(const Output<N>& output, const OwnedMatrix& gradient) {
    check_own(output.context());
    check_open();
    output.network().template async<&N::add_gradient>(CallId{id_, output.call()}, gradient).ignore();
    run_backward({Beginning{output.call(), -1}});
  }

  [[nodiscard]] SlotId id() const { return id_; }
  /// For an optimizer: checks that the networks with these numbers have gradients, and asks all networks of the context whether their
  /// backward passes have succeeded. Returns the squared norm of the gradient of these networks if `measures`, else 0. `applied[i]` becomes
  /// whether network i has a gradient. After this, the context records no further calls.
  Future<double> prepare_step(std::span<const SlotId> networks, MissingGradient missing, bool measures, bool finite,
                              std::vector<bool>& applied);

 private:
  struct Call {
    std::size_t network;
    int input;  // the call whose output is its input; -1: none
    bool ran_backward = false;
  };
  /// A gradient with which backward() begins.
  struct Beginning {
    int call;
    int loss;  // -1: a gradient that add_gradient() adds
  };
  struct Recorded {
    SlotId slot;
    std::unique_ptr<NetworkCalls> calls;
    int backward_calls = 0;
    bool is_applied = false;
  };

  template <Network N>
  CallId record(const Remote<N>& network, int input) {
    check_open();
    std::size_t number = find(network.slot());
    if (number == networks_.size()) networks_.push_back({network.slot(), std::make_unique<NetworkCallsOf<N>>(network)});
    calls_.push_back({number, input});
    return {id_, as_int(calls_.size()) - 1};
  }
  /// Makes the output of a call. Its error is that of what depends on it.
  template <class N>
  static Output<N> output(const CallId& id, Index rows, const Remote<N>& network, Remote<OwnedMatrix> values) {
    values.reference().silence();
    return {id.context, id.number, rows, network, std::move(values)};
  }
  /// Returns the number of a network, or the number of networks if it is not there.
  [[nodiscard]] std::size_t find(SlotId network) const;
  void check_own(SlotId context) const;
  void check_open() const;
  static void check_rows(Index own, Index all);
  void run_backward(const std::vector<Beginning>& from);

  SlotId id_;
  std::vector<Call> calls_;
  int losses_ = 0;
  std::vector<Recorded> networks_;
  bool is_closed_ = false;  // an optimizer has applied the gradients
};

}  // namespace pdp::rpc::autograd

#ifndef PDP_SEPARATE_CORE
#include <pdp/rpc/source/autograd.hpp>
#endif
