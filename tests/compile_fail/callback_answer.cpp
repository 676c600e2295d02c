// error: pdp: a callback of fit.. must return nothing, or pdp::Next::proceed or pdp::Next::stop; it returns something else
#include <pdp/train/callback.hpp>

pdp::Callback below(double loss) {
  return [loss](const pdp::Epoch& epoch) { return epoch.loss < loss; };
}
