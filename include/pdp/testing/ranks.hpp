#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pdp/comm/communicator.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/store/in_process_store.hpp>

namespace pdp::testing {

/// The default deadline of a rank's calls in a test: long enough for a busy machine, short enough to make a hang an error.
constexpr comm::Duration default_deadline = std::chrono::seconds{20};

/// The exception that a rank has thrown, or none.
class Thrown {
 public:
  Thrown() = default;
  explicit Thrown(std::exception_ptr thrown) : thrown_{std::move(thrown)} {}

  explicit operator bool() const { return thrown_ != nullptr; }
  /// Returns whether an exception of type E, or of a type derived from E, was thrown.
  template <class E>
  [[nodiscard]] bool is() const {
    if (!thrown_) return false;
    try {
      rethrow();
    } catch (const E&) {
      return true;
    } catch (...) {
      return false;
    }
  }
  /// Returns the message of the exception, or a text that says that there is none.
  [[nodiscard]] std::string what() const;
  /// Returns the rank that a PeerLost names; -1 for any other exception, or none.
  [[nodiscard]] int lost_rank() const;
  /// Rethrows the exception. Call it only if there is one.
  [[noreturn]] void rethrow() const;

 private:
  std::exception_ptr thrown_;
};

namespace detail {

/// Returns a function that makes the communicator of a rank of a new world. Call it on the thread of that rank. C provides world(size), as
/// comm::Thread does, or connect(store, rank, size, deadline), as comm::Tcp does, or is itself a world of one rank, as comm::Self is.
/// Throws ConfigError if there can be no world of that size.
template <comm::Group C>
std::function<C(int)> new_world(int size, comm::TimePoint until) {
  if (size < 1) throw ConfigError{text("a world needs at least 1 rank; ", size, " were requested")};
  if constexpr (requires {
                  { C::world(size) } -> std::same_as<std::vector<C>>;
                }) {
    const auto ranks = std::make_shared<std::vector<C>>(C::world(size));
    return [ranks](int rank) { return std::move((*ranks)[as_size(rank)]); };
  } else if constexpr (requires(launch::InProcessStore & store) {
                         { C::connect(store, size, size, until) } -> std::same_as<C>;
                       }) {
    const auto store = std::make_shared<launch::InProcessStore>();
    return [store, size, until](int rank) { return C::connect(*store, rank, size, until); };
  } else {
    static_assert(std::default_initializable<C>, "pdp: a communicator under test has world(), connect(), or is a world of one rank");
    if (size != 1) throw ConfigError{text("this communicator is for one rank, but ", size, " were requested")};
    return [](int) { return C{}; };
  }
}

/// The exceptions that the ranks have thrown, by rank, and the order in which they were thrown.
class Errors {
 public:
  explicit Errors(int ranks) : by_rank_(as_size(ranks < 1 ? 0 : ranks)) {}

  /// Records the exception that this rank is handling. Returns the reason to give to the other ranks.
  std::string caught(int rank);
  [[nodiscard]] const std::vector<Thrown>& by_rank() const { return by_rank_; }

  /// Rethrows the exception that caused the others, or returns if there is none. A rank that fails ends the world of the others, and their
  /// exceptions may be recorded before its own. So exceptions that are no CommunicationError come first, then those that are not PeerLost.
  void rethrow_cause() const;

 private:
  std::mutex mutex_;
  std::vector<Thrown> by_rank_;
  std::vector<int> order_;
};

/// The results of the ranks.
template <class R>
class Results {
 public:
  explicit Results(int ranks) : size_{as_size(ranks < 1 ? 0 : ranks)}, by_rank_{std::make_unique<std::optional<R>[]>(size_)} {}

  void set(int rank, R&& result) { by_rank_[as_size(rank)].emplace(std::move(result)); }
  /// Returns the results in the order of ranks. All ranks must have set one.
  [[nodiscard]] std::vector<R> take() {
    std::vector<R> all;
    all.reserve(size_);
    for (std::size_t rank = 0; rank < size_; ++rank) all.push_back(std::move(*by_rank_[rank]));
    return all;
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::optional<R>[]> by_rank_;
};

/// A reference to what a rank runs, a callable of any type. Code with threads is compiled once for each communicator, not for each
/// callable.
template <comm::Group C>
class RankBody {
 public:
  template <class F>
  RankBody(const F& f)
      : body_{&f}, run_{[](const void* body, int rank, C& world) { (*static_cast<F*>(const_cast<void*>(body)))(rank, world); }} {}

  void operator()(int rank, C& world) const { run_(body_, rank, world); }

 private:
  const void* body_;
  void (*run_)(const void* body, int rank, C& world);
};

/// Calls `run(rank)` on a thread for each rank, and waits for all.
void run_on_threads(int size, Errors& errors, const std::function<void(int rank)>& run);

/// Calls `body(rank, world)` on a thread for each rank. If it throws, the rank aborts the world, which ends the calls of the others.
template <comm::Group C>
void on_threads(int size, comm::Duration deadline, Errors& errors, RankBody<C> body) {
  const std::function<C(int)> make = new_world<C>(size, comm::Clock::now() + deadline);
  run_on_threads(size, errors, [&](int rank) {
    C world = make(rank);
    if constexpr (requires { world.deadline(deadline); }) world.deadline(deadline);
    try {
      body(rank, world);
    } catch (...) {
      const std::string reason = errors.caught(rank);
      if constexpr (requires { world.abort(reason); }) world.abort(reason);
    }
  });
}

}  // namespace detail

/// Runs f(world) on `size` ranks, which are threads of this process connected by the communicator's own transport. Returns the results of f
/// in the order of ranks, or nothing if f returns void. If ranks throw, rethrows the exception that caused the others. `deadline`: for each
/// call of a rank, and for the connection of the ranks.
///
/// No rank runs on the caller's thread. Assertions that work only on the test's own thread belong after the call.
template <comm::Group C, class F>
auto ranks(int size, F&& f, comm::Duration deadline = default_deadline) {
  using R = std::remove_cvref_t<std::invoke_result_t<F&, C&>>;
  detail::Errors errors{size};
  if constexpr (std::is_void_v<R>) {
    detail::on_threads<C>(size, deadline, errors, [&f](int, C& world) { f(world); });
    errors.rethrow_cause();
  } else {
    detail::Results<R> results{size};
    detail::on_threads<C>(size, deadline, errors, [&](int rank, C& world) { results.set(rank, f(world)); });
    errors.rethrow_cause();
    return results.take();
  }
}

/// Runs f(world) on `size` ranks, as ranks() does. Returns the exception of each rank, or none, in the order of ranks.
template <comm::Group C, class F>
std::vector<Thrown> errors(int size, F&& f, comm::Duration deadline = default_deadline) {
  detail::Errors errors{size};
  detail::on_threads<C>(size, deadline, errors, [&f](int, C& world) { f(world); });
  return errors.by_rank();
}

}  // namespace pdp::testing

#ifndef PDP_SEPARATE_CORE
#include <pdp/testing/source/ranks.hpp>
#endif
