#pragma once

/// Definitions for pdp/launch/stop_requests.hpp; see pdp/core/separate_compilation.hpp.

#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include <pdp/core/error.hpp>
#include <pdp/core/separate_compilation.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/launch/process/start_time.hpp>
#include <pdp/launch/start/number.hpp>
#include <pdp/launch/stop_requests.hpp>

namespace pdp {

namespace detail {

/// The handlers of the process. There is one state for each process, because signals concern the process. It is static because a handler
/// has no other way to reach it.
struct StopHandlers {
  static constexpr std::array watched{SIGTERM, SIGUSR1};

  static inline std::mutex mutex;
  static inline int users = 0;
  static inline std::array<struct sigaction, 2> before{};
  static inline std::atomic<bool> arrived{false}, ignores_one{false};

  static sigset_t set() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int signal : watched) ::sigaddset(&all, signal);
    return all;
  }
  /// Handles the signals that this thread has blocked.
  static void take_pending() {
    const sigset_t all = set();
    constexpr timespec no_time{};
    siginfo_t info{};
    ucontext_t context{};
    for (int signal = 0; (signal = ::sigtimedwait(&all, &info, &no_time)) > 0;) handle(signal, &info, &context);
  }
  static void handle(int signal, siginfo_t* info, void* context) {
    arrived.store(true, std::memory_order_relaxed);
    if (ignores_one.exchange(false)) return restore();
    const struct sigaction& previous = before[signal == watched[0] ? 0 : 1];
    if ((previous.sa_flags & SA_SIGINFO) != 0)
      previous.sa_sigaction(signal, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
      previous.sa_handler(signal);
  }
  /// Restores the handlers that were there before, unless the program has installed others.
  static void restore() {
    for (std::size_t i = 0; i < watched.size(); ++i) {
      struct sigaction now {};
      ::sigaction(watched[i], nullptr, &now);
      if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &handle) ::sigaction(watched[i], &before[i], nullptr);
    }
  }
  static void add() {
    const std::scoped_lock lock{mutex};
    if (users++ > 0) return;
    if (ignores_one.exchange(false)) restore();
    arrived = false;
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < watched.size(); ++i) ::sigaction(watched[i], &action, &before[i]);
    launch::Report::announce_stop(launch::environment, true);
  }
  static void remove() {
    const std::scoped_lock lock{mutex};
    if (--users > 0) return;
    launch::Report::announce_stop(launch::environment, false);
    if (!ignores_one) restore();
  }
};

}  // namespace detail

PDP_INLINE std::chrono::seconds parse_stop_after(const char* name, const std::string& words) {
  const auto fail = [&]() -> std::chrono::seconds {
    throw UsageError{text(name, " must be a time such as 90 (seconds), 30:00, 23:50:00 or 6-12:00:00; found ", in_quotes(words))};
  };
  std::int64_t days = 0, seconds = 0;
  std::string rest = words;
  const std::size_t dash = rest.find('-');
  if (dash != std::string::npos) {
    const auto read = launch::read_number<std::uint16_t>(rest.substr(0, dash));
    if (!read) return fail();
    days = *read;
    rest.erase(0, dash + 1);
  }
  int parts = 0;
  for (bool more = true; more; ++parts) {
    const std::size_t colon = rest.find(':');
    more = colon != std::string::npos;
    const auto read = launch::read_number<std::uint32_t>(rest.substr(0, colon));
    if (!read || (parts > 0 && *read > 59)) return fail();
    seconds = 60 * seconds + *read;
    rest.erase(0, more ? colon + 1 : rest.size());
  }
  if (parts > 3 || (dash != std::string::npos && parts != 3)) return fail();
  return std::chrono::seconds{days * 86'400 + seconds};
}

PDP_INLINE StopRequests::StopRequests(std::chrono::seconds after) : end_{std::chrono::steady_clock::time_point::max()} {
  const char* words = std::getenv("PDP_STOP_AFTER");
  if (after.count() == 0 && words != nullptr && *words != '\0') after = parse_stop_after("PDP_STOP_AFTER", words);
  constexpr std::chrono::seconds most{std::chrono::hours{24 * 365 * 100}};  // a clock cannot count more than 292 years
  if (after.count() > 0) {
    const std::chrono::duration<double> age{launch::machine_time() - launch::start_time(launch::environment)};
    end_ = std::chrono::steady_clock::now() + std::min(after, most) - std::chrono::duration_cast<std::chrono::milliseconds>(age);
  }
  detail::StopHandlers::add();
  const sigset_t all = detail::StopHandlers::set();
  ::pthread_sigmask(SIG_BLOCK, &all, &mask_before_);
}

PDP_INLINE StopRequests::~StopRequests() {
  detail::StopHandlers::remove();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);  // a signal that nothing has noticed ends the process now
}

PDP_INLINE void StopRequests::agreed() const noexcept {
  detail::StopHandlers::take_pending();
  if (!detail::StopHandlers::arrived) detail::StopHandlers::ignores_one = true;
}

PDP_INLINE bool StopRequests::requested() const noexcept {
  detail::StopHandlers::take_pending();
  return detail::StopHandlers::arrived.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= end_;
}

}  // namespace pdp
