// error: pdp: the second argument of nn::Repeat must be a layer or a container of layers
#include <pdp/nn/linear.hpp>
#include <pdp/nn/repeat.hpp>

const pdp::nn::Repeat deep{3, 8};
