// error: pdp: the fourth member of a Task must be a learning-rate schedule
#include <pdp/loss/cross_entropy.hpp>
#include <pdp/nn/linear.hpp>
#include <pdp/optim/adam.hpp>
#include <pdp/train/task.hpp>

constexpr pdp::Task task{pdp::nn::Linear{784, 10}, pdp::loss::CrossEntropy{}, pdp::optim::Adam{}, 0.5f};
