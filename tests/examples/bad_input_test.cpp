#include <algorithm>
#include <filesystem>
#include <fstream>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/launch/store/tcp_store_server.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;
using examples_test::run;

namespace {

/// Checks the exit code, and that standard error is one line that contains the given words.
void check_error(const Ended& ended, int code, const std::vector<std::string>& words) {
  CAPTURE(ended.out, ended.err);
  CHECK(ended.code == code);
  CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  for (const std::string& word : words) CHECK_THAT(ended.err, Contains(word));
}

void write(const std::string& file, const std::string& bytes) { std::ofstream{file, std::ios::binary} << bytes; }

std::string idx_header(unsigned char rank, std::initializer_list<unsigned> extents) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(rank)};
  for (const unsigned extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  return bytes;
}

/// Writes a small data set with the given labels, whose pixels are all 0.
void write_digits(const std::string& folder, unsigned images, const std::string& labels) {
  std::filesystem::create_directories(folder);
  write(folder + "/t10k-images-idx3-ubyte", idx_header(3, {images, 28, 28}) + std::string(images * 784, '\0'));
  write(folder + "/t10k-labels-idx1-ubyte", idx_header(1, {static_cast<unsigned>(labels.size())}) + labels);
}

}  // namespace

TEST_CASE("mnist_ddp exits with code 1 and one line if its data are missing, malformed or too few", "[examples][bad input]") {
  const Folder folder;
  const std::string data = folder / "data";
  const auto train = [&] { return run("mnist_ddp", {"--ranks", "2", "--data", data}); };
  SECTION("no folder") { check_error(train(), 1, {data}); }
  SECTION("an empty folder") {
    std::filesystem::create_directories(data);
    check_error(train(), 1, {data, "t10k-images-idx3-ubyte"});
  }
  SECTION("a file that is no IDX file") {
    write_digits(data, 20, std::string(20, '\0'));
    write(data + "/t10k-images-idx3-ubyte", "these are no digits");
    check_error(train(), 1, {"t10k-images-idx3-ubyte", "IDX"});
  }
  SECTION("a truncated file") {
    write_digits(data, 20, std::string(20, '\0'));
    std::filesystem::resize_file(data + "/t10k-images-idx3-ubyte", 5000);
    check_error(train(), 1, {"t10k-images-idx3-ubyte", "expected 15680", "found 4984"});
  }
  SECTION("images and labels that differ in number") {
    write_digits(data, 20, std::string(19, '\0'));
    check_error(train(), 1, {"20", "19"});
  }
  SECTION("a label out of range") {
    write_digits(data, 20, std::string(19, '\0') + '\x0b');
    check_error(train(), 1, {"11"});
  }
  SECTION("a global batch larger than the training set, and more ranks than samples, are no error") {
    write_digits(data, 20, std::string(20, '\x03'));
    CHECK(train().code == 0);
    CHECK(run("mnist_ddp", {"--threads", "19", "--batch-size", "1", "--epochs", "1", "--data", data}).code == 0);
  }
}

TEST_CASE("MNIST programs reject a wrong command line or an impossible layout with one line", "[examples][bad input]") {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, Words>> cases{{{"--batch-size", "0"}, {"batch-size"}},
                                                   {{"--ranks", "0"}, {"ranks"}},
                                                   {{"--ranks", "-3"}, {"ranks"}},
                                                   {{"--ranks", "two"}, {"ranks", "two"}},
                                                   {{"--treads", "2"}, {"treads"}},
                                                   {{"--ranks", "2", "--threads", "2"}, {"--ranks", "--threads"}},
                                                   {{"-n", "2", "-g", "1", "-nr", "2", "-ip", "127.0.0.1"}, {"2"}},
                                                   {{"-n", "2"}, {"address"}},
                                                   {{"--comm", "carrier-pigeon"}, {"--comm 'carrier-pigeon'", "hierarchical, tcp", "shm"}},
                                                   {{"--comm", "thread"}, {"--comm thread", "--threads N"}},
                                                   {{"--comm", "shm", "--threads", "2"}, {"--comm 'shm'", "--threads 2"}},
                                                   {{"--comm", ""}, {"--comm", "tcp, shm"}},
                                                   {{"--device", "abacus"}, {"--device", "abacus"}},
                                                   {{"--epochs", "-1"}, {"epochs"}},
                                                   {{"--port", "70000"}, {"port"}}};
  for (const auto& [arguments, words] : cases) {
    CAPTURE(arguments[0]);
    check_error(run("mnist_ddp", arguments), 2, words);
  }
  check_error(run("mnist_zero", {"--stage", "4"}), 2, {"--stage", "4"});
  check_error(run("mnist_zero", {"--schedule", "1f1b"}), 2, {"--schedule"});
  check_error(run("mnist_pipeline", {"--schedule", "2f2b"}), 2, {"--schedule", "2f2b", "zero-bubble"});
  check_error(run("mnist_pipeline", {"--micro-batches", "0"}), 2, {"--micro-batches"});
  check_error(run("mnist_pipeline", {"--timeline", "step.png"}), 2, {"--timeline", "step.png", ".svg or .json"});
  check_error(run("mnist_single", {"--timeline", "/nowhere/step.svg"}), 1, {"/nowhere/step.svg", "folder"});
  check_error(run("mnist_hybrid", {"--tp", "0"}), 2, {"--tp"});
  check_error(run("mnist_hybrid", {"--pp", "65536", "--tp", "65537"}), 2, {"make 4295032832 ranks", "at most"});
  check_error(run("mnist_hybrid", {"--ranks", "2", "--pp", "65536", "--tp", "65536"}), 1, {"has 4294967296 ranks", "2"});
  check_error(run("mnist_hybrid", {"--dp", "2", "--pp", "2", "--ranks", "3"}), 1, {"a mesh of 2 (data) x 2 (pipeline) x 1 (tensor)", "3"});
  check_error(run("mnist_tensor_parallel", {"--ranks", "3"}), 1, {"layer 0 (Linear) has 64 outputs", "3 ranks"});
  check_error(run("mnist_single", {"--ranks", "2"}), 2, {"--ranks"});
  check_error(run("mnist_single", {"--comm", "self"}), 2, {"--comm"});
}

TEST_CASE("Flags that take a path, a URL or an address reject an empty value", "[examples][bad input]") {
  for (const char* flag : {"--load", "--save", "-s", "--log", "--losses", "--timeline", "--data"}) {
    CAPTURE(flag);
    check_error(run("mnist_single", {flag, "", "--epochs", "0"}), 2, {flag, "needs a path; found an empty value"});
  }
  for (const char* flag : {"--data", "--init", "--losses", "--timeline"}) {
    CAPTURE(flag);
    check_error(run("toy_mlp", {flag, "", "--niters", "0"}), 2, {flag, "needs a path; found an empty value"});
  }
  check_error(run("mnist_single", {"--load=", "--epochs", "0"}), 2, {"--load", "needs a path; found the flag --epochs"});
  check_error(run("mnist_single", {"--epochs", "0", "--load="}), 2, {"--load"});
  check_error(run("mnist_ddp", {"--rendezvous", "", "--epochs", "0"}), 2, {"--rendezvous", "needs a URL"});
  check_error(run("mnist_ddp", {"--ip", "", "--epochs", "0"}), 2, {"--ip", "needs an address"});
}

TEST_CASE("Flags reject numbers that are malformed or out of range and print the allowed range", "[examples][bad input]") {
  struct Flag {
    const char *program, *name, *range;
  };
  for (const Flag& flag : {Flag{"mnist_ddp", "--ranks", "1 to 4096"},
                           {"mnist_ddp", "--threads", "1 to 4096"},
                           {"mnist_ddp", "--nodes", "1 to 1000000"},
                           {"mnist_ddp", "--gpus", "1 to 4096"},
                           {"mnist_ddp", "--nr", "0 to 999999"},
                           {"mnist_ddp", "--port", "1 to 65535"},
                           {"mnist_single", "--epochs", "0 to 1000000"},
                           {"mnist_single", "--batch-size", "1 to 1073741824"},
                           {"mnist_single", "--seed", "0 to 18446744073709551615"},
                           {"mnist_zero", "--stage", "1 to 3"},
                           {"mnist_pipeline", "--micro-batches", "1 to 16384"},
                           {"mnist_hybrid", "--tp", "1 to 1000000"},
                           {"mnist_data_parallel", "--devices", "1 to 4096"},
                           {"toy_mlp", "--learning-rate", "0 to 1000000"},
                           {"toy_mlp", "--niters", "0 to 1000000000"},
                           {"toy_mlp", "--train-size", "10 to 16777216"},
                           {"send_recv", "--ranks", "1 to 4096"},
                           {"parallel_matmul", "--m", "1 to 1073741824"}})
    for (const char* word : {"-1", "four", "4x", "0x4", "99999999999999999999999"}) {
      CAPTURE(flag.program, flag.name, word);
      check_error(run(flag.program, {flag.name, word}), 2,
                  {pdp::text(flag.name, " must be "), pdp::text("from ", flag.range, "; found "), word});
    }
}

TEST_CASE("mnist_ddp exits with code 2 if rank variables are missing, malformed or contradictory", "[examples][bad input]") {
  using Variables = std::vector<launch_test::Variable>;
  const Variables master{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29511"}};
  const auto with = [&](Variables more) {
    more.insert(more.end(), master.begin(), master.end());
    return run("mnist_ddp", {}, more);
  };
  check_error(with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), 2, {"RANK", "2"});
  check_error(with({{"RANK", "0"}}), 2, {"WORLD_SIZE"});
  check_error(with({{"RANK", "zero"}, {"WORLD_SIZE", "2"}}), 2, {"RANK", "zero"});
  check_error(with({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), 2, {"WORLD_SIZE"});
  check_error(run("mnist_ddp", {}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}), 2, {"MASTER_ADDR"});
  check_error(
      run("mnist_ddp", {"--ranks", "3"}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29511"}}), 2,
      {"3", "2"});
}

TEST_CASE("mnist_ddp exits with code 1 if its port is in use or its master cannot be reached", "[examples][bad input]") {
  const pdp::launch::TcpStoreServer somebody;
  const auto variables = [](int rank, int port) {
    return std::vector<launch_test::Variable>{{"RANK", std::to_string(rank)},
                                              {"WORLD_SIZE", "2"},
                                              {"MASTER_ADDR", "127.0.0.1"},
                                              {"MASTER_PORT", std::to_string(port)},
                                              {"PDP_TIMEOUT", "1"}};
  };
  check_error(run("mnist_ddp", {}, variables(0, somebody.port())), 1, {std::to_string(somebody.port())});
  const std::uint16_t unused = launch_test::free_port();
  check_error(run("mnist_ddp", {}, variables(1, unused)), 1, {std::to_string(unused), "127.0.0.1"});
}

TEST_CASE("mnist_ddp exits with code 1 if a file cannot be written or loaded", "[examples][bad input]") {
  const Folder folder;
  const std::string nowhere = folder / "no/such/folder/file";
  for (const char* flag : {"--save", "--log", "--losses"}) {
    CAPTURE(flag);
    const Ended ended = run("mnist_ddp", {"--ranks", "2", "--epochs", "1", flag, nowhere});
    check_error(ended, 1, {nowhere});
    CHECK(ended.out.empty());  // the error comes before the training, not after it
  }
  check_error(run("mnist_ddp", {"--ranks", "2", "--load", nowhere}), 1, {nowhere});
  const std::string other = folder / "other.safetensors";
  pdp::checkpoint::save(other, {{"0.weight", {2, 3}, std::vector<float>(6)}});
  check_error(run("mnist_ddp", {"--ranks", "2", "--load", other}), 1, {other, "0.weight", "[2, 3]", "[64, 784]"});
}

TEST_CASE("Programs with --device cuda exit with code 1 and one line if there is no GPU", "[examples][bad input]") {
  for (const char* program : {"mnist_single", "mnist_ddp", "mnist_data_parallel", "mnist_model_parallel", "mnist_pipeline", "mnist_zero",
                              "mnist_tensor_parallel", "mnist_hybrid", "my_data_parallel", "toy_mlp"}) {
    INFO(program);
    const Ended ended = run(program, {"--device", "cuda"}, {{"CUDA_VISIBLE_DEVICES", ""}});
    CHECK(ended.code == 1);
    CHECK(ended.out.empty());
    CHECK_THAT(ended.err, Contains("GPU") && EndsWith("compute on the CPU\n"));
    CHECK(std::ranges::count(ended.err, '\n') == 1);
  }
}

TEST_CASE("mnist_ddp --help lists its flags and exits with code 0", "[examples]") {
  const Ended ended = run("mnist_ddp", {"--help"});
  CHECK(ended.code == 0);
  for (const char* flag : {"--ranks", "--threads", "--comm", "--nodes", "--gpus", "--nr", "--ip", "--port", "--epochs", "--batch-size",
                           "--batch_size", "--savefile", "--load", "--device", "--data", "--seed", "--log", "--losses"})
    CHECK_THAT(ended.out, Contains(flag));
}
