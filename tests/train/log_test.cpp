#include <pdp/comm/self.hpp>
#include <pdp/comm/thread.hpp>
#include <pdp/launch/process/report.hpp>
#include <pdp/testing/ranks.hpp>
#include <pdp/train/log.hpp>
#include <pdp/train/print.hpp>
#include <pdp/train/progress.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>

#include "captured.hpp"
#include "catch.hpp"
#include "data/files.hpp"
#include "terminal.hpp"

namespace comm = pdp::comm;

namespace {

std::vector<std::string> lines(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::vector<std::string> found;
  for (std::string line; std::getline(file, line);) found.push_back(line);
  return found;
}

}  // namespace

TEST_CASE("EpochLog writes one JSON object for each epoch immediately, always with the same keys", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string path = folder / "log.jsonl";
  std::ofstream{path} << "of an earlier run\n";
  pdp::EpochLog log{path};
  log.write({.number = 0, .loss = 1.25, .accuracy = 1.0 / 3, .seconds = 0.5}, 0.75);
  CHECK(lines(path).size() == 1);
  log.write({.number = 1, .loss = std::numeric_limits<double>::quiet_NaN(), .accuracy = 1e-9, .seconds = 1e9}, INFINITY);

  const auto found = lines(path);
  REQUIRE(found.size() == 2);
  for (const std::string& line : found) {
    std::set<std::string> keys;
    const auto object = nlohmann::json::parse(line);
    for (const auto& [key, value] : object.items()) keys.insert(key);
    CHECK(keys == std::set<std::string>{"epoch", "loss", "accuracy", "test_accuracy", "seconds"});
  }
  const auto first = nlohmann::json::parse(found[0]), second = nlohmann::json::parse(found[1]);
  CHECK(first["epoch"].is_number_integer());
  CHECK(first["epoch"] == 0);
  CHECK(first["loss"] == 1.25);
  CHECK(first["accuracy"].get<double>() == Approx(1.0 / 3).epsilon(1e-8));
  CHECK(first["test_accuracy"] == 0.75);
  CHECK(first["seconds"] == 0.5);
  CHECK(second["loss"].is_null());
  CHECK(second["test_accuracy"].is_null());
  CHECK(second["accuracy"].get<double>() == Approx(1e-9));
}

TEST_CASE("EpochLog and LineFile throw with the path and the reason if they cannot write", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string nowhere = folder / "no/such/log.jsonl";
  CHECK_THROWS_AS(pdp::EpochLog{nowhere}, pdp::FileError);
  CHECK_THROWS_WITH(pdp::EpochLog{nowhere},
                    Contains(nowhere) && Contains("No such file or directory") && Contains("choose a file in a directory that exists"));
  CHECK_THROWS_AS(pdp::EpochLog{folder.path().string()}, pdp::FileError);
  pdp::LineFile full{"/dev/full"};
  CHECK_THROWS_WITH(full.line("words"), Contains("/dev/full cannot be written: No space left on device"));
  full.close();
  CHECK_THROWS_WITH(full.line("words"), Contains("/dev/full cannot be written: it is closed"));
}

TEST_CASE("LossLog writes one CSV line for each step immediately", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string path = folder / "losses.csv";
  std::ofstream{path} << "of an earlier run\n";
  pdp::LossLog log{path};
  CHECK(lines(path) == std::vector<std::string>{"step,loss"});
  log.write(0, 2.5);
  log.write(1, 1.0 / 3);
  CHECK(lines(path) == std::vector<std::string>{"step,loss", "0,2.5", "1,0.333333333"});
  log.write(1'000'000'000'000, std::numeric_limits<double>::quiet_NaN());
  log.close();
  CHECK(lines(path).back() == "1000000000000,nan");
  CHECK_THROWS_WITH(log.write(2, 0), Contains(path + " cannot be written: it is closed"));
  CHECK_THROWS_AS(pdp::LossLog{folder / "no/such/losses.csv"}, pdp::FileError);
}

TEST_CASE("LineFile rejects a pipe without a reader and waits for a slow reader", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(pdp::LineFile{path},
                    Contains(path + " cannot be opened for writing: it is a pipe that nothing reads; start its reader"));

  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  ::fcntl(reader, F_SETFL, 0);
  const std::string words(200'000, 'x');  // more than a pipe holds
  std::size_t count = 0;
  std::thread writer{[&] {
    pdp::LineFile file{path};
    file.line(words);
    file.close();
  }};
  std::array<char, 4096> some{};
  for (ssize_t read = 0; count <= words.size() && (read = ::read(reader, some.data(), some.size())) >= 0;)
    count += static_cast<std::size_t>(read);
  writer.join();
  ::close(reader);
  CHECK(count == words.size() + 1);
}

TEST_CASE("LineFile opens its descriptor with close-on-exec", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string path = folder / "log";
  const pdp::LineFile file{path};
  int found = 0;
  for (const auto& descriptor : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code error;
    if (std::filesystem::read_symlink(descriptor.path(), error) != path) continue;
    ++found;
    CHECK((::fcntl(std::stoi(descriptor.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(found == 1);
}

TEST_CASE("LineFile::close throws if closing the descriptor fails", "[train][log]") {
  const files::TemporaryFolder folder;
  const std::string path = folder / "log";
  pdp::LineFile file{path};
  file.line("words");
  // Closes the descriptor, so that LineFile's own close fails.
  for (const auto& descriptor : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code error;
    if (std::filesystem::read_symlink(descriptor.path(), error) == path) ::close(std::stoi(descriptor.path().filename()));
  }
  CHECK_THROWS_WITH(file.close(), Contains(path + " cannot be written: "));
}

TEST_CASE("print writes its line on rank 0 only", "[train]") {
  const std::string words = captured([] {
    pdp::testing::ranks<comm::Thread>(3, [](comm::Thread& world) { pdp::print(world, "rank {} says {:.3f}", world.rank(), 0.12345); });
  });
  CHECK(words == "rank 0 says 0.123\n");
}

TEST_CASE("Progress shows nothing if standard error is not a terminal", "[train]") {
  std::FILE* const file = std::tmpfile();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  {
    pdp::Progress progress{true};
    for (int step = 1; step <= 3; ++step) progress.show(0, step, 3, 0.5);
    progress.wipe();
  }
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::fseek(file, 0, SEEK_END);
  CHECK(std::ftell(file) == 0);
  std::fclose(file);
}

TEST_CASE("print and Report::print clear the progress bar before they write a line", "[train]") {
  const std::string clear = "\r\033[K", bar = clear + "epoch 0 [##########....................] 1/3 loss 0.5000";
  comm::Self world;
  Terminal terminal;
  const std::string line = captured([&] {
    pdp::Progress progress{true};
    progress.show(0, 1, 3, 0.5);
    pdp::print(world, "a line");
    pdp::launch::Report::print({pdp::launch::Problem::Kind::root, "an error"}, 1);
  });
  CHECK(line == "a line\n");
  CHECK(terminal.words() == bar + clear + clear + "rank 1: an error\n" + clear);
}
