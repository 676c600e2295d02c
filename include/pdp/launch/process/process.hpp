#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/os/descriptor.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/process/cores.hpp>
#include <pdp/launch/process/report.hpp>

namespace pdp::launch {

/// A command that runs this program once more, with the same command line and with a copy of its environment, in which set() changes
/// variables.
class Command {
 public:
  /// Throws ConfigError if the command line of this program cannot be read.
  Command() {
    std::ifstream file{"/proc/self/cmdline", std::ios::binary};
    const std::string words{std::istreambuf_iterator<char>{file}, {}};
    for (std::size_t begin = 0, end = 0; begin < words.size(); begin = end + 1) {
      end = std::min(words.find('\0', begin), words.size());
      arguments_.push_back(words.substr(begin, end - begin));
    }
    if (arguments_.empty())
      throw ConfigError{text("the command line of this program cannot be read (/proc/self/cmdline): ", comm::describe_system_error(errno))};
    std::array<char, 4096> path{};
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    if (length > 0 && ::access(path.data(), X_OK) == 0) program_ = path.data();  // the path of the program, if it still exists
    for (char** entry = environ; *entry != nullptr; ++entry) environment_.emplace_back(*entry);
  }

  /// Sets an environment variable of the new process.
  void set(const std::string& variable, const std::string& value) {
    std::erase_if(environment_, [prefix = variable + '='](const std::string& entry) { return entry.starts_with(prefix); });
    environment_.push_back(text(variable, '=', value));
  }

  /// The arguments of execve: the path of the program, and two arrays that end with null. They point into this object.
  [[nodiscard]] const char* program() const { return program_.c_str(); }
  [[nodiscard]] std::vector<char*> arguments() { return pointers(arguments_); }
  [[nodiscard]] std::vector<char*> environment() { return pointers(environment_); }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (std::string& string : strings) pointers.push_back(string.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  std::string program_ = "/proc/self/exe";
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
};

/// A process that was started, and the pipe through which it reports.
struct Process {
  pid_t id = -1;
  comm::Descriptor report;
};

/// Starts a process. The system kills it when the calling thread ends, for whatever reason. Throws ConfigError if the system cannot start
/// it.
///
/// `mask`: its signal mask. `on_child`: its disposition of SIGCHLD; it inherits the dispositions of all other signals. `cores`: the cores
/// on which it may run; nothing: those of the calling thread.
inline Process start(Command command, const sigset_t& mask, const struct sigaction& on_child,
                     const std::optional<Cores>& cores = std::nullopt) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw ConfigError{text("cannot create a pipe to another process: ", comm::describe_system_error(errno))};
  comm::Descriptor read_end{ends[0]};
  const comm::Descriptor write_end{ends[1]};
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  const pid_t launcher = ::getpid();
  command.set(Report::variable, text(write_end.get(), ':', launcher));
  const std::vector<char*> arguments = command.arguments(), environment = command.environment();
  constexpr std::string_view failed = "Ecannot run this program again (execve failed)";

  const pid_t id = ::fork();
  if (id < 0) throw ConfigError{text("cannot start another process: ", comm::describe_system_error(errno))};
  if (id == 0) {
    // Other threads may have held locks at the fork, so only plain system calls are safe from here to exec.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(127);
    if (cores) ::sched_setaffinity(0, sizeof *cores, &*cores);
    ::fcntl(write_end.get(), F_SETFD, 0);
    ::sigaction(SIGCHLD, &on_child, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execve(command.program(), arguments.data(), environment.data());
    [[maybe_unused]] const ssize_t written = ::write(write_end.get(), failed.data(), failed.size());
    ::_exit(127);
  }
  return {id, std::move(read_end)};
}

}  // namespace pdp::launch
