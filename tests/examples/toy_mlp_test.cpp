#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <pdp/checkpoint/safetensors.hpp>
#include <pdp/data/safetensors_writer.hpp>
#include <pdp/testing/values.hpp>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::Ended;
using examples_test::Folder;
using examples_test::losses;

namespace {

Ended toy_mlp(const std::vector<std::string>& arguments) { return examples_test::run("toy_mlp", arguments); }

/// Adds the sizes of a small data set and of a small model.
std::vector<std::string> small(std::vector<std::string> arguments) {
  for (const char* each : {"--dim-in", "40", "--dim-hidden", "24", "--n-classes", "4", "--train-size", "1500", "--batch-size", "24"})
    arguments.emplace_back(each);
  return arguments;
}
std::string recorded(const std::string& name) { return std::string{PDP_TEST_PARITY} + "/" + name; }

/// Returns PyTorch's recorded losses: column 1 for the batch of one rank, column 2 for that of two.
std::vector<double> losses_of_torch(int column) {
  std::istringstream lines{launch_test::contents(recorded("toy_mlp_losses.csv"))};
  std::string line, cell;
  std::getline(lines, line);
  std::vector<double> found;
  while (std::getline(lines, line)) {
    std::istringstream cells{line};
    for (int i = 0; i <= column; ++i) std::getline(cells, cell, ',');
    found.push_back(std::stod(cell));
  }
  return found;
}

const std::vector<std::vector<std::string>> every_strategy{{"single"},
                                                           {"ddp"},
                                                           {"ddp", "--threads", "2", "--check"},
                                                           {"my"},
                                                           {"zero"},
                                                           {"zero", "--stage", "2", "--check"},
                                                           {"zero", "--stage", "3", "--comm", "tcp"},
                                                           {"pipeline"},
                                                           {"pipeline", "--micro-batches", "3", "--world-size", "4"},
                                                           {"tensor", "--check"},
                                                           {"tensor", "--world-size", "4"}};

std::vector<std::string> with_strategy(const std::vector<std::string>& way, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), way.begin(), way.end());
  arguments.insert(arguments.begin(), "--strategy");
  return arguments;
}

}  // namespace

TEST_CASE("toy_mlp has PyTorch's losses under every strategy from the same weights and data", "[examples][parity]") {
  const Folder folder;
  for (const auto& way : every_strategy) {
    const std::string file = folder / "losses.csv";
    const auto ended =
        toy_mlp(with_strategy(way, {"--data", recorded("toy_mlp.safetensors"), "--init", recorded("toy_mlp_init.safetensors"),
                                    "--batch-size", "16", "--niters", "200", "--losses", file}));
    INFO(way.front() << ": " << ended.err);
    REQUIRE(ended.code == 0);
    const bool shares_data = way.front() == "ddp" || way.front() == "my" || way.front() == "zero";
    const auto torch = losses_of_torch(shares_data ? 2 : 1), own = losses(file);
    REQUIRE(torch.size() == 200);
    REQUIRE(own.size() == torch.size());
    for (std::size_t step = 0; step < own.size(); ++step) {
      CAPTURE(way.front(), step, own[step], torch[step]);
      CHECK(std::abs(own[step] - torch[step]) <= 1e-4 * torch[step]);
    }
    std::filesystem::remove(file);
  }
}

TEST_CASE("toy_mlp prints its settings and a line for every hundredth step under every strategy", "[examples]") {
  for (const auto& way : every_strategy) {
    const auto ended = toy_mlp(with_strategy(way, small({"--niters", "201"})));
    INFO(way.front() << ": " << ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.err.empty());
    const std::regex form{
        "strategy [a-z]+ \\| ranks [124] \\| widths 40-24-24-24-4 \\| .*\n"
        "step 0 \\| train_loss \\d+\\.\\d{4} \\| test_loss \\d+\\.\\d{4} \\| step time \\d+\\.\\d\\dms\n"
        "step 100 \\| train_loss \\d+\\.\\d{4} \\| test_loss \\d+\\.\\d{4} \\| step time \\d+\\.\\d\\dms\n"
        "step 200 \\| train_loss \\d+\\.\\d{4} \\| test_loss \\d+\\.\\d{4} \\| step time \\d+\\.\\d\\dms\n"};
    CHECK(std::regex_match(ended.out, form));
    const auto loss_of = [&](const std::string& step) {
      return std::stod(ended.out.substr(ended.out.find(step + " | train_loss ") + step.size() + 14));
    };
    CHECK(loss_of("step 200") < 0.7 * loss_of("step 0"));
  }
}

TEST_CASE("toy_mlp generates the same data set on every run, and another one with another seed", "[examples]") {
  const auto first = toy_mlp(small({"--strategy", "single", "--niters", "1"})),
             second = toy_mlp(small({"--strategy", "single", "--niters", "1"})),
             other = toy_mlp(small({"--strategy", "single", "--niters", "1", "--seed", "7"}));
  const auto loss = [](const Ended& ended) { return ended.out.substr(ended.out.find("train_loss"), 40); };
  CHECK(loss(first) == loss(second));
  CHECK(loss(first) != loss(other));
}

TEST_CASE("toy_mlp rejects wrong flags and unsuitable files with one line", "[examples][bad input]") {
  const Folder folder;
  const std::string data = folder / "data.safetensors";
  const auto write = [&](std::vector<std::int64_t> labels, pdp::Index test_width) {
    const std::vector<float> x(labels.size() * 3, 1), test_x(static_cast<std::size_t>(2 * test_width), 1);
    const std::vector<std::int64_t> test_y{0, 1};
    const auto rows = static_cast<pdp::Index>(labels.size());
    const std::vector<pdp::data::TensorToWrite> tensors{pdp::data::tensor_to_write<float>("train.x", {rows, 3}, x),
                                                        pdp::data::tensor_to_write<std::int64_t>("train.y", {rows}, labels),
                                                        pdp::data::tensor_to_write<float>("test.x", {2, test_width}, test_x),
                                                        pdp::data::tensor_to_write<std::int64_t>("test.y", {2}, test_y)};
    pdp::data::write_safetensors(data, tensors);
  };
  const auto check = [](const Ended& ended, int code, const std::string& words) {
    CAPTURE(ended.out, ended.err);
    CHECK(ended.code == code);
    CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
    CHECK_THAT(ended.err, Contains(words));
  };
  check(toy_mlp({"--strategy", "guess"}), 2, "--strategy: guess not in {single,ddp,my,zero,pipeline,tensor}");
  check(toy_mlp({"--strategy", "single", "--ranks", "2"}), 2, "--strategy single is for one rank, but 2 were requested");
  check(toy_mlp({"--n-layers", "0"}), 2, "--n-layers");
  check(toy_mlp(small({"--world-size", "7"})), 2, "a step needs 168 samples, but the training set has 150");
  check(toy_mlp(small({"--strategy", "pipeline", "--ranks", "8"})), 1, "stages");
  check(toy_mlp({"--data", folder / "none.safetensors"}), 1, "none.safetensors");
  write({0, 1, 2, 1}, 4);
  check(toy_mlp({"--data", data}), 1, "found 3 values in train.x and 4 in test.x");
  write({0, 1, -2, 1}, 3);
  check(toy_mlp({"--data", data}), 1, "expected labels from 0 on in train.y, found -2");
  write({0, 1, 5, 1}, 3);
  check(toy_mlp({"--data", data, "--n-classes", "5"}), 1, "expected labels below 5, the outputs of the model, found 5");
  check(toy_mlp({"--data", data, "--init", recorded("toy_mlp_init.safetensors")}), 1, "expected labels below 5");
  write({0, 1, 4, 1}, 3);
  check(toy_mlp({"--data", data, "--init", recorded("toy_mlp_init.safetensors"), "--batch-size", "1"}), 1,
        "its samples have 24 values, but those in");
  check(toy_mlp({"--data", data, "--init", data}), 1, "expected a tensor '0.weight'");
  check(toy_mlp(small({"--init", recorded("toy_mlp_init.safetensors")})), 1, "holds the parameters of another model");
  // The dimensions come from the file, and an incomplete last global batch is left out.
  CHECK(toy_mlp({"--data", data, "--batch-size", "2", "--niters", "3"}).code == 0);
}
