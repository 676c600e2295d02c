// Shared by the tests of launch: a job that is started as from a shell, its output and its processes.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/os/descriptor.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/start/starter.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace launch_test {

using Clock = std::chrono::steady_clock;
using Variable = std::pair<std::string, std::string>;

/// Returns the contents of a file. Returns an empty string if it cannot be read, such as a file in /proc of a process that has just ended.
inline std::string contents(const std::string& file) {
  std::ifstream stream{file, std::ios::binary};
  std::ostringstream words;
  words << stream.rdbuf();
  return words.str();
}

/// Reserves a port for this process until it ends, among all processes that call this function. Returns whether no other one has it. The
/// reservation is a Unix socket with the port in its abstract name.
inline bool reserve(std::uint16_t port) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) throw std::runtime_error{"no socket to reserve a port with"};
  const std::string name = std::string(1, '\0') + "pdp test port " + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const bool is_ours = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  if (!is_ours) ::close(socket);
  return is_ours;
}

/// Returns a free port that no other test process gets while this one runs. The ports lie below the system's ephemeral ports and below
/// those that pdp derives for a job. Each process begins its search at another port.
inline std::uint16_t free_port() {
  constexpr unsigned first = 2048, ports = pdp::launch::first_derived_port - first;
  static std::atomic<unsigned> taken{static_cast<unsigned>(::getpid()) * 32};
  for (unsigned tried = 0; tried < ports; ++tried) {
    const auto port = static_cast<std::uint16_t>(first + taken++ % ports);
    if (!reserve(port)) continue;
    try {
      return pdp::launch::TcpStoreServer{"127.0.0.1", port}.port();
    } catch (const pdp::Error&) {  // it is in use
    }
  }
  throw std::runtime_error{"no port from 2048 on is free"};
}

/// Returns the variables that make a process a rank, as a script or another launcher would set them.
inline std::vector<Variable> rank_of(int rank, int size, std::uint16_t port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

/// A program with a process group of its own. Its processes carry a mark in their environment, so that processes left behind are found.
class Job {
 public:
  static constexpr std::chrono::seconds patience{60};

  explicit Job(std::vector<std::string> arguments, const std::vector<Variable>& variables = {},
               const std::string& program = PDP_TEST_PROGRAMS "/launch_program") {
    static std::atomic<int> jobs{0};
    mark_ = pdp::text("PDP_TEST_JOB=", ::getpid(), '.', ++jobs, ';');  // no mark is the beginning of another
    arguments.insert(arguments.begin(), program);
    std::vector<std::string> environment{mark_};
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      bool ours = false;
      for (const char* name : {"PDP_TIMEOUT=",  "PDP_HEARTBEAT=", "PDP_DEADLINE=", "PDP_SECRET",
                               "PDP_INSECURE=", "PDP_JOB=",       "PDP_ATTEMPT=",  "PDP_MUNGE_SOCKET=",
                               "RANK=",         "WORLD_SIZE=",    "LOCAL_RANK=",   "LOCAL_WORLD_SIZE=",
                               "MASTER_ADDR=",  "MASTER_PORT=",   "SLURM_",        "OMPI_",
                               "PMI",           "MPI_LOCAL",      "TORCHELASTIC_", "GROUP_"})
        ours = ours || text.starts_with(name);
      if (!ours) environment.push_back(text);
    }
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    const auto pointers = [](std::vector<std::string>& strings) {
      std::vector<char*> result;
      for (std::string& string : strings) result.push_back(string.data());
      result.push_back(nullptr);
      return result;
    };
    const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
    std::array<std::array<int, 2>, 2> pipes{};
    for (auto& ends : pipes)
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"pipe"};
    process_ = ::fork();
    if (process_ == 0) {
      ::setpgid(0, 0);
      ::dup2(pipes[0][1], STDOUT_FILENO);
      ::dup2(pipes[1][1], STDERR_FILENO);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(126);
    }
    ::setpgid(process_, process_);
    for (std::size_t i = 0; i < 2; ++i) {
      ::close(pipes[i][1]);
      ends_[i] = pdp::comm::Descriptor{pipes[i][0]};
      ::fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
    }
  }
  Job(Job&&) = delete;
  ~Job() {
    for (const pid_t process : processes()) ::kill(process, SIGKILL);
    if (!status_) ::waitpid(process_, nullptr, 0);
  }

  [[nodiscard]] pid_t launcher() const { return process_; }
  void signal(int number) const { ::kill(process_, number); }
  void signal_group(int number) const { ::kill(-process_, number); }

  /// Waits until the job has written a line to its standard output. Throws if the job ends without it.
  void wait_for(const std::string& line) {
    for (const auto until = Clock::now() + patience; said_[0].find(line + "\n") == std::string::npos;) {
      if (Clock::now() > until || ended()) throw std::runtime_error{"no line '" + line + "' in: " + said_[0] + said_[1]};
      look();
    }
  }
  /// Waits until the launcher and all processes that it started have ended. Returns the launcher's exit code, or -signal if a signal has
  /// killed it. Throws if they do not end in time.
  int end(std::chrono::seconds within = patience) {
    const auto until = Clock::now() + within;
    while (!ended() || !processes().empty()) {
      if (Clock::now() > until) throw std::runtime_error{"the job does not end; it said: " + said_[0] + said_[1]};
      look();
    }
    look();
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -WTERMSIG(*status_);
  }
  /// Reads what the job has written so far. Waits for a few milliseconds if it has written nothing.
  void read() { look(); }
  [[nodiscard]] const std::string& out() const { return said_[0]; }
  [[nodiscard]] const std::string& err() const { return said_[1]; }

  /// The running processes of the job, the launcher included. A process counts as soon as it runs the program.
  [[nodiscard]] std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (const pid_t process : all_processes())
      if (contents(pdp::text("/proc/", process, "/environ")).find(mark_) != std::string::npos) found.push_back(process);
    return found;
  }
  /// The child processes of the launcher, from the moment of their fork.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::vector<pid_t> found;
    for (const pid_t process : all_processes()) {
      const std::string stat = contents(pdp::text("/proc/", process, "/stat"));
      const std::size_t name_end = stat.rfind(") ");
      if (name_end != std::string::npos && std::atoi(stat.c_str() + name_end + 4) == process_) found.push_back(process);
    }
    return found;
  }

 private:
  static std::vector<pid_t> all_processes() {
    std::vector<pid_t> found;
    DIR* directory = ::opendir("/proc");
    while (const dirent* entry = ::readdir(directory))
      if (const pid_t process = std::atoi(entry->d_name); process > 0) found.push_back(process);
    ::closedir(directory);
    return found;
  }

  bool ended() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_.has_value();
  }
  void look() {
    std::array<pollfd, 2> polled{};
    for (std::size_t i = 0; i < 2; ++i) polled[i] = {.fd = ends_[i].get(), .events = POLLIN, .revents = 0};
    ::poll(polled.data(), polled.size(), 5);
    std::array<char, 4096> bytes;
    for (std::size_t i = 0; i < 2; ++i) {
      ssize_t read = 0;
      while (ends_[i] && (read = ::read(ends_[i].get(), bytes.data(), bytes.size())) > 0)
        said_[i].append(bytes.data(), static_cast<std::size_t>(read));
      if (read == 0) ends_[i].close();
    }
  }

  std::string mark_;
  pid_t process_ = -1;
  std::array<pdp::comm::Descriptor, 2> ends_;
  std::array<std::string, 2> said_;
  std::optional<int> status_;
};

}  // namespace launch_test
