#include <pdp/train/callback.hpp>

pdp::Callback below(double loss) {
  return [loss](const pdp::Epoch& epoch) { return epoch.loss < loss ? pdp::Next::stop : pdp::Next::proceed; };
}
