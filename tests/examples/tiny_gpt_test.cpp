#include <regex>
#include <string>

#include "catch.hpp"
#include "data/files.hpp"
#include "examples/run.hpp"

using examples_test::last_line;
using examples_test::run;

TEST_CASE("tiny_gpt on two ranks trains on a text, writes one, and prints its bits per character last", "[examples]") {
  const files::TemporaryFolder folder;
  std::string text;
  while (text.size() < 3000) text += "the quick brown fox jumps over the lazy dog. ";
  files::write(folder / "text.txt", text);
  const auto ended =
      run("tiny_gpt", {"--ranks", "2", "--steps", "5", "--generate", "3", "--batch-size", "2", "--data", folder / "text.txt"});
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  CHECK(std::regex_match(ended.out,
                         std::regex{"step 0 \\| bits per character 7\\.\\d{3}\n[\\s\\S]{3}\ntest bits per character \\d\\.\\d{3}\n"}));
  CHECK(std::stod(last_line(ended.out).substr(24)) < 6);  // 7 without training
}

TEST_CASE("tiny_gpt says which character of a text is no ASCII", "[examples]") {
  const files::TemporaryFolder folder;
  files::write(folder / "text.txt", std::string(3000, '\xe9'));
  const auto ended = run("tiny_gpt", {"--steps", "1", "--data", folder / "text.txt"});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.err, Contains("is token 233, but the model has tokens 0 to 127"));
}

TEST_CASE("tiny_gpt on two ranks needs less than 2.4 bits per character of an unseen text", "[.][long][examples]") {
  const auto ended = run("tiny_gpt", {"--ranks", "2"});
  CHECK(ended.code == 0);
  CHECK(std::stod(last_line(ended.out).substr(24)) < 2.4);
}
