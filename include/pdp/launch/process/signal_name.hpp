#pragma once

#include <signal.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <pdp/core/error.hpp>

namespace pdp::launch {

/// Returns the name of a signal, such as "SIGKILL". Empty if it has none, like real-time signals. Replaces glibc's sigabbrev_np(), which
/// other C libraries lack.
inline std::string_view signal_name(int signal) {
  static constexpr std::array names = std::to_array<std::pair<int, std::string_view>>({
      {SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"},     {SIGBUS, "SIGBUS"},       {SIGCHLD, "SIGCHLD"},   {SIGCONT, "SIGCONT"},
      {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},       {SIGILL, "SIGILL"},       {SIGINT, "SIGINT"},     {SIGKILL, "SIGKILL"},
      {SIGPIPE, "SIGPIPE"}, {SIGPOLL, "SIGPOLL"},     {SIGPROF, "SIGPROF"},     {SIGPWR, "SIGPWR"},     {SIGQUIT, "SIGQUIT"},
      {SIGSEGV, "SIGSEGV"}, {SIGSTKFLT, "SIGSTKFLT"}, {SIGSTOP, "SIGSTOP"},     {SIGSYS, "SIGSYS"},     {SIGTERM, "SIGTERM"},
      {SIGTRAP, "SIGTRAP"}, {SIGTSTP, "SIGTSTP"},     {SIGTTIN, "SIGTTIN"},     {SIGTTOU, "SIGTTOU"},   {SIGURG, "SIGURG"},
      {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},     {SIGVTALRM, "SIGVTALRM"}, {SIGWINCH, "SIGWINCH"}, {SIGXCPU, "SIGXCPU"},
      {SIGXFSZ, "SIGXFSZ"},
  });
  for (const auto& [number, name] : names)
    if (number == signal) return name;
  return {};
}

/// Returns the end of a process by a signal, for a message.
inline std::string describe_signal(int signal) {
  const std::string_view name = signal_name(signal);
  std::string words = text("killed by signal ", signal);
  if (!name.empty()) words += text(" (", name, ")");
  if (signal == SIGKILL) words += "; if that was not intended, the machine may have run out of memory";
  return words;
}

}  // namespace pdp::launch
