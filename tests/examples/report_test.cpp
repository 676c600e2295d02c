#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "examples/run.hpp"
#include "report/markup.hpp"

using examples_test::Ended;
using examples_test::Folder;
using examples_test::run;
using launch_test::contents;

namespace report_test {

using markup::Page;
using Words = std::vector<std::string>;

TEST_CASE("Every program that trains writes a page with --report", "[examples]") {
  const Folder folder;
  const std::string file = folder / "run.html";
  const std::vector<std::pair<std::string, Words>> ways{{"mnist_single", {}},
                                                        {"mnist_ddp", {"--ranks", "2"}},
                                                        {"mnist_data_parallel", {"--devices", "2"}},
                                                        {"mnist_zero", {"--threads", "2", "--stage", "3"}},
                                                        {"mnist_model_parallel", {"--ranks", "2"}},
                                                        {"mnist_pipeline", {"--ranks", "2", "--comm", "tcp"}},
                                                        {"mnist_tensor_parallel", {"--ranks", "2"}},
                                                        {"mnist_hybrid", {"--threads", "4", "--tp", "2", "--pp", "2"}},
                                                        {"my_data_parallel", {"--ranks", "2"}},
                                                        {"autoencoder_single", {}},
                                                        {"toy_mlp", {"--strategy", "ddp", "--niters", "30"}}};
  for (const auto& [program, flags] : ways) {
    Words arguments = flags;
    for (const char* each : {"--report", file.c_str()}) arguments.emplace_back(each);
    if (program != "toy_mlp")
      for (const char* each : {"--epochs", "1"}) arguments.emplace_back(each);
    const Ended ended = run(program, arguments);
    CAPTURE(program, ended.err);
    REQUIRE(ended.code == 0);
    const Page page{contents(file)};
    for (const char* part :
         {"loss", "learning-rate", "step-time-histogram", "throughput", "memory", "timeline", "plan", "ranks", "environment"})
      CHECK(page.has(part));
    CHECK_THAT(page.at("environment").text, Contains(program));
    if (program == "mnist_ddp") CHECK_THAT(page.at("accuracy").text, Contains("test accuracy"));
    if (program == "toy_mlp") CHECK_THAT(page.at("loss").text, Contains("test loss"));
    std::filesystem::remove(file);
  }
}

TEST_CASE("A program rejects a --report that cannot work with one line, before it trains", "[examples][bad input]") {
  const Folder folder;
  const std::vector<std::pair<Words, Words>> cases{{{"--report"}, {"--report"}},
                                                   {{"--report="}, {"--report"}},
                                                   {{"--report", "--epochs", "3"}, {"--report"}},
                                                   {{"--report", folder / "run.svg"}, {"run.svg", "ends in .html"}},
                                                   {{"--report", "/dev/full"}, {"/dev/full", "ends in .html"}}};
  for (const auto& [arguments, words] : cases) {
    const Ended ended = run("mnist_ddp", arguments);
    CAPTURE(arguments, ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    for (const std::string& word : words) CHECK_THAT(ended.err, Contains(word));
  }
  const Ended nowhere = run("mnist_ddp", {"--ranks", "2", "--report", folder / "no/such/run.html"});
  CHECK(nowhere.code == 1);
  CHECK(nowhere.out.empty());
  CHECK_THAT(nowhere.err, Contains("no/such/run.html") && Contains("rank 0"));
  CHECK_THAT(run("autoencoder_rpc", {"--report", folder / "run.html"}).err, Contains("--report"));
}

TEST_CASE("A program that stops on request leaves the page of its steps, and the next run shows the others", "[examples]") {
  const Folder folder;
  const Words arguments{"--ranks",      "2", "--epochs", "100000", "--report", folder / "run.html", "--checkpoint", folder / "steps",
                        "--stop-after", "2"};
  const Ended first = run("mnist_ddp", arguments);
  CAPTURE(first.err);
  CHECK(first.code == 75);
  const Page early{contents(folder / "run.html")};
  CHECK_THAT(early.at("warning").text, Contains("ended before the report was complete"));
  CHECK(run("mnist_ddp", arguments).code == 75);
  const Page later{contents(folder / "run.html")};
  CHECK_THAT(later.at("earlier").text, Contains("are not shown"));
}

// ---- In a browser ----

/// Returns the path of a Chromium, or an empty string.
std::string browser() {
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::string folder = rest.substr(0, rest.find(':'));
    rest.erase(0, folder.size() + 1);
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
      if (const std::string program = folder + '/' + name; ::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

/// Runs Chromium on a page in a window of a width. Returns what it prints.
std::string browse(const Folder& folder, const std::string& file, int width, const std::string& task) {
  launch_test::Job job{
      {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
       "--user-data-dir=" + folder / "profile", "--window-size=" + std::to_string(width) + ",2400", task, "file://" + file},
      {{"HOME", folder / "home"}, {"DBUS_SESSION_BUS_ADDRESS", "disabled:"}, {"DBUS_SYSTEM_BUS_ADDRESS", "disabled:"}},
      browser()};
  const int code = job.end();
  if (code != 0) throw std::runtime_error{"the browser ended with " + std::to_string(code) + ": " + job.err()};
  return job.out();
}

/// Returns width and height of a PNG file.
std::pair<unsigned, unsigned> size_of_png(const std::string& file) {
  const std::string bytes = contents(file);
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t byte = at; byte < at + 4; ++byte) value = value << 8 | static_cast<unsigned char>(bytes.at(byte));
    return value;
  };
  if (!bytes.starts_with("\x89PNG\r\n")) throw std::runtime_error{file + " is no PNG file"};
  return {number(16), number(20)};
}

/// Returns an end for a copy of a page that is `width` pixels wide in any window, since Chromium's windows are at least 500 wide unless it
/// takes a picture. A script adds an element that lists what does not fit: texts of a picture that overlap, and elements that are cut off.
std::string measuring_end(int width) {
  const std::string number = std::to_string(width);
  return "<style>html{width:" + number + "px}</style><script>\nconst width = " + number + R"(, faults = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  texts.forEach(([words, box], at) => {
    for (const [other, its] of texts.slice(at + 1))
      if (box.left < its.right && its.left < box.right && box.top + 2 < its.bottom && its.top + 2 < box.bottom)
        faults.push(words + ' overlaps ' + other);
  });
}
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  if (!element.closest('.scroll table') && (box.left < 0 || box.right > width + 0.5)) faults.push(element.outerHTML.slice(0, 80) + ' is cut off');
}
const found = document.body.appendChild(document.createElement('p'));
found.id = 'measured';
found.textContent = document.body.offsetWidth + ' wide: ' + faults.join('; ');
</script></body></html>
)";
}

TEST_CASE("A browser shows all parts of the page of two ranks, in wide and narrow windows, without overlaps", "[examples][browser]") {
  if (browser().empty()) {
    std::cout << "skipped: there is no chromium in PATH\n";
    return;
  }
  const Folder folder;
  const std::string file = folder / "run.html", copy = folder / "copy.html";
  REQUIRE(run("mnist_ddp", {"--ranks", "2", "--epochs", "3", "--seed", "1", "--report", file}).code == 0);
  const std::string html = contents(file);
  const std::size_t end = html.rfind("</body>");
  REQUIRE(end != std::string::npos);
  for (const int width : {1280, 400}) {
    CAPTURE(width);
    std::ofstream{copy} << html.substr(0, end) << measuring_end(width);
    const std::string dom = browse(folder, copy, width, "--dump-dom");
    for (const char* part : {"summary", "loss", "accuracy", "learning-rate", "step-time", "step-time-histogram", "throughput", "memory",
                             "timeline", "plan", "ranks", "numbers", "environment"})
      CHECK_THAT(dom, Contains(" id=\"" + std::string{part} + "\""));
    CHECK_THAT(dom, Contains("<p id=\"measured\">" + std::to_string(width) + " wide: </p>"));
    const std::string picture = folder / std::to_string(width) + ".png";
    browse(folder, file, width, "--screenshot=" + picture);
    CHECK(size_of_png(picture) == std::pair{static_cast<unsigned>(width), 2400u});
  }
}

}  // namespace report_test
