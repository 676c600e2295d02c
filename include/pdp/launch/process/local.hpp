#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pdp/comm/clock.hpp>
#include <pdp/comm/join/membership.hpp>
#include <pdp/comm/os/system_limits.hpp>
#include <pdp/core/cast.hpp>
#include <pdp/core/error.hpp>
#include <pdp/launch/process/launcher_signals.hpp>
#include <pdp/launch/process/process.hpp>
#include <pdp/launch/process/signal_name.hpp>
#include <pdp/launch/process/start_time.hpp>

namespace pdp::launch {

/// The ranks that one launcher starts on its machine.
struct LocalRanks {
  int first = 0;  // rank of the first one
  int count = 1;
  int size = 1;           // ranks of the job
  std::string address{};  // of the job's store; empty if that is a folder
  std::uint16_t port = 0;
  std::optional<comm::Secret> secret{};  // drawn by the launcher for these ranks
  comm::Job job{};
  bool stops_on_request = false;  // see Options
};

/// Starts local ranks and waits for them. When a rank fails, ends all ranks and prints one error: the first that is not the consequence of
/// another.
class Launcher {
 public:
  /// Called when a rank has ended too early. `why`: the reason. `missed`: whether the job has failed because of this rank. If not, the rank
  /// has exited with code 0 and without a report, and perhaps no other rank needs it.
  using OnEnd = std::function<void(int rank, const std::string& why, bool missed)>;

  explicit Launcher(LocalRanks ranks, OnEnd on_end = nullptr) : ranks_{std::move(ranks)}, on_end_{std::move(on_end)} {}
  Launcher(Launcher&&) = delete;
  ~Launcher() { end_all(); }

  /// After run(): returns whether a rank has failed, and no signal has asked the launcher to end the job.
  [[nodiscard]] bool may_start_again() const { return failed_ && interrupted_ == 0 && passed_on_ == 0; }
  /// Returns the job's exit code: 0, or that of the lowest rank whose function did not return 0; 1 or 2 for an error; 130 for SIGINT, 143
  /// for SIGTERM, and 141 if the reader of standard output is gone (SIGPIPE).
  int run() {
    start_all();
    std::optional<comm::TimePoint> verdict_at;
    while (alive() > 0) {
      look(verdict_at.value_or(comm::Clock::now() + std::chrono::hours{1}));
      if (interrupted_ != 0 && !passes_on()) {
        end_all();
        return 128 + interrupted_;
      }
      if (root_ && !root_may_be_interrupt_) break;
      // A rank has failed, perhaps because another rank has failed and its report is still in flight.
      if ((root_ || consequence_) && !verdict_at) verdict_at = comm::Clock::now() + grace;
      if (verdict_at && comm::Clock::now() >= *verdict_at) break;
    }
    return verdict();
  }

 private:
  static constexpr std::chrono::milliseconds grace{200};        // for the root cause of an error to arrive
  static constexpr std::chrono::milliseconds time_to_end{500};  // between SIGTERM and SIGKILL

  struct Child {
    int rank = 0;
    Process process;
    std::string said;
    bool running = true;
    bool stops = false;  // by itself, after SIGTERM or SIGUSR1
    int status = 0;

    [[nodiscard]] bool finished() const { return said.starts_with(Report::finished_letter); }
    [[nodiscard]] bool told() const { return !said.empty() && !finished(); }
  };
  struct Fault {
    int rank;
    Problem problem;
  };

  void start_all() {
    const std::vector<Cores> places = openmp_places();
    Command command;
    command.set("WORLD_SIZE", std::to_string(ranks_.size));
    if (!ranks_.address.empty()) {
      command.set("MASTER_ADDR", ranks_.address);
      command.set("MASTER_PORT", std::to_string(ranks_.port));
      command.set("PDP_STORE", "launcher");
    }
    // Other users can read the command line of a process, but not its environment.
    if (ranks_.secret) command.set("PDP_SECRET", std::string{ranks_.secret->bytes()});
    command.set("PDP_STARTED", text(static_cast<std::int64_t>(1000 * start_time(environment))));
    if (!ranks_.job.name.empty()) command.set("PDP_JOB", ranks_.job.name);
    if (!ranks_.job.attempt.empty()) command.set("PDP_ATTEMPT", ranks_.job.attempt);
    sigset_t mask = signals_.before();
    for (const int signal : {SIGTERM, SIGUSR1})
      if (ranks_.stops_on_request) ::sigaddset(&mask, signal);  // until the rank notices them
    for (int i = 0; i < ranks_.count; ++i) {
      command.set("RANK", std::to_string(ranks_.first + i));
      command.set("LOCAL_RANK", std::to_string(i));
      const std::optional<Cores> cores = share_of(places, i, ranks_.count);
      // GCC's OpenMP binds threads to the cores in this variable even if the process may not run on them.
      if (cores && std::getenv("GOMP_CPU_AFFINITY") != nullptr) command.set("GOMP_CPU_AFFINITY", describe(*cores));
      children_.push_back({.rank = ranks_.first + i,
                           .process = start(command, mask, signals_.on_child_before(), cores),
                           .said = {},
                           .stops = ranks_.stops_on_request});
    }
  }

  [[nodiscard]] std::ptrdiff_t alive() const { return std::ranges::count_if(children_, &Child::running); }

  /// Passes the first request to stop on to the ranks, if all of them stop by themselves. Returns false if the launcher must end them: at
  /// SIGINT, at a second request, after a failure, or if a rank does not stop by itself.
  [[nodiscard]] bool passes_on() {
    const bool all_stop = std::ranges::all_of(children_, [](const Child& child) { return child.stops || !child.running; });
    if (interrupted_ == SIGINT || passed_on_ != 0 || root_ || consequence_ || !all_stop) return false;
    for (const Child& child : children_)
      if (child.running) ::kill(child.process.id, interrupted_);
    passed_on_ = std::exchange(interrupted_, 0);
    return true;
  }

  /// Waits until a rank or a signal needs attention, or until the given time. Records everything that has happened.
  void look(comm::TimePoint until) {
    polled_.assign(1, {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0});
    for (const Child& child : children_) polled_.push_back({.fd = child.process.report.get(), .events = POLLIN, .revents = 0});
    const timespec left = comm::time_left(until);
    ::ppoll(polled_.data(), polled_.size(), &left, nullptr);
    if (const int signal = signals_.take(); signal != 0) interrupted_ = signal;
    for (Child& child : children_) listen(child);
    for (Child& child : children_) reap(child);
  }

  void listen(Child& child) {
    if (!child.process.report) return;
    char words[4096];
    const ssize_t read = ::read(child.process.report.get(), words, sizeof words);
    if (read < 0) return;
    if (read == 0) return child.process.report.close();
    child.said.append(words, as_size(read));
    while (child.said.starts_with(Report::stop_letter) || child.said.starts_with(Report::no_stop_letter)) {
      child.stops = child.said.front() == Report::stop_letter;
      child.said.erase(0, 1);
    }
    if (!child.told()) return;
    const Problem problem{static_cast<Problem::Kind>(child.said.front()), child.said.substr(1)};
    note(problem.kind == Problem::Kind::consequence ? consequence_ : root_, {child.rank, problem});
  }

  void reap(Child& child) {
    if (!child.running || ::waitpid(child.process.id, &child.status, WNOHANG) != child.process.id) return;
    child.running = false;
    listen(child);
    if (child.told()) return;
    if (WIFSIGNALED(child.status)) {
      const int signal = WTERMSIG(child.status);
      if (!root_) reader_is_gone_ = signal == SIGPIPE;
      // A signal to the launcher may still be in flight: the terminal sends Ctrl-C to the ranks and to the launcher.
      if (!root_) root_may_be_interrupt_ = signal == SIGINT || signal == SIGTERM;
      note(root_, {child.rank, {Problem::Kind::root, describe_signal(signal)}});
    } else if (const int code = WEXITSTATUS(child.status); !child.finished()) {
      // A rank that exits with code 0 and sends no report has failed only if other ranks miss it.
      const std::string why = text("ended with exit code ", code, " in the middle of the job");
      note(code != 0 ? root_ : quitter_, {child.rank, {Problem::Kind::root, why}});
      if (code == 0 && on_end_) on_end_(child.rank, why, false);
    }
  }

  static void note(std::optional<Fault>& first, Fault fault) {
    if (!first) first = std::move(fault);
  }

  int verdict() {
    if (!root_ && consequence_ && quitter_) root_ = quitter_;
    const std::optional<Fault>& fault = root_ ? root_ : consequence_;
    if (fault && reader_is_gone_) {  // as in `program | head -1`: end silently, as other programs do
      end_all();
      return 128 + SIGPIPE;
    }
    if (fault && passed_on_ != 0 && killed_by(passed_on_)) {  // it stopped by itself no longer when the signal arrived
      end_all();
      return 128 + passed_on_;
    }
    if (fault) {
      failed_ = fault->problem.kind != Problem::Kind::usage;
      Report::print(fault->problem, fault->rank);
      if (root_ && on_end_) on_end_(fault->rank, fault->problem.message, true);
      end_all();
      return fault->problem.exit_code();
    }
    for (const Child& child : children_)
      if (const int code = WEXITSTATUS(child.status); code != 0) return code;
    return 0;
  }

  /// Returns whether a signal has killed a rank.
  [[nodiscard]] bool killed_by(int signal) const {
    return std::ranges::any_of(
        children_, [&](const Child& child) { return !child.running && WIFSIGNALED(child.status) && WTERMSIG(child.status) == signal; });
  }

  /// Ends all ranks. Leaves neither processes nor zombies.
  void end_all() noexcept {
    for (const int signal : {SIGTERM, SIGKILL}) {
      for (const Child& child : children_)
        if (child.running) ::kill(child.process.id, signal);
      for (const comm::TimePoint until = comm::Clock::now() + time_to_end;
           alive() > 0 && (signal == SIGKILL || comm::Clock::now() < until);) {
        for (Child& child : children_)
          if (child.running && ::waitpid(child.process.id, &child.status, WNOHANG) == child.process.id) child.running = false;
        if (alive() == 0) break;
        pollfd polled{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0};
        ::poll(&polled, 1, 10);
        if (const int another = signals_.take(); another != 0) interrupted_ = another;  // also ends the restarts
      }
    }
  }

  LocalRanks ranks_;
  OnEnd on_end_;
  LauncherSignals signals_;
  std::vector<Child> children_;
  std::vector<pollfd> polled_;
  int interrupted_ = 0;        // the signal that the launcher has received
  int passed_on_ = 0;          // the signal that it has passed on to the ranks
  bool failed_ = false;        // a rank has failed
  std::optional<Fault> root_;  // the first fault that is no consequence of another
  bool root_may_be_interrupt_ = false;
  bool reader_is_gone_ = false;       // of standard output
  std::optional<Fault> consequence_;  // the first consequence of another fault
  std::optional<Fault> quitter_;      // the first rank that exited with code 0 and sent no report
};

}  // namespace pdp::launch
