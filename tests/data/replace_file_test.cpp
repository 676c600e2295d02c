#include <pdp/data/replace_file.hpp>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "catch.hpp"
#include "data/files.hpp"

namespace replace_file_test {

namespace data = pdp::data;

namespace {

void replace(const std::filesystem::path& path, const std::string& bytes) {
  data::ReplaceFile file{path};
  file.write(files::as_bytes(bytes));
  file.commit();
}

std::string refusal(const std::filesystem::path& path, const std::string& bytes = "new") {
  return files::message_of<pdp::FileError>([&] { replace(path, bytes); }).value_or("no error");
}

}  // namespace

TEST_CASE("ReplaceFile creates or replaces a file and leaves nothing beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string large(3'000'001, 'x');
  for (const std::string& bytes : {std::string{"first"}, std::string{}, large, std::string{"last"}}) {
    replace(folder / "weights", bytes);
    CHECK(files::read(folder / "weights") == bytes);
    CHECK(folder.names() == std::vector<std::string>{"weights"});
  }
}

TEST_CASE("ReplaceFile keeps the old file until commit, and discards the new one without it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  {
    data::ReplaceFile file{folder / "weights"};
    file.write(files::as_bytes("new"));
    CHECK(files::read(folder / "weights") == "old");
  }
  CHECK(files::read(folder / "weights") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

TEST_CASE("Two ReplaceFile writers of one path do not disturb each other", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  data::ReplaceFile one{folder / "weights"}, other{folder / "weights"};
  one.write(files::as_bytes("one"));
  other.write(files::as_bytes("other"));
  other.commit();
  CHECK(files::read(folder / "weights") == "other");
  one.commit();
  CHECK(files::read(folder / "weights") == "one");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("ReplaceFile gives a new file the permissions that the umask allows", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const mode_t mask = ::umask(0027);
  replace(folder / "weights", "new");
  ::umask(mask);
  CHECK(std::filesystem::status(folder / "weights").permissions() == std::filesystem::perms{0640});
}

TEST_CASE("ReplaceFile writes a bare file name to the current folder", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string error = refusal("weights");
  std::filesystem::current_path(before);
  CHECK(error == "no error");
  CHECK(files::read(folder / "weights") == "new");
}

TEST_CASE("ReplaceFile rejects a path that it cannot write, with the reason and advice", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "file", "");
  CHECK_THAT(refusal(folder / "none" / "weights"),
             Contains("none/weights: cannot") && Contains("No such file") && Contains("Create the folder"));
  CHECK_THAT(refusal(folder / "file" / "weights"), Contains("cannot") && Contains("Not a directory"));
  CHECK_THAT(refusal(folder.path()), Contains("found a directory or a device"));
  CHECK_THAT(refusal(folder / ""), Contains("found a directory or a device"));
  CHECK_THAT(refusal(folder / std::string(300, 'x')), Contains("File name too long"));
  CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("check_writable throws for a path that cannot be written and changes no file", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::filesystem::path path = folder / "weights";
  data::check_writable(path);
  CHECK(folder.names().empty());
  replace(path, "old");
  data::check_writable(path);
  CHECK(files::read(path) == "old");
  CHECK_THROWS_AS(data::check_writable(folder / "no/such/folder/weights"), pdp::FileError);
  CHECK_THROWS_AS(data::check_writable(folder.path()), pdp::FileError);
}

TEST_CASE("ReplaceFile does not replace a device", "[data][replace_file]") {
  CHECK_THAT(refusal("/dev/null"), Contains("found a directory or a device"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("ReplaceFile rejects a folder without write permission", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  ::chmod(folder.path().c_str(), 0555);
  const std::string error = files::in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string{"cannot stop being root"};
    return refusal(folder / "weights");
  });
  ::chmod(folder.path().c_str(), 0755);
  CHECK_THAT(error, Contains("Permission denied") && Contains("Choose a folder that this user may write to"));
  CHECK(files::read(folder / "weights") == "old");
}

TEST_CASE("ReplaceFile keeps the old file at a file size limit and leaves nothing beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  const std::string error = files::in_child([&] {
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal(folder / "weights", std::string(1'000'000, 'x'));
  });
  CHECK_THAT(error, Contains("weights: cannot write it: File too large") && Contains("ulimit -f"));
  CHECK(files::read(folder / "weights") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

TEST_CASE("ReplaceFile keeps the old file on a full disk and leaves nothing beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string result = files::in_child([&]() -> std::string {
    const std::string place = folder.path();
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return "no mount";
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("pdp", place.c_str(), "tmpfs", 0, "size=256k") != 0) return "no mount";
    files::write(folder / "weights", "old");
    const std::string error = refusal(folder / "weights", std::string(1'000'000, 'x'));
    const bool whole = files::read(folder / "weights") == "old" && folder.names().size() == 1;
    return error + (whole ? " [old file whole]" : " [DAMAGED]");
  });
  if (result == "no mount") {
    WARN("skipped: this user may not mount a small disk");
    return;
  }
  CHECK_THAT(result, Contains("cannot write it: No space left on device") && Contains("Free some space") && EndsWith("[old file whole]"));
}

TEST_CASE("ReplaceFile in a killed process keeps the old file, and the next writer removes any leftover", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  for (const int signal : {SIGINT, SIGKILL}) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);  // Catch's handler would report the signal
      data::ReplaceFile file{folder / "weights"};
      file.write(files::as_bytes("half of it"));
      ::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WTERMSIG(status) == signal);
    CHECK(files::read(folder / "weights") == "old");
  }
  replace(folder / "weights", "new");
  CHECK(files::read(folder / "weights") == "new");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

namespace {

/// Returns the temporary file name of a writer on `host`, for file systems without O_TMPFILE.
std::string left_by(const std::string& host, int process = 4'000'000) {
  return pdp::text("weights.", host.substr(0, 32), '.', process, ".0.new");
}
std::string this_host() {
  std::string name(256, '\0');
  ::gethostname(name.data(), name.size());
  return name.c_str();
}

}  // namespace

TEST_CASE("ReplaceFile removes the leftovers of ended writers of its path, and nothing else", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string other_path = "weights2." + this_host() + ".4000000.0.new", user = "weights.1.2.new",
                    elsewhere = left_by("another.host"), long_ago = left_by("another.host", 4'000'001),
                    running = left_by(this_host(), 4'000'002);
  for (const std::string& name : {left_by(this_host()), other_path, user, elsewhere, long_ago, running, std::string{"weights.new"}})
    files::write(folder / name, "half");
  std::filesystem::create_directory(folder / left_by(this_host(), 4'000'003));
  std::filesystem::last_write_time(folder / long_ago, std::filesystem::file_time_type::clock::now() - std::chrono::hours{2});
  const int lock = ::open((folder / running).c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);

  replace(folder / "weights", "new");
  auto names = folder.names();
  std::ranges::sort(names);
  std::vector<std::string> expected{"weights", "weights.new", other_path, user, elsewhere, running, left_by(this_host(), 4'000'003)};
  std::ranges::sort(expected);
  CHECK(names == expected);

  ::close(lock);  // as if its writer had ended
  replace(folder / "weights", "newer");
  CHECK_FALSE(std::filesystem::exists(folder / running));
}

TEST_CASE("ReplaceFile searches the folder of a path for leftovers once per process", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  replace(folder / "weights", "new");
  files::write(folder / left_by(this_host()), "half");
  replace(folder / "weights", "newer");
  CHECK(std::filesystem::exists(folder / left_by(this_host())));
  CHECK(files::in_child([&] { return refusal(folder / "weights"); }) == "no error");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

namespace {

/// Makes O_TMPFILE fail in this process, as on NFS. Returns false if the system does not allow such a filter.
bool refuse_files_without_name() {
  constexpr std::uint32_t without_name = O_TMPFILE & ~O_DIRECTORY;
  std::array<sock_filter, 6> filter{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, without_name, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("ReplaceFile without O_TMPFILE removes the file of a killed writer, not that of a live one", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string result = files::in_child([&]() -> std::string {
    if (!refuse_files_without_name()) return "no filter";
    const pid_t killed = ::fork();
    if (killed == 0) {
      data::ReplaceFile file{folder / "weights"};
      file.write(files::as_bytes("half of it"));
      ::raise(SIGKILL);
    }
    ::waitpid(killed, nullptr, 0);
    std::string found = folder.names().size() == 1 ? "left" : "nothing left";
    data::ReplaceFile live{folder / "weights"};
    found += folder.names().size() == 1 ? ", replaced" : ", still there";
    live.write(files::as_bytes("live"));
    replace(folder / "weights", "other");
    live.commit();
    return found + ", " + files::read(folder / "weights") + pdp::text(", ", folder.names().size(), " file");
  });
  if (result == "no filter") {
    WARN("skipped: this system allows no filter of system calls");
    return;
  }
  CHECK(result == "left, replaced, live, 1 file");
}

}  // namespace replace_file_test
