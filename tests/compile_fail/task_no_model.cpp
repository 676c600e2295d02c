// error: pdp: the first member of a Task must be a model
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/train/task.hpp>

constexpr pdp::Task task{784, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}};
