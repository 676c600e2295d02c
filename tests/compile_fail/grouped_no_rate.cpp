// error: pdp: parameter groups need an optimizer with the members `float lr` and `float weight_decay`
#include <pdp/optim/grouped.hpp>

struct Descent {
  float speed = 0.1f;
  template <class V>
  struct State {};
  template <class V>
  constexpr void update(V& parameter, V gradient, State<V>&, const pdp::StepInfo&) const {
    parameter = parameter - speed * gradient;
  }
};

constexpr pdp::optim::Grouped optimizer{Descent{}, pdp::optim::no_decay_on_biases_and_norms};
