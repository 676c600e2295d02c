#include <pdp/data/replace_file.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

/// What `call` returns in a process of its own, whose limits and mounts it may change.
std::string in_child(const std::function<std::string()>& call) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string result = call();
    const auto written = ::write(pipe[1], result.data(), result.size());
    ::_exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string result(4096, '\0');
  const auto size = ::read(pipe[0], result.data(), result.size());
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  result.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return result;
}

}  // namespace

TEST_CASE("a file is created or replaced, and nothing stays beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string large(3'000'001, 'x');
  for (const std::string& bytes : {std::string{"first"}, std::string{}, large, std::string{"last"}}) {
    replace(folder / "weights", bytes);
    CHECK(files::read(folder / "weights") == bytes);
    CHECK(folder.names() == std::vector<std::string>{"weights"});
  }
}

TEST_CASE("the old file is there whole until commit, and stays without it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  {
    data::ReplaceFile file{folder / "weights"};
    file.write(files::as_bytes("new"));
    CHECK(files::read(folder / "weights") == "old");
    CHECK(folder.names().size() == 2);
  }
  CHECK(files::read(folder / "weights") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

TEST_CASE("two writers of one path do not disturb each other", "[data][replace_file]") {
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

TEST_CASE("a new file has the permissions of any new file", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const mode_t mask = ::umask(0027);
  replace(folder / "weights", "new");
  ::umask(mask);
  CHECK(std::filesystem::status(folder / "weights").permissions() == std::filesystem::perms{0640});
}

TEST_CASE("a relative path without a folder is written to the current one", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string error = refusal("weights");
  std::filesystem::current_path(before);
  CHECK(error == "no error");
  CHECK(files::read(folder / "weights") == "new");
}

TEST_CASE("a path that cannot be written is refused with the reason and advice", "[data][replace_file]") {
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

TEST_CASE("a device is never replaced by a file", "[data][replace_file]") {
  CHECK_THAT(refusal("/dev/null"), Contains("found a directory or a device"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a folder without permission is refused", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  ::chmod(folder.path().c_str(), 0555);
  const std::string error = in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string{"cannot stop being root"};
    return refusal(folder / "weights");
  });
  ::chmod(folder.path().c_str(), 0755);
  CHECK_THAT(error, Contains("Permission denied") && Contains("Choose a folder that this user may write to"));
  CHECK(files::read(folder / "weights") == "old");
}

TEST_CASE("at a limit of the file size the old file stays whole, and nothing beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  files::write(folder / "weights", "old");
  const std::string error = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return refusal(folder / "weights", std::string(1'000'000, 'x'));
  });
  CHECK_THAT(error, Contains("weights: cannot write it: File too large") && Contains("Free some space"));
  CHECK(files::read(folder / "weights") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights"});
}

TEST_CASE("on a full disk the old file stays whole, and nothing beside it", "[data][replace_file]") {
  const files::TemporaryFolder folder;
  const std::string result = in_child([&]() -> std::string {
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

}  // namespace replace_file_test
