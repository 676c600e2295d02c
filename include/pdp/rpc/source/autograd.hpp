#pragma once

/// Definitions for pdp/rpc/autograd.hpp; see pdp/core/separate_compilation.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/rpc/autograd.hpp>
#include <pdp/rpc/future.hpp>
#include <pdp/rpc/network/requests.hpp>
#include <pdp/rpc/owned_matrix.hpp>
#include <pdp/rpc/remote.hpp>
#include <pdp/rpc/wire/slot_id.hpp>

namespace pdp::rpc::autograd {

PDP_INLINE Context::~Context() {
  for (const Recorded& each : networks_) each.calls->end_context(id_);
}

PDP_INLINE std::size_t Context::find(SlotId network) const {
  return as_size(std::ranges::find(networks_, network, &Recorded::slot) - networks_.begin());
}

PDP_INLINE void Context::check_own(SlotId context) const {
  if (!(context == id_)) throw ConfigError{"an output or a loss of another Context was given; values of two contexts cannot be combined"};
}

PDP_INLINE void Context::check_open() const {
  if (is_closed_) throw Error{"an optimizer has applied the gradients of this Context; make a new Context for each step"};
}

PDP_INLINE void Context::check_rows(Index own, Index all) {
  if (all != 0 && all < own)
    throw ConfigError{text("a loss of ", own, " rows was to be averaged over ", all, " rows; expected at least as many")};
}

PDP_INLINE void Context::run_backward(const std::vector<Beginning>& from) {
  check_open();
  std::vector<bool> is_needed(calls_.size());
  for (const Beginning& each : from) is_needed[as_size(each.call)] = true;
  for (std::size_t call = calls_.size(); call-- > 0;) {
    if (!is_needed[call]) continue;
    if (calls_[call].ran_backward)
      throw Error{text("the backward pass of forward call ", call,
                       " of this Context has run already; give all losses that depend on it to one backward()")};
    if (calls_[call].input >= 0) is_needed[as_size(calls_[call].input)] = true;
  }
  std::vector<std::vector<Remote<OwnedMatrix>>> gradients(calls_.size());  // of the output of each call, from the calls that have taken it
  for (std::size_t number = calls_.size(); number-- > 0;) {
    if (!is_needed[number]) continue;
    Call& call = calls_[number];
    Recorded& network = networks_[call.network];
    const CallId id{id_, as_int(number)};
    const auto& of_output = gradients[number];
    for (std::size_t i = 0; i + 1 < of_output.size(); ++i) network.calls->add_gradient(id, of_output[i]);
    BackwardRequest request{.call = id, .gradients = as_int(of_output.size()), .needs_input = call.input >= 0};
    for (const Beginning& each : from) {
      if (as_size(each.call) != number) continue;
      if (each.loss < 0)
        ++request.gradients;
      else
        request.losses.push_back(each.loss);
    }
    Remote<OwnedMatrix> to_input = network.calls->backward(request, of_output.empty() ? nullptr : &of_output.back());
    if (call.input >= 0) gradients[as_size(call.input)].push_back(std::move(to_input));
    call.ran_backward = true;
    ++network.backward_calls;
  }
}

PDP_INLINE Future<double> Context::prepare_step(std::span<const SlotId> networks, MissingGradient missing, bool measures, bool finite,
                                                std::vector<bool>& applied) {
  const auto has_gradient = [](const Recorded& each) { return each.backward_calls > 0; };
  if (std::ranges::none_of(networks_, has_gradient))
    throw Error{"the step of an optimizer needs gradients, but backward() of this Context has not been called"};
  applied.assign(networks.size(), false);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::size_t number = find(networks[i]);
    applied[i] = number < networks_.size() && has_gradient(networks_[number]);
    if (!applied[i] && missing == MissingGradient::stop)
      throw Error{text("network ", i,
                       " of the optimizer has no gradient in this Context: no loss of backward() depends on it; "
                       "use MissingGradient::skip if that is intended")};
    if (applied[i] && networks_[number].is_applied)
      throw Error{text("the gradient of network ", i, " of the optimizer has been applied already; make a new Context for each step")};
  }
  Future<double> before;
  for (std::size_t number = networks_.size(); number-- > 0;) {
    Recorded& each = networks_[number];
    if (!has_gradient(each)) continue;
    const bool is_own = std::ranges::find(networks, each.slot) != networks.end();
    Future<double> next = each.calls->prepare_step(
        {.context = id_, .backward_calls = each.backward_calls, .measures = measures && is_own, .finite = finite}, before);
    if (before) before.ignore();  // the steps report its error
    before = std::move(next);
  }
  is_closed_ = true;
  for (const SlotId network : networks)
    if (const std::size_t number = find(network); number < networks_.size()) networks_[number].is_applied = true;
  return before;
}

}  // namespace pdp::rpc::autograd
