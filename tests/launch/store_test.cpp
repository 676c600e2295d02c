#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <pdp/launch/store/file_store.hpp>
#include <pdp/launch/store/in_process_store.hpp>
#include <pdp/launch/store/tcp_store.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"

namespace store_test {

namespace launch = pdp::launch;
namespace handshake = pdp::comm::handshake;
using pdp::comm::Clock;

namespace {

pdp::comm::TimePoint patience() { return Clock::now() + std::chrono::seconds{60}; }

/// A store and two objects that access it, one for each of two ranks.
struct InProcess {
  launch::InProcessStore one;
  launch::InProcessStore& two = one;
};
/// The name localhost if this machine can resolve it, else the address. A bare container may lack the name.
std::string here(std::uint16_t port) {
  std::string why;
  return launch::resolve("localhost", port, why).empty() ? "127.0.0.1" : "localhost";
}
struct File {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / pdp::text("pdp_store_", ::getpid(), '_', ++made);
  launch::FileStore one{folder}, two{folder};
  File() = default;
  File(File&&) = delete;
  ~File() { std::filesystem::remove_all(folder); }
  static inline int made = 0;
};

/// A file system with a transient failure: after `when` successful calls of kind `failing`, the next `times` ones fail with `error`. All
/// other calls work.
struct FailingCalls {
  enum class Call { stat, open, flock, read, write, close, rename };
  static inline thread_local Call failing = Call::stat;
  static inline thread_local int error = 0, when = 0, times = 0;
  static void fail(Call call, int with, int first, int count) { failing = call, error = with, when = first, times = count; }

  static bool fails(Call call) {
    if (call != failing || times == 0) return false;
    if (when > 0) return --when, false;
    --times;
    errno = error;
    return true;
  }
  using Real = launch::FileCalls;
  static int stat(const char* path, struct ::stat* about) { return fails(Call::stat) ? -1 : Real::stat(path, about); }
  static int open(const char* path, int flags) { return fails(Call::open) ? -1 : Real::open(path, flags); }
  static int flock(int file, int operation) { return fails(Call::flock) ? -1 : Real::flock(file, operation); }
  static ssize_t read(int file, void* bytes, std::size_t size) { return fails(Call::read) ? -1 : Real::read(file, bytes, size); }
  static ssize_t write(int file, const void* bytes, std::size_t size) {
    return fails(Call::write) ? -1 : Real::write(file, bytes, std::min<std::size_t>(size, 1));
  }
  static int close(int file) {
    const bool failed = fails(Call::close);
    Real::close(file);
    return failed ? -1 : 0;
  }
  static int rename(const char* from, const char* to) {
    if (!fails(Call::rename)) return Real::rename(from, to);
    if (error == ENOENT) Real::rename(from, to);  // carried out, but the reply was lost
    errno = error;
    return -1;
  }
};
struct Tcp {
  launch::TcpStoreServer server{"127.0.0.1", 0, 3};
  launch::TcpStore one{"127.0.0.1", server.port(), patience(), 0, 3};
  launch::TcpStore two{here(server.port()), server.port(), patience(), 1, 3};
};

pdp::comm::Descriptor stranger(std::uint16_t port) {
  std::string why;
  const auto address = launch::resolve("127.0.0.1", port, why).at(0);
  pdp::comm::Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (::connect(socket.get(), address.get(), address.size) != 0) throw std::runtime_error{"connect"};
  return socket;
}
void say(const pdp::comm::Descriptor& socket, const std::string& bytes) {
  static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

}  // namespace

namespace {

/// A process that hosts a store.
class Host {
 public:
  /// `room`: for how many connections the process has descriptors; unlimited if negative.
  explicit Host(int room) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"pipe"};
    process_ = ::fork();
    if (process_ == 0) {
      launch::TcpStoreServer server{"127.0.0.1", 0, 4};
      const int next = ::dup(ends[1]);
      ::close(next);
      const auto limit = static_cast<rlim_t>(next + room);
      const rlimit files{limit, limit};
      if (room >= 0 && ::setrlimit(RLIMIT_NOFILE, &files) != 0) ::_exit(1);
      const std::uint16_t port = server.port();
      if (::write(ends[1], &port, sizeof port) == sizeof port) ::pause();
      ::_exit(1);
    }
    const pdp::comm::Descriptor read_end{ends[0]}, write_end{ends[1]};
    if (::read(read_end.get(), &port_, sizeof port_) != sizeof port_) throw std::runtime_error{"no port"};
  }
  Host(Host&&) = delete;
  ~Host() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  void signal(int number) const { ::kill(process_, number); }
  [[nodiscard]] launch::TcpStore join(int rank) const { return {"127.0.0.1", port_, patience(), rank, 4}; }

 private:
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace

TEMPLATE_TEST_CASE("A store returns the exact bytes that another rank has set", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  const std::string bytes{"a\0b\n\xff", 5}, large(60'000, 'x');
  store.one.set("key", bytes);
  store.one.set("empty", "");
  store.one.set("large", large);
  CHECK(store.two.wait("key", patience()) == bytes);
  CHECK(store.two.wait("empty", patience()).empty());
  CHECK(store.two.wait("large", patience()) == large);
  CHECK(store.one.wait("key", Clock::now()) == bytes);
}

TEMPLATE_TEST_CASE("A store's wait returns a value that another rank sets later", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  std::string got;
  {
    const std::jthread waiting{[&] { got = store.two.wait("late", patience()); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    store.one.set("late", "here");
  }
  CHECK(got == "here");
}

TEMPLATE_TEST_CASE("A store's wait throws Timeout with the missing key, and the store goes on", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  CHECK_THROWS_AS(store.one.wait("never", Clock::now() + std::chrono::milliseconds{20}), pdp::Timeout);
  CHECK_THROWS_WITH(store.one.wait("never", Clock::now()), Contains("'never'"));
  store.one.set("key", "value");
  CHECK(store.one.wait("key", Clock::now()) == "value");
}

TEMPLATE_TEST_CASE("A store keeps the first value of a key and rejects another", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  store.one.set("key", "first");
  CHECK_NOTHROW(store.two.set("key", "first"));
  CHECK_THROWS_AS(store.two.set("key", "second"), pdp::ConfigError);
  CHECK(store.two.wait("key", patience()) == "first");
}

TEMPLATE_TEST_CASE("A store's get returns the present value, or nothing if there is none", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  CHECK_FALSE(store.one.get("key").has_value());
  store.one.set("key", "value");
  CHECK(store.two.get("key") == "value");
}

TEMPLATE_TEST_CASE("A store's add loses no increment if two ranks add at once", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  CHECK(store.one.add("count", 5) == 5);
  CHECK(store.two.add("count", -7) == -2);
  CHECK(store.one.wait("count", patience()) == "-2");
  std::vector<std::int64_t> seen(200);
  {
    const auto adds = [&](auto& view, std::size_t first) {
      for (std::size_t i = first; i < first + 100; ++i) seen[i] = view.add("tickets", 1);
    };
    const std::jthread one{[&] { adds(store.one, 0); }}, two{[&] { adds(store.two, 100); }};
  }
  std::ranges::sort(seen);
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<std::int64_t>(i) + 1);
}

TEMPLATE_TEST_CASE("A store's add rejects a value that is no number and a sum that overflows, and keeps the value", "[launch][store]",
                   InProcess, Tcp, File) {
  TestType store;
  store.one.set("words", "12 apples");
  CHECK_THROWS_WITH(store.two.add("words", 1), Contains("'words'") && Contains("12 apples"));
  CHECK(store.one.get("words") == "12 apples");
  CHECK(store.one.add("count", std::numeric_limits<std::int64_t>::max()) == std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(store.two.add("count", 1), pdp::ConfigError);
  CHECK(store.two.add("count", 0) == std::numeric_limits<std::int64_t>::max());
}

TEMPLATE_TEST_CASE("A store's wait returns a counter that another rank creates by add", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  std::string got;
  {
    const std::jthread waiting{[&] { got = store.two.wait("count", patience()); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    store.one.add("count", 3);
  }
  CHECK(got == "3");
}

TEST_CASE("FileStore keeps keys with special characters apart and rejects a folder that cannot be created", "[launch][store]") {
  File store;
  CHECK_THROWS_WITH(launch::FileStore{"/proc/no/such/folder"}, Contains("/proc/no/such/folder") && Contains("all ranks can write to"));
  const std::vector<std::string> keys{"a/b", "a.b", "..", "", "a%2fb", "A", std::string(50, '\xff')};
  for (const std::string& key : keys) store.one.set(key, "of " + key);
  for (const std::string& key : keys) CHECK(store.two.get(key) == "of " + key);
}

TEST_CASE("FileStore rejects a folder that other users can write to", "[launch][store]") {
  const File store;
  const auto permissions = std::filesystem::status(store.folder).permissions();
  CHECK((permissions & std::filesystem::perms{077}) == std::filesystem::perms::none);
  using std::filesystem::perms;
  std::filesystem::permissions(store.folder, GENERATE(perms{0770}, perms{0707}, perms{0777}));
  CHECK_THROWS_WITH(launch::FileStore{store.folder}, Contains("other users can write to that folder") && Contains("chmod 700"));
  std::filesystem::permissions(store.folder, perms{0755});
  CHECK_NOTHROW(launch::FileStore{store.folder});
}

TEST_CASE("FileStore gives up a folder that stays locked and says why", "[launch][store]") {
  File beside;
  launch::FileStore store{beside.folder, {}, {}, std::chrono::milliseconds{20}};
  const pdp::comm::Descriptor lock{::open((beside.folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  CHECK_THROWS_WITH(store.add("count", 1), Contains("stays locked"));
}

TEST_CASE("FileStore::fail gives up soon if the folder stays locked, and works once it is free", "[launch][store]") {
  const File beside;
  launch::FileStore store{beside.folder, {}, patience()};
  const pdp::comm::Descriptor lock{::open((beside.folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  const auto begin = Clock::now();
  CHECK_NOTHROW(store.fail({pdp::comm::Failure::Kind::lost, 1, "rank 1 has failed"}));
  CHECK(Clock::now() - begin < std::chrono::seconds{30});  // long before the deadline
  REQUIRE(::flock(lock.get(), LOCK_UN) == 0);
  store.fail({pdp::comm::Failure::Kind::lost, 1, "rank 1 has failed"});
  CHECK_THROWS_WITH(store.get("key"), Equals("rank 1 has failed"));
}

TEST_CASE("TcpStore::fail gives up soon if the process of the store is stopped", "[launch][store]") {
  const Host host{-1};
  launch::TcpStore here = host.join(0);
  host.signal(SIGSTOP);
  const auto begin = Clock::now();
  CHECK_NOTHROW(here.fail({pdp::comm::Failure::Kind::lost, 0, "rank 0 has failed"}));
  CHECK(Clock::now() - begin < std::chrono::seconds{4});
}

TEST_CASE("FileStore retries after a transient error of the file system", "[launch][store]") {
  using Call = FailingCalls::Call;
  const auto call = GENERATE(Call::stat, Call::open, Call::flock, Call::read, Call::write, Call::close, Call::rename);
  const int error = GENERATE(ESTALE, EINTR, EAGAIN, EBUSY, EIO, EREMOTEIO, ETIMEDOUT, ENOLCK, ENOTCONN, ESHUTDOWN, EHOSTDOWN, ECONNRESET,
                             ECONNABORTED, ENETUNREACH, EHOSTUNREACH, ENOENT);
  if (error == ENOENT && call != Call::rename) return;
  for (int when = 0; when < 8; ++when) {
    INFO("call " << static_cast<int>(call) << ", error " << error << ", the one after " << when);
    const File beside;
    FailingCalls::fail(call, error, when, 2);
    launch::BasicFileStore<FailingCalls> store{beside.folder / "store"};
    store.set("key", "value");
    CHECK(store.add("count", 5) == 5);
    CHECK(store.add("count", 2) == 7);
    CHECK(store.get("key") == "value");
    CHECK(store.wait("count", patience()) == "7");
    CHECK_FALSE(store.get("none").has_value());
  }
}

TEST_CASE("FileStore reports the system's error at its deadline, and at once if the error is lasting", "[launch][store]") {
  using Call = FailingCalls::Call;
  const std::chrono::milliseconds soon{20};
  const auto text_of = [](int error) { return std::string{std::strerror(error)}; };
  File beside;
  launch::BasicFileStore<FailingCalls> store{beside.folder, {}, {}, soon};
  store.set("key", "value");
  constexpr int for_ever = 1'000'000;
  FailingCalls::fail(Call::open, ESTALE, 0, for_ever);
  CHECK_THROWS_WITH(store.get("key"), Contains("cannot read") && Contains(text_of(ESTALE)));
  CHECK_THROWS_WITH(store.wait("key", Clock::now() + soon), Contains("cannot read") && Contains(text_of(ESTALE)));
  FailingCalls::fail(Call::flock, ENOLCK, 0, for_ever);
  CHECK_THROWS_WITH(store.set("other", "value"), Contains("cannot lock") && Contains(text_of(ENOLCK)));
  FailingCalls::fail(Call::rename, EIO, 0, for_ever);
  CHECK_THROWS_WITH(store.set("other", "value"), Contains("cannot write 'other'") && Contains(text_of(EIO)));
  FailingCalls::fail(Call::stat, ESTALE, 0, for_ever);
  CHECK_THROWS_WITH((launch::BasicFileStore<FailingCalls>{beside.folder, {}, {}, soon}), Contains(text_of(ESTALE)));

  // Calls with a lasting error are not retried.
  for (const auto& [call, error] :
       {std::pair{Call::open, EACCES}, {Call::flock, EBADF}, {Call::write, ENOSPC}, {Call::close, EDQUOT}, {Call::rename, EROFS}}) {
    FailingCalls::fail(call, error, 0, for_ever);
    CHECK_THROWS_WITH(store.set("other", "value"), Contains(text_of(error)));
    CHECK(FailingCalls::times == for_ever - 1);
  }
  FailingCalls::fail(Call::stat, 0, 0, 0);
  CHECK_FALSE(beside.one.get("other").has_value());
}

TEST_CASE("FileStore does not block on a named pipe in its folder", "[launch][store]") {
  File store;
  REQUIRE(::mkfifo((store.folder / "key-pipe").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((store.folder / "new").c_str(), 0600) == 0);
  CHECK_NOTHROW(store.one.get("pipe"));
  CHECK_THROWS_AS(store.one.set("key", "value"), pdp::ConfigError);
}

TEST_CASE("TcpStore rejects keys and values that are too long, and more values than fit", "[launch][store]") {
  Tcp store;
  CHECK_THROWS_AS(store.one.set(std::string(300, 'k'), "value"), pdp::ConfigError);
  CHECK_THROWS_AS(store.one.set("key", std::string(65'537, 'v')), pdp::ConfigError);
  const std::string value(60'000, 'v');
  bool full = false;
  for (int i = 0; i < 400 && !full; ++i) try {
      store.one.set(std::to_string(i), value);
    } catch (const pdp::ConfigError& error) {
      full = true;
      CHECK_THAT(error.what(), Contains("full"));
    }
  CHECK(full);
  CHECK(store.two.wait("0", patience()) == value);
}

TEST_CASE("A TcpStoreServer serves its ranks while strangers are silent or send garbage", "[launch][store]") {
  Tcp store;
  std::vector<pdp::comm::Descriptor> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(stranger(store.server.port()));  // silent
  std::string garbage;
  garbage.resize(200'000, '\x16');  // clang would compute an initial value for seconds
  for (const std::string& bytes : {std::string{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"}, garbage,
                                   launch::encode({.kind = static_cast<launch::StoreMessage::Kind>(99)}, "", ""),
                                   launch::encode({.kind = launch::StoreMessage::Kind::ok}, "", "")}) {
    strangers.push_back(stranger(store.server.port()));
    say(strangers.back(), bytes);
    std::size_t said = 0;
    for (char byte = 0; ::recv(strangers.back().get(), &byte, 1, 0) > 0;) ++said;
    CHECK(said <= sizeof(handshake::Greeting) + sizeof(handshake::Credential));
  }
  launch::StoreMessage huge;
  huge.value_bytes = 0xffffffff;
  strangers.push_back(stranger(store.server.port()));
  say(strangers.back(), {reinterpret_cast<const char*>(&huge), sizeof huge});
  store.one.set("key", "value");
  CHECK(store.two.wait("key", patience()) == "value");
  launch::TcpStore late{"127.0.0.1", store.server.port(), patience(), 2, 3};
  CHECK(late.wait("key", patience()) == "value");
}

TEST_CASE("TcpStore retries until its server starts", "[launch][store]") {
  std::uint16_t port = 0;
  { port = launch::TcpStoreServer{}.port(); }
  std::string got;
  {
    std::optional<launch::TcpStoreServer> server;
    const std::jthread early{[&] { got = launch::TcpStore{"127.0.0.1", port, patience(), 1, 2}.wait("key", patience()); }};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    server.emplace("127.0.0.1", port, 2);
    launch::TcpStore{"127.0.0.1", port, patience(), 0, 2}.set("key", "value");
  }
  CHECK(got == "value");
}

namespace {

/// Forwards bytes between two connections until one closes.
void relay(const pdp::comm::Descriptor& one, const pdp::comm::Descriptor& other) {
  std::array<pollfd, 2> ends{{{.fd = one.get(), .events = POLLIN, .revents = 0}, {.fd = other.get(), .events = POLLIN, .revents = 0}}};
  while (::poll(ends.data(), ends.size(), -1) > 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      std::array<char, 4096> bytes;
      const ssize_t read = ::recv(ends[i].fd, bytes.data(), bytes.size(), 0);
      if (read <= 0) return;
      static_cast<void>(::send(ends[1 - i].fd, bytes.data(), static_cast<std::size_t>(read), MSG_NOSIGNAL));
    }
  }
}

}  // namespace

TEST_CASE("TcpStore still waits for a slow greeting after 70 connections were closed", "[launch][store]") {
  const launch::TcpStoreServer server{"127.0.0.1", 0, 2};
  launch::TcpStore{"127.0.0.1", server.port(), patience(), 0, 2}.set("key", "value");
  std::string why, got;
  const auto address = launch::resolve("127.0.0.1", 0, why).at(0);
  const pdp::comm::Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE((::bind(listener.get(), address.get(), address.size) == 0 && ::listen(listener.get(), 8) == 0));
  const std::uint16_t port = launch::Address::of(listener.get()).port();
  const auto accept = [&] { return pdp::comm::Descriptor{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}; };
  const std::chrono::milliseconds soon{1};
  const launch::Pace fast{.first_pause = soon, .longest_pause = soon};
  bool joined = false;
  {
    const std::jthread comes{[&] {
      try {
        got = launch::TcpStore{"127.0.0.1", port, Clock::now() + std::chrono::seconds{20}, 1, 2, {}, fast}.wait("key", patience());
        joined = true;
      } catch (const pdp::Timeout& timeout) {
        got = timeout.what();
      }
    }};
    for (int times = 0; times < 70; ++times) accept();
    const pdp::comm::Descriptor rank = accept();
    std::this_thread::sleep_for(std::chrono::milliseconds{300});  // as a busy store that greets late
    relay(rank, stranger(server.port()));
  }
  CHECK(joined);
  CHECK(got == "value");
}

TEST_CASE("TcpStore names address and port of a store that it cannot reach", "[launch][store]") {
  std::uint16_t port = 0;
  { port = launch::TcpStoreServer{}.port(); }
  const auto soon = [] { return Clock::now() + std::chrono::milliseconds{100}; };
  CHECK_THROWS_WITH((launch::TcpStore{"127.0.0.1", port, soon()}),
                    Contains("127.0.0.1, port " + std::to_string(port)) && Contains("Connection refused"));
  CHECK_THROWS_AS((launch::TcpStore{"no.such.host.invalid", port, soon()}), pdp::Timeout);
}

TEST_CASE("TcpStoreServer reports a port in use and an address that this machine does not have", "[launch][store]") {
  const launch::TcpStoreServer server;
  CHECK_THROWS_WITH((launch::TcpStoreServer{"127.0.0.1", server.port()}),
                    Contains("port " + std::to_string(server.port())) && Contains("taken by another program"));
  CHECK_THROWS_WITH((launch::TcpStoreServer{"192.0.2.1", 0}), Contains("this machine does not have that address"));
}

TEMPLATE_TEST_CASE("A store throws the first failure of the job from every call of every rank", "[launch][store]", InProcess, Tcp, File) {
  TestType store;
  store.one.set("there", "value");
  std::string heard;
  {
    const std::jthread waits{[&] {
      try {
        static_cast<void>(store.one.wait("key", patience()));
      } catch (const pdp::PeerLost& lost) {
        heard = pdp::text(lost.rank(), ' ', lost.what());
      }
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    store.two.fail({pdp::comm::Failure::Kind::lost, 1, "rank 1 has failed: no data"});
  }
  CHECK(heard == "1 rank 1 has failed: no data");
  store.two.fail({pdp::comm::Failure::Kind::timeout, 2, "a later failure, which changes nothing"});
  CHECK_THROWS_WITH(store.one.get("there"), Equals("rank 1 has failed: no data"));
  CHECK_THROWS_WITH(store.one.set("another", "value"), Equals("rank 1 has failed: no data"));
  CHECK_THROWS_WITH(store.two.wait("there", patience()), Equals("rank 1 has failed: no data"));
  CHECK_THROWS_AS(store.two.add("counter", 1), pdp::PeerLost);
}

TEST_CASE("TcpStoreServer::wait_until_told waits until late ranks know a failure, and returns at once if there is none",
          "[launch][store]") {
  launch::TcpStoreServer server{"127.0.0.1", 0, 4};
  server.wait_until_told(2, patience());
  server.fail({pdp::comm::Failure::Kind::lost, 1, "rank 1 has failed"});
  std::vector<std::string> heard;
  {
    const std::jthread late{[&, port = server.port()] {
      for (const int rank : {3, 2}) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        launch::TcpStore store{"127.0.0.1", port, patience(), rank, 4};
        try {
          static_cast<void>(store.wait("key", patience()));
        } catch (const pdp::PeerLost& lost) {
          heard.emplace_back(lost.what());
        }
      }
    }};
    server.wait_until_told(2, patience());
    CHECK(server.has_come(2));
    CHECK(server.has_come(3));
  }
  CHECK(heard == std::vector<std::string>(2, "rank 1 has failed"));
  server.wait_until_told(1, pdp::comm::Clock::now());  // rank 1 never comes
}

TEST_CASE("decode_failure restores kind, rank and message, and keeps malformed text as the message", "[launch][store]") {
  const pdp::comm::Failure failure{pdp::comm::Failure::Kind::timeout, 17, "words with\nlines and 3 4 numbers"};
  const pdp::comm::Failure decoded = pdp::comm::decode_failure(pdp::comm::encode(failure));
  CHECK(decoded.kind == failure.kind);
  CHECK(decoded.rank == failure.rank);
  CHECK(decoded.message == failure.message);
  for (const char* words : {"", "7 1 a", "-1 1 a", "0", "0 1", "words", "0 99999999999 a"}) {
    INFO(words);
    CHECK(pdp::comm::decode_failure(words).message == words);
    CHECK(pdp::comm::decode_failure(words).rank == -1);
  }
}

TEST_CASE("TcpStore waits for a store whose process is stopped for 6.5 seconds", "[launch][store]") {
  const Host host{-1};
  launch::TcpStore here = host.join(0);
  host.signal(SIGSTOP);
  std::string value;
  {
    const std::jthread comes{[&] {
      launch::TcpStore late = host.join(1);  // while the store's process is stopped
      value = late.wait("key", patience());
    }};
    const std::jthread continues{[&] {
      std::this_thread::sleep_for(std::chrono::milliseconds{6'500});
      host.signal(SIGCONT);
    }};
    CHECK_NOTHROW(here.set("key", "value"));
  }
  CHECK(value == "value");
}

TEST_CASE("A TcpStoreServer short of descriptors reports its limit to ranks that joined and to later ones", "[launch][store]") {
  const Host host{2};
  std::optional<launch::TcpStore> first{host.join(0)}, second{host.join(1)};
  const auto names_limit = [](const std::string& words) {
    CHECK_THAT(words, Contains("of 4 ranks") && Contains("Too many open files") && Contains("ulimit -Hn"));
  };
  const auto failure = [](const auto& call) {
    try {
      call();
    } catch (const pdp::PeerLost& lost) {
      return std::string{lost.what()};
    }
    return std::string{"nothing"};
  };
  std::string third;
  {
    const std::jthread comes{[&] { third = failure([&] { host.join(2).set("key", "value"); }); }};
    names_limit(failure([&] { static_cast<void>(first->wait("key", patience())); }));
    first.reset();
    names_limit(failure([&] { static_cast<void>(second->get("key")); }));
    second.reset();
  }
  names_limit(third);
}

TEST_CASE("TcpStore::wait throws PeerLost when the store ends", "[launch][store]") {
  auto server = std::make_unique<launch::TcpStoreServer>();
  launch::TcpStore store{"127.0.0.1", server->port(), patience()};
  const std::jthread ends{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    server.reset();
  }};
  CHECK_THROWS_AS(store.wait("key", patience()), pdp::PeerLost);
}

}  // namespace store_test
