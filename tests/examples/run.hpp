// Shared by the tests of the examples: running a program to its end, and a temporary folder.
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <pdp/core/error.hpp>

#include "launch/job.hpp"

namespace examples_test {

struct Ended {
  int code;
  std::string out, err;
};

/// Runs an example with its arguments. Throws if it does not end.
inline Ended run(const std::string& program, std::vector<std::string> arguments, const std::vector<launch_test::Variable>& variables = {}) {
  launch_test::Job job{std::move(arguments), variables, PDP_TEST_EXAMPLES "/" + program};
  const int code = job.end();
  return {code, job.out(), job.err()};
}

/// Returns the process of a rank, if it runs.
inline std::optional<pid_t> process_of(const launch_test::Job& job, int rank) {
  const std::string variable = pdp::text('\0', "RANK=", rank, '\0');
  for (const pid_t process : job.processes())
    if (launch_test::contents(pdp::text("/proc/", process, "/environ")).find(variable) != std::string::npos) return process;
  return std::nullopt;
}

inline std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

/// Reads the loss of each step from a file that --losses has written. Throws if the file is malformed.
inline std::vector<double> losses(const std::filesystem::path& file) {
  std::istringstream lines{launch_test::contents(file.string())};
  std::string line;
  std::getline(lines, line);
  if (line != "step,loss") throw std::runtime_error{"first line: " + line};
  std::vector<double> values;
  while (std::getline(lines, line)) {
    const std::size_t comma = line.find(',');
    if (std::stoull(line.substr(0, comma)) != values.size()) throw std::runtime_error{"steps out of order: " + line};
    values.push_back(std::stod(line.substr(comma + 1)));
  }
  return values;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pdp_examples_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
    path_ = pattern;
  }
  Folder(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace examples_test
