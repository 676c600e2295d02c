#pragma once

#include <string>
#include <utility>

#include <pdp/comm/calls.hpp>

namespace pdp::comm {

/// What Calls that are wrapped around those of another backend pass on as it is.
template <Calls C>
class WrappedCalls {
 public:
  static constexpr bool fails_fast = requires { requires C::fails_fast; };

  [[nodiscard]] int rank() const { return inner_.rank(); }
  [[nodiscard]] int size() const { return inner_.size(); }
  [[nodiscard]] Duration deadline() const { return inner_.deadline(); }
  void deadline(Duration duration) { inner_.deadline(duration); }
  void progress() { inner_.progress(); }
  void abort(const std::string& reason) { inner_.abort(reason); }

 protected:
  explicit WrappedCalls(C inner) : inner_{std::move(inner)} {}

  C inner_;
};

}  // namespace pdp::comm
