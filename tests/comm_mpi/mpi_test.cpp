#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "launch/job.hpp"

using launch_test::Job;
using launch_test::Variable;

namespace {

/// An MPI library and the program of the tests (ranks.cpp) built with it. The program is empty if the library was not found.
struct Library {
  std::string launch, program;
};
std::vector<Library> libraries() {
  std::vector<Library> found{{PDP_TEST_MPI_LAUNCH, PDP_TEST_MPI_PROGRAM}};
  if (const Library second{PDP_TEST_SECOND_MPI_LAUNCH, PDP_TEST_SECOND_MPI_PROGRAM}; !second.program.empty()) found.push_back(second);
  return found;
}

struct Ended {
  int code;
  std::string out, err;
};
Ended run(std::vector<std::string> command, const std::vector<Variable>& variables = {}) {
  const std::string program = command.front();
  Job job{{command.begin() + 1, command.end()}, variables, program};
  const int code = job.end();
  return {code, job.out(), job.err()};
}
/// Runs mpirun -n RANKS PROGRAM ARGUMENTS, as from a shell.
Ended run_on(int ranks, const Library& library, const std::vector<std::string>& arguments, const std::vector<Variable>& variables = {}) {
  std::vector<std::string> command;
  std::istringstream words{library.launch};
  for (std::string word; words >> word;) command.push_back(word);
  command.insert(command.end(), {"-n", std::to_string(ranks), library.program});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, variables);
}
/// Ranks of the second library wait without sleeping, so more ranks than cores would take too long.
int most_ranks(const Library& library) { return library.program == libraries().front().program ? 4 : 2; }

void check_ends_well(const Ended& ended) {
  CHECK(ended.code == 0);
  CHECK(ended.err.find("rank ") == std::string::npos);
  if (ended.code != 0 || ended.err.find("rank ") != std::string::npos) FAIL_CHECK(ended.err);
}

/// Runs `mode`, in which rank 1 of 2 fails. Checks the job's exit code and that its error output contains `words`.
void check_ends_job(const std::string& mode, int code, const std::string& words) {
  for (const Library& library : libraries()) {
    const Ended ended = run_on(2, library, {mode});
    CAPTURE(library.launch, mode, ended.err);
    CHECK(ended.code == code);
    CHECK_THAT(ended.err, Contains(words));
  }
}

}  // namespace

TEST_CASE("Mpi: every verb gives the serial result for every type and operation", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(most_ranks(library), library, {"conformance"}));
}

TEST_CASE("Mpi gives correct results through Any and Checked, and in pieces above MPI's count limit", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(most_ranks(library), library, {"wrapped"}));
}

TEST_CASE("Mpi passes the tests of all backends for groups, calls in flight and early messages", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(most_ranks(library), library, {"behaviour"}));
}

TEST_CASE("Mpi: all_reduce gives the sum over ranks with equal bits on every rank", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  const int ranks = GENERATE(2, 3, 4);
  if (ranks <= most_ranks(library)) check_ends_well(run_on(ranks, library, {"same bits"}));
}

TEST_CASE("Mpi allocates nothing when calls are repeated", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(2, library, {"allocations"}));
}

TEST_CASE("Mpi throws on invalid arguments, and Checked over Mpi throws MismatchedCollective", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(2, library, {"refusals"}));
}

TEST_CASE("Mpi adopts a program's communicator, which the program can still use", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(most_ranks(library), library, {"adopt"}));
}

TEST_CASE("DataParallel over Mpi computes the losses of Single", "[mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(most_ranks(library) - 1, library, {"training"}));
}

TEST_CASE("Mpi transfers more than 2^31 elements in one call", "[.long][mpi]") {
  const Library library = GENERATE(from_range(libraries()));
  check_ends_well(run_on(2, library, {"large"}));
}

TEST_CASE("Mpi ends the job with the exit code and the message of a rank that fails", "[mpi][failure]") {
  check_ends_job("throw", 1, "rank 1: the file cannot be read\n");
  check_ends_job("throw usage", 2, "rank 1: the flag is unknown\n");
  check_ends_job("abort", 1, "rank 1 ends the job: that is enough\n");
  check_ends_job("return", 9, "");
}

TEST_CASE("Mpi ends the job if a Work in flight is destroyed, but reports the rank's own error first", "[mpi][failure]") {
  check_ends_job("let go", 1, "rank 1 abandoned all_reduce of 9 float32 before it was complete");
  check_ends_job("let go and throw", 1, "rank 1: the file cannot be read\n");
}

TEST_CASE("Mpi throws on the receiving rank if a message has another length than expected", "[mpi][failure]") {
  const std::string expected = "rank 1 expected a message of 32 bytes from rank 0 (send of 8 float32 with tag 4), but it ";
  check_ends_job("long message", 1, expected);
  check_ends_job("short message", 1, expected + "has 28;");
}

TEST_CASE("Mpi throws Timeout naming the call after the deadline, and again in later calls", "[mpi][failure]") {
  check_ends_job("wait for a message", 1, "rank 1: rank 1 waited 300 ms for send of 9 float32 with tag 3 and heard nothing from rank 0;");
  check_ends_job("wait for a collective", 1, "rank 1: rank 1 waited 300 ms for all_reduce of 9 float32; either a rank makes other calls");
  check_ends_job("use after a timeout", 1, "rank 1: again: rank 1 waited 300 ms for send of 9 float32 with tag 0");
}

TEST_CASE("An MPI job ends if a rank exits, aborts or leaves its own main after an exception", "[mpi][failure]") {
  const Library library = GENERATE(from_range(libraries()));
  // MPICH's launcher combines the exit codes of all ranks into one, including ranks that it has killed.
  CHECK(run_on(2, library, {"exit"}).code != 0);
  CHECK(run_on(2, library, {"kill"}).code != 0);
  const Ended joined = run_on(2, library, {"join"});
  CHECK(joined.code != 0);
  CHECK_THAT(joined.err, Contains("main says: the file cannot be read\n"));
}

TEST_CASE("launch::run runs on Mpi alone or as one of several communicators", "[mpi][launch]") {
  const Library library = GENERATE(from_range(libraries()));
  CAPTURE(library.launch);
  CHECK(run({library.program, "sum"}).out == "mpi: 1 ranks, sum 1\n");
  CHECK(run({library.program, "several", "--comm", "mpi"}).out == "mpi: 1 ranks, sum 1\n");
  CHECK(run({library.program, "several"}).out == "tcp: 1 ranks, sum 1\n");
  CHECK(run_on(2, library, {"sum"}).out == "mpi: 2 ranks, sum 3\n");
  CHECK(run_on(2, library, {"several", "--comm", "mpi"}).out == "mpi: 2 ranks, sum 3\n");
  CHECK(run_on(2, library, {"several", "--comm", "mpi", "--ranks", "2"}).out == "mpi: 2 ranks, sum 3\n");
  CHECK(run({library.program, "several", "--ranks", "3"}).out == "tcp: 3 ranks, sum 6\n");
  CHECK(run({library.program, "several", "--threads", "3"}).out == "thread: 3 ranks, sum 6\n");
}

TEST_CASE("launch::run rejects Mpi ranks that MPI's launcher has not started, and says what to do", "[mpi][launch]") {
  const Library library = GENERATE(from_range(libraries()));
  CAPTURE(library.launch);
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"sum"}, {"several", "--comm", "mpi"}}) {
    std::vector<std::string> command{library.program};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"--ranks", "4"});
    const Ended ended = run(command);
    CHECK(ended.code == 2);
    CHECK(ended.err == "--ranks 4: a program cannot start the ranks of mpi itself; start it with mpirun -n 4, without --ranks\n");
  }
  const Ended other = run({library.program, "sum"}, {{"RANK", "1"}, {"WORLD_SIZE", "4"}});
  CHECK(other.code == 2);
  CHECK_THAT(other.err,
             Contains("rank 1: the environment says that this process is rank 1 of 4, but mpi says rank 0 of 1; start it with the "
                      "mpirun of the library that it was built with"));
}

TEST_CASE("The example send_recv runs over Mpi if the command line says --comm mpi", "[mpi][examples]") {
  if (PDP_TEST_SANITIZED) return;  // sanitizer builds leave MPI out of the examples
  const Library example{PDP_TEST_MPI_LAUNCH, PDP_TEST_EXAMPLES "/send_recv"};
  const Ended ended = run_on(2, example, {"--comm", "mpi"});
  CAPTURE(ended.err);
  CHECK(ended.code == 0);
  // Each line arrives whole. mpirun copies the output of its ranks line by line, so that a line of rank 1 can come before one that rank 0
  // wrote earlier.
  std::vector<std::string> lines;
  std::istringstream out{ended.out};
  for (std::string line; std::getline(out, line);) lines.push_back(line);
  std::ranges::sort(lines);
  const std::string tensor = "tensor([ 1., -1.])";
  CHECK(lines == std::vector<std::string>{"Rank-0 has sent the following tensor to Rank-1",
                                          "Rank-1 has received the following tensor from Rank-0", tensor, tensor});
}

TEST_CASE("launch::run reports a program that was started by the launcher of another MPI library", "[mpi][launch]") {
  if (libraries().size() < 2) return;
  const Library mixed{libraries()[0].launch, libraries()[1].program};
  const Ended ended = run_on(2, mixed, {"sum"});
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Contains("but mpi says rank 0 of 1; start it with the mpirun of the library that it was built with"));
}
