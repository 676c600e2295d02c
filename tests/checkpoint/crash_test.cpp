#include <pdp/checkpoint/folder.hpp>
#include <pdp/checkpoint/parameters.hpp>
#include <pdp/checkpoint/save.hpp>
#include <pdp/comm/any.hpp>
#include <pdp/comm/self.hpp>
#include <pdp/core/error.hpp>
#include <pdp/cpu/cpu.hpp>
#include <pdp/strategy/single.hpp>
#include <pdp/testing/values.hpp>
#include <pdp/train/trainer.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "checkpoint/power_cut.hpp"
#include "checkpoint/small_training.hpp"
#include "data/files.hpp"

namespace crash_test {

namespace fs = std::filesystem;
namespace checkpoint = pdp::checkpoint;
using namespace small_training;

#ifdef __x86_64__

namespace {

/// From one call that meets a fault to the next. A sanitizer sees the same code each time, and takes long to fork.
constexpr int stride = PDP_TEST_SANITIZED ? 5 : 1;

enum class Fault { kill, full_disk, power_cut };

/// Whether a system call fails on a full disk.
bool takes_space(pid_t process, const user_regs_struct& call) {
  constexpr std::array<std::uint64_t, 11> calls{SYS_writev, SYS_fsync,    SYS_fdatasync, SYS_mkdir,   SYS_mkdirat,  SYS_linkat,
                                                SYS_rename, SYS_renameat, SYS_renameat2, SYS_symlink, SYS_symlinkat};
  if (call.orig_rax == SYS_write)  // a sanitizer writes to pipes
    return fs::is_regular_file("/proc/" + std::to_string(process) + "/fd/" + std::to_string(call.rdi));
  if (call.orig_rax == SYS_openat) return (call.rdx & (O_CREAT | __O_TMPFILE)) != 0;
  return std::ranges::find(calls, call.orig_rax) != calls.end();
}

struct Outcome {
  bool has_fault = false;  // false: the process made fewer calls
  int status = 0;          // as from waitpid
};

/// Runs f in a child process. Its system call with this number, counted from 0, meets the fault: the process is killed before it, or the
/// disk is full for this and all later calls. `disk` is told of the child's calls.
Outcome run_with_fault(const std::function<int()>& f, int number, Fault fault, PowerCut& disk) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error{"no child process"};
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(100);
    ::raise(SIGSTOP);
    ::_exit(f());
  }
  Outcome outcome;
  ::waitpid(child, &outcome.status, 0);
  if (!WIFSTOPPED(outcome.status)) throw std::runtime_error{"this system does not let a process trace its child"};
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int signal = 0;
  bool fails = false, is_inside = false;
  for (;;) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    ::waitpid(child, &outcome.status, 0);
    if (!WIFSTOPPED(outcome.status)) return outcome;
    signal = WSTOPSIG(outcome.status);
    if (signal != (SIGTRAP | 0x80)) continue;
    signal = 0;
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
    is_inside = !is_inside;  // the child stops before and after each call
    if (!is_inside) disk.observe(child, registers);
    if (is_inside && (fault != Fault::full_disk || takes_space(child, registers))) {
      outcome.has_fault = number-- <= 0;
      if (!outcome.has_fault) continue;
      if (fault != Fault::full_disk) ::kill(child, SIGKILL);
      registers.orig_rax = ~0ULL;  // no system call has this number
      fails = true;
      ::ptrace(PTRACE_SETREGS, child, nullptr, &registers);
    } else if (fails) {
      registers.rax = static_cast<std::uint64_t>(-ENOSPC);
      fails = false;
      ::ptrace(PTRACE_SETREGS, child, nullptr, &registers);
    }
  }
}

/// A training that has a checkpoint of its first step, and has made a second one.
class Training {
 public:
  Training() {
    step();
    trainer_.save(folder_ / "begin");
    before_ = trainer_.parameters();
    step();
    after_ = trainer_.parameters();
  }

  /// Saves a checkpoint, in which it keeps no older one. Meets a fault, and then checks that the folder has a whole checkpoint: the old one
  /// or the new one. Returns whether the process made enough system calls.
  bool survives(int number, Fault fault, Written written = Written::all) {
    const fs::path run = folder_ / "run";
    fs::remove_all(run);
    fs::copy(folder_ / "begin", run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    PowerCut disk{run, folder_ / "kept"};
    const Outcome outcome = run_with_fault([&] { return save(run); }, number, fault, disk);
    if (outcome.has_fault && fault == Fault::power_cut) disk.cut(written);
    CAPTURE(number);
    const bool has_ended = WIFEXITED(outcome.status), is_saved = has_ended && WEXITSTATUS(outcome.status) == 0;
    CAPTURE(outcome.status);
    if (fault == Fault::full_disk) REQUIRE((is_saved || (has_ended && WEXITSTATUS(outcome.status) == 3)));
    if (!outcome.has_fault) REQUIRE(is_saved);
    pdp::comm::Self self;
    Trainer loaded{self, strategy::Single{}, classifier, options};
    loaded.load(run);
    if (is_saved) REQUIRE(loaded.steps() == 2);
    REQUIRE((loaded.steps() == 1 || loaded.steps() == 2));
    check_equal(loaded.parameters(), loaded.steps() == 1 ? before_ : after_);
    return outcome.has_fault;
  }
  /// Saves a checkpoint in folders that do not exist yet. Then cuts the power, and checks that the checkpoint loads.
  void survives_in_new_folders(Written written) {
    const fs::path disk_folder = folder_ / "disk", run = disk_folder / "user" / "run";
    fs::create_directory(disk_folder);
    PowerCut disk{disk_folder, folder_ / "kept"};
    const Outcome outcome = run_with_fault([&] { return save(run); }, std::numeric_limits<int>::max(), Fault::power_cut, disk);
    REQUIRE((WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0));
    disk.cut(written);
    pdp::comm::Self self;
    Trainer loaded{self, strategy::Single{}, classifier, options};
    loaded.load(run);
    check_equal(loaded.parameters(), after_);
  }
  /// Saves with the folder as it is after the last fault.
  void save_again() {
    REQUIRE(save(folder_ / "run") == 0);
    const auto found = checkpoint::checkpoints_in(folder_ / "run");
    REQUIRE(found.size() == 1);
    CHECK(found.front().step == 2);
    for (const auto& entry : fs::directory_iterator{folder_ / "run"})
      CHECK_THAT(entry.path().filename().string(), !StartsWith(".step") && !EndsWith(".new"));
  }

 private:
  using Trainer = pdp::Trainer<pdp::comm::Self, strategy::AnyStrategy, std::remove_const_t<decltype(classifier)>>;

  void step() {
    const auto x = pdp::testing::normal(12 * 6, ++seed_);
    trainer_.step(x, std::vector<std::int32_t>(12, 1));
  }
  /// Returns 0, or 3 after a FileError for the full disk.
  int save(const fs::path& run) {
    try {
      const checkpoint::FolderLock lock{run};
      checkpoint::Copies copies;
      checkpoint::Save{any_, trainer_.engine().state(), {.lock = &lock, .keep = 1}, copies}.finish();
      return 0;
    } catch (const pdp::FileError& error) {
      return std::string_view{error.what()}.find("No space left") != std::string_view::npos ? 3 : 4;
    } catch (const std::exception&) {
      return 5;
    }
  }

  files::TemporaryFolder folder_;
  pdp::comm::Self self_;
  pdp::comm::Any any_ = pdp::comm::Any::borrow(self_);
  Trainer trainer_{self_, strategy::Single{}, classifier, options};
  std::vector<checkpoint::Tensor> before_, after_;
  std::uint64_t seed_ = 0;
};

}  // namespace

TEST_CASE("After a crash at any system call of a save, the old or the new checkpoint loads", "[checkpoint]") {
  Training training;
  int number = 0;
  while (training.survives(number, Fault::kill)) {
    if (number % 10 == 0) training.save_again();
    number += stride;
  }
  CHECK(number > 40);
}

TEST_CASE("After a power cut at any system call of a save, the old or the new checkpoint loads", "[checkpoint]") {
  const Written written = GENERATE(Written::none, Written::removals, Written::all);
  Training training;
  int number = 0;
  while (training.survives(number, Fault::power_cut, written)) {
    if (number % 10 == 0) training.save_again();
    number += stride;
  }
  CHECK(number > 40);
}

TEST_CASE("The first checkpoint in new folders loads after a power cut", "[checkpoint]") {
  const Written written = GENERATE(Written::none, Written::removals, Written::all);
  Training{}.survives_in_new_folders(written);
}

TEST_CASE("If the disk becomes full at any system call of a save, the error says so and a checkpoint remains", "[checkpoint]") {
  Training training;
  int number = 0;
  while (training.survives(number, Fault::full_disk)) {
    training.save_again();
    number += stride;
  }
  CHECK(number > 10);
}

#endif

}  // namespace crash_test
