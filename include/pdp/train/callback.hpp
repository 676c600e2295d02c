#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/checkpoint/manifest.hpp>
#include <pdp/train/epoch.hpp>

namespace pdp {

/// The answer of a callback of fit(): whether the training goes on. If one rank's answer is `stop`, it ends on all ranks.
enum class Next : std::uint8_t { proceed, stop };

/// The trainer as callbacks see it during a fit(). Every rank makes the same calls, unless a comment says otherwise.
class FitContext {
 public:
  FitContext() = default;
  FitContext(const FitContext&) = delete;
  FitContext& operator=(const FitContext&) = delete;
  virtual ~FitContext() = default;

  /// Of one rank alone.
  [[nodiscard]] virtual int rank() const = 0;
  /// Whether the fit() continues a training from a checkpoint. Of one rank alone.
  [[nodiscard]] virtual bool is_continued() const = 0;
  /// The program's numbers and texts, which checkpoints keep; see Trainer::values(). Of one rank alone.
  [[nodiscard]] virtual checkpoint::Values& values() = 0;
  /// Returns the parameters that this rank keeps, as bytes that only set_own_parameters() of the same trainer can use.
  [[nodiscard]] virtual std::vector<std::byte> own_parameters() = 0;
  virtual void set_own_parameters(std::span<const std::byte> bytes) = 0;
  /// The factor of the learning rate; see Trainer::set_learning_rate_factor(). Reading it is of one rank alone.
  [[nodiscard]] virtual double learning_rate_factor() const = 0;
  virtual void set_learning_rate_factor(double factor) = 0;
};

namespace detail {

/// Calls a callback, with the context if it takes one. Returns its answer; if it returns nothing, `proceed`.
template <class F, class... A>
Next answer_of(F& callback, A&&... arguments) {
  using Answer = std::invoke_result_t<F&, A...>;
  static_assert(std::is_void_v<Answer> || std::same_as<Answer, Next>,
                "pdp: a callback of fit() must return nothing, or pdp::Next::proceed or pdp::Next::stop; it returns something else, which "
                "would be ignored");
  if constexpr (std::is_void_v<Answer>) {
    std::invoke(callback, std::forward<A>(arguments)...);
    return Next::proceed;
  } else {
    return std::invoke(callback, std::forward<A>(arguments)...);
  }
}

}  // namespace detail

/// A function that fit() calls after each epoch: of const Epoch&, or of const Epoch& and FitContext&. It returns nothing or a Next. An
/// object may also have the members begin(FitContext&), called when a fit() starts or continues a training, which returns nothing or a
/// Next, and end(FitContext&), called after the last epoch. Copies share the object. std::ref(object) borrows it, so that the program can
/// read it.
class Callback {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Callback>) Callback(F callback)
      : callback_{std::make_shared<Holder<F>>(std::move(callback))} {}

  Next begin(FitContext& context) const { return callback_->begin(context); }
  Next operator()(const Epoch& epoch, FitContext& context) const { return callback_->epoch(epoch, context); }
  void end(FitContext& context) const { callback_->end(context); }

 private:
  struct Interface {
    Interface() = default;
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;
    virtual ~Interface() = default;
    virtual Next begin(FitContext& context) = 0;
    virtual Next epoch(const Epoch& epoch, FitContext& context) = 0;
    virtual void end(FitContext& context) = 0;
  };

  template <class F>
  class Holder final : public Interface {
    static constexpr bool takes_context = std::invocable<std::unwrap_reference_t<F>&, const Epoch&, FitContext&>;
    static_assert(takes_context || std::invocable<std::unwrap_reference_t<F>&, const Epoch&>,
                  "pdp: a callback of fit() must be a function of `const pdp::Epoch&`, or of `const pdp::Epoch&, pdp::FitContext&`");

   public:
    explicit Holder(F callback) : callback_{std::move(callback)} {}

    Next begin(FitContext& context) override {
      if constexpr (requires { object().begin(context); }) {
        const auto call = [&] { return object().begin(context); };
        return detail::answer_of(call);
      } else {
        return Next::proceed;
      }
    }
    Next epoch(const Epoch& epoch, FitContext& context) override {
      if constexpr (takes_context)
        return detail::answer_of(object(), epoch, context);
      else if constexpr (std::invocable<std::unwrap_reference_t<F>&, const Epoch&>)
        return detail::answer_of(object(), epoch);
      else
        return Next::proceed;
    }
    void end(FitContext& context) override {
      if constexpr (requires { object().end(context); }) object().end(context);
    }

   private:
    [[nodiscard]] std::unwrap_reference_t<F>& object() { return callback_; }
    F callback_;
  };

  std::shared_ptr<Interface> callback_;
};

}  // namespace pdp
