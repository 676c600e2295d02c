#include <regex>
#include <string>

#include "catch.hpp"
#include "examples/run.hpp"

using examples_test::last_line;
using examples_test::run;

TEST_CASE("digits_cnn on two ranks learns within two epochs, and prints the test accuracy last", "[examples]") {
  const auto ended = run("digits_cnn", {"--ranks", "2", "--epochs", "2", "--seed", "1"});
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  CHECK(std::regex_match(ended.out, std::regex{"### Epoch 0 \\|\\| loss \\d\\.\\d{4} \\|\\| performance 0\\.\\d{4}\n"
                                               "### Epoch 1 \\|\\| loss \\d\\.\\d{4} \\|\\| performance 0\\.\\d{4}\n"
                                               "test accuracy 0\\.\\d{4}\n"}));
  CHECK(std::stod(last_line(ended.out).substr(14)) >= 0.4);  // a tenth by chance
}

TEST_CASE("digits_cnn on two ranks reaches a test accuracy of 0.975", "[.][long][examples]") {
  const auto ended = run("digits_cnn", {"--ranks", "2"});
  CHECK(ended.code == 0);
  CHECK(std::stod(last_line(ended.out).substr(14)) >= 0.975);
}
