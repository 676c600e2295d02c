#include <string>

#include "catch.hpp"
#include "launch/job.hpp"

namespace stack_test {

namespace {

struct Ended {
  int code;
  std::string out, err;
};
/// Runs launch_program under a shell's `ulimit`.
Ended run(const std::string& limit, const std::string& arguments) {
  launch_test::Job job{{"-c", "ulimit " + limit + " && exec " PDP_TEST_PROGRAMS "/launch_program stack " + arguments}, {}, "/bin/bash"};
  const int code = job.end();
  return {code, job.out(), job.err()};
}

}  // namespace

TEST_CASE("Ranks that are threads can use 400 KiB of stack whatever the stack limit is", "[launch][stack]") {
  if (PDP_TEST_SANITIZED) return;  // a sanitizer itself needs more than these limits
  for (const char* limit : {"-s 64", "-s 128", "-S -s 128", "-s 1024", "-s 8192"}) {
    CAPTURE(limit);
    const Ended ended = run(limit, "--threads 3");
    CHECK(ended.out == "ranks 3 sum 6\n");
    CHECK(ended.err.empty());
    CHECK(ended.code == 0);
  }
}

TEST_CASE("A rank that is a process raises its soft stack limit, or reports a hard limit that is too low", "[launch][stack]") {
  if (PDP_TEST_SANITIZED) return;
  for (const char* arguments : {"", "--ranks 3"}) {
    const std::string sum = std::string{arguments}.empty() ? "ranks 1 sum 1\n" : "ranks 3 sum 6\n";
    for (const char* limit : {"-S -s 128", "-s 1024", "-s 8192"}) {
      CAPTURE(arguments, limit);
      const Ended ended = run(limit, arguments);
      CHECK(ended.out == sum);
      CHECK(ended.code == 0);
    }
    for (const char* limit : {"-s 64", "-s 256"}) {
      CAPTURE(arguments, limit);
      const Ended ended = run(limit, arguments);
      CHECK(ended.code == 1);
      CHECK_THAT(ended.err, Contains("the stack of this process is limited to ") && Contains("KiB, but a rank needs 512 KiB") &&
                                Contains("ulimit -s"));
    }
  }
}

}  // namespace stack_test
