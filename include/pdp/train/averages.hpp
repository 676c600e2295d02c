#pragma once

#include <type_traits>
#include <utility>

#include <pdp/optim/averaged.hpp>

namespace pdp {

namespace detail {

/// A guard. During its lifetime the averages of an engine are in place of its parameters.
template <class Engine>
class AveragesInPlace {
 public:
  explicit AveragesInPlace(Engine& engine) : engine_{engine} { engine_.use_averages(); }
  AveragesInPlace(const AveragesInPlace&) = delete;
  AveragesInPlace& operator=(const AveragesInPlace&) = delete;
  ~AveragesInPlace() { engine_.use_parameters(); }

 private:
  Engine& engine_;
};

}  // namespace detail

/// Calls f() with the averages of optim::Averaged in place of a trainer's parameters, and returns its result. So evaluate(), accuracy(),
/// predict() and parameters() in f use the averages. Afterwards the parameters are in their place again, also if f throws. Before the first
/// update, f uses the parameters. Every rank makes this call.
///
///   const double accuracy = pdp::with_averages(trainer, [&] { return trainer.accuracy(test); });
///
/// In f, steps and save() throw ConfigError, and load() throws FileError. Needs memory for a second copy of the parameters that the rank
/// keeps.
template <class Trainer, class F>
decltype(auto) with_averages(Trainer& trainer, F&& f) {
  using Engine = std::remove_cvref_t<decltype(trainer.engine())>;
  static_assert(optim::has_averages<std::remove_cvref_t<decltype(trainer.engine().optimizer())>>,
                "pdp: with_averages() needs a task whose optimizer keeps averages, such as optim::Averaged{optim::Adam{}, 0.999f}");
  const detail::AveragesInPlace<Engine> averages{trainer.engine()};
  return std::forward<F>(f)();
}

}  // namespace pdp
