#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pdp/launch/access/munge.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace munge_test {

namespace launch = pdp::launch;
using launch::Access;
using launch::Munge;
using launch::TcpStore;
using launch::TcpStoreServer;
using pdp::comm::Clock;
using pdp::comm::Secret;
using support::message_of;

namespace {

pdp::comm::TimePoint patience() { return Clock::now() + std::chrono::seconds{60}; }

/// A munge daemon with a key and a socket of its own, for the lifetime of this object. There is no daemon if munged is not installed.
class Daemon {
 public:
  Daemon() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pdp_munge_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
    folder_ = pattern;
    ::chmod(folder_.c_str(), 0755);
    {
      std::ofstream key{folder_ / "key", std::ios::binary};
      std::random_device random;
      for (int i = 0; i < 128; ++i) key.put(static_cast<char>(random()));
    }
    ::chmod((folder_ / "key").c_str(), 0600);
    process_ = ::fork();
    if (process_ == 0) {
      const auto option = [&](const char* name) { return pdp::text("--", name, "-file=", (folder_ / name).string()); };
      std::vector<std::string> words{"munged",      "--foreground", "--force",      option("key"),
                                     option("pid"), option("log"),  option("seed"), "--socket=" + socket()};
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin", 1);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
      ::execvp("munged", arguments.data());
      ::_exit(127);
    }
    for (const auto until = Clock::now() + std::chrono::seconds{10}; Clock::now() < until && !answers() && running();)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  Daemon(Daemon&&) = delete;
  ~Daemon() {
    if (running()) {
      ::kill(process_, SIGCONT);
      ::kill(process_, SIGTERM);
      ::waitpid(process_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string socket() const { return (folder_ / "socket").string(); }
  [[nodiscard]] bool answers() const {
    try {
      return std::filesystem::exists(socket()) && !Munge{socket()}.encode(Secret{"a"}, Clock::now() + std::chrono::seconds{5}).empty();
    } catch (const pdp::Error&) {
      return false;
    }
  }
  void signal(int number) const { ::kill(process_, number); }

 private:
  bool running() {
    if (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
    return process_ > 0;
  }

  std::filesystem::path folder_;
  pid_t process_ = -1;
};

bool here(const Daemon& daemon) {
  if (!daemon.answers()) WARN("munged is not installed here, or does not start: munge is not tested");
  return daemon.answers();
}

Access by_munge(const Daemon& daemon) { return {.munge_socket = daemon.socket()}; }

}  // namespace

TEST_CASE("Munge::decode returns this user's secret every time and rejects a damaged credential", "[launch][munge]") {
  const Daemon daemon;
  if (!here(daemon)) return;
  const Munge munge{daemon.socket()};
  const std::string bytes(32, 's');
  const std::string credential = munge.encode(Secret{bytes}, patience());
  CHECK_THAT(credential, StartsWith("MUNGE:") && !Contains(bytes));
  CHECK(munge.decode(credential, patience()).bytes() == bytes);
  CHECK(munge.decode(credential, patience()).bytes() == bytes);
  std::string damaged = credential;
  damaged[20] = damaged[20] == 'A' ? 'B' : 'A';
  CHECK_THROWS_AS(munge.decode(damaged, patience()), pdp::ConfigError);
  CHECK_THROWS_WITH(munge.decode("hello", patience()), Contains("munge"));
}

TEST_CASE("Munge neither gives a secret to another user nor accepts one from it", "[launch][munge]") {
  const Daemon daemon;
  if (!here(daemon)) return;
  if (::geteuid() != 0) {
    WARN("only root can become another user");
    return;
  }
  const Munge munge{daemon.socket()};
  const std::string ours = munge.encode(Secret{std::string(32, 's')}, patience());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    // The other user makes a credential that any user may decrypt. Then it tries to decrypt the credential of this user.
    ::dup2(ends[1], STDOUT_FILENO);
    const std::string make = "printf '%032d' 7 | munge --socket=" + daemon.socket();
    if (std::system(make.c_str()) != 0) ::_exit(7);
    const std::string take = pdp::text("echo '", ours, "' | unmunge --socket=", daemon.socket(), " >/dev/null 2>&1");
    ::_exit(WEXITSTATUS(std::system(take.c_str())));
  }
  ::close(ends[1]);
  std::string theirs;
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1 && byte != '\n') theirs += byte;
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 18);  // not authorized
  CHECK_THROWS_WITH(munge.decode(theirs, patience()), Contains("the job's store belongs to user id 65534"));
}

TEST_CASE("Ranks join a store by munge only if they have the same munge key and no other secret", "[launch][munge]") {
  const Daemon daemon, other;
  if (!here(daemon)) return;
  TcpStoreServer server{"127.0.0.1", 0, 4, by_munge(daemon)};
  TcpStore one{"127.0.0.1", server.port(), patience(), 0, 4, by_munge(daemon)};
  TcpStore two{"127.0.0.1", server.port(), patience(), 1, 4, by_munge(daemon)};
  one.set("key", "value");
  CHECK(two.wait("key", patience()) == "value");
  CHECK(one.membership().secret.bytes().size() == 32);
  CHECK(one.membership().secret.bytes() == two.membership().secret.bytes());
  CHECK_THROWS_WITH((TcpStore{"127.0.0.1", server.port(), patience(), 2, 4, by_munge(other)}), Contains("munge cannot decrypt"));
  Access secret = by_munge(daemon);
  secret.secret = Secret{"sixteen bytes or more"};
  CHECK_THROWS_WITH((TcpStore{"127.0.0.1", server.port(), patience(), 2, 4, secret}), Contains("this rank has a secret"));
}

TEST_CASE("A missing or stopped munge daemon is an error that names munge", "[launch][munge]") {
  const auto begin = std::chrono::steady_clock::now();
  const Access nowhere{.munge_socket = "/no/such/socket"};
  const auto words = message_of<pdp::ConfigError>([&] { TcpStoreServer{"127.0.0.1", 0, 4, nowhere}; });
  REQUIRE(words);
  CHECK_THAT(*words, Contains("munge") && Contains("PDP_MUNGE_SOCKET") && Contains("PDP_SECRET_FILE"));
  const Daemon daemon;
  if (!here(daemon)) return;
  const std::string credential = Munge{daemon.socket()}.encode(Secret{std::string(32, 's')}, patience());
  daemon.signal(SIGSTOP);
  const auto soon = Clock::now() + std::chrono::milliseconds{300};
  CHECK_THROWS_WITH(Munge{daemon.socket()}.decode(credential, soon), Contains("the munge daemon did not answer"));
  CHECK_THROWS_WITH(Munge{daemon.socket()}.encode(Secret{"a"}, soon), Contains("the munge daemon did not answer"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{30});
}

}  // namespace munge_test
