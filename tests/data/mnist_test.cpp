#include <sys/stat.h>

#include <pdp/data/idx.hpp>
#include <pdp/data/mnist.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "catch.hpp"
#include "data/allocations.hpp"
#include "data/files.hpp"

namespace mnist_test {

namespace data = pdp::data;
using pdp::Index;

namespace {

const std::string images = "t10k-images-idx3-ubyte";
const std::string labels = "t10k-labels-idx1-ubyte";

std::filesystem::path real_digits() { return std::filesystem::path{PDP_TEST_DATA} / "mnist"; }

/// Writes `count` images, in which every byte is the number of the image, and labels 0, 1, ..., 9, 0, ...
void write_digits(const std::filesystem::path& folder, const std::string& images_name, const std::string& labels_name,
                  std::uint32_t count) {
  std::string pixels, classes;
  for (std::uint32_t i = 0; i < count; ++i) {
    pixels += std::string(784, static_cast<char>(i));
    classes += static_cast<char>(i % 10);
  }
  files::write(folder / images_name, files::idx({count, 28, 28}, pixels));
  files::write(folder / labels_name, files::idx({count}, classes));
}

struct Gathered {
  std::vector<float> x;
  std::vector<std::int32_t> y;
};

Gathered gather(const data::Digits& digits, const std::vector<Index>& which) {
  Gathered rows{std::vector<float>(which.size() * 784), std::vector<std::int32_t>(which.size())};
  digits.gather(which, rows.x, rows.y);
  return rows;
}

std::string refusal(const std::filesystem::path& folder) {
  return files::message_of<pdp::FileError>([&] { data::Mnist{folder}; }).value();
}

}  // namespace

TEST_CASE("Mnist splits the shipped 10,000 digits into 9,000 and 1,000 in file order", "[data][mnist]") {
  const data::Mnist digits{real_digits()};
  CHECK(digits.train().size() == 9'000);
  CHECK(digits.test().size() == 1'000);
  CHECK(digits.train().sample_shape() == pdp::Shape{1, 28, 28});
  CHECK(digits.train().target_shape() == pdp::Shape{1});

  const auto first = gather(digits.train(), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(first.y == std::vector<std::int32_t>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9});

  const data::Idx all = data::read_idx(real_digits() / (images + ".gz"));
  for (const auto& [part, number, row] :
       {std::tuple{digits.train(), 0, 0}, {digits.train(), 8'999, 8'999}, {digits.test(), 0, 9'000}, {digits.test(), 999, 9'999}}) {
    const auto x = gather(part, {number}).x;
    for (std::size_t i = 0; i < 784; ++i) {
      const double byte = all.values[static_cast<std::size_t>(row) * 784 + i];
      REQUIRE(x[i] == Approx((byte / 255 - 0.1307) / 0.3081).margin(1e-6));
    }
  }
}

TEST_CASE("Mnist normalises the shipped digits to mean 0 and deviation 1, with all classes present", "[data][mnist]") {
  const auto train = data::Mnist{real_digits()}.train();
  std::vector<Index> which(static_cast<std::size_t>(train.size()));
  std::iota(which.begin(), which.end(), Index{0});
  const auto rows = gather(train, which);
  double sum = 0, squares = 0;
  for (const float value : rows.x) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(rows.x.size());
  CHECK(std::abs(sum / count) < 0.05);
  CHECK(std::abs(squares / count - 1) < 0.05);
  for (int digit = 0; digit < 10; ++digit) CHECK(std::ranges::count(rows.y, digit) > 700);
}

TEST_CASE("Mnist uses the published split if the training files are present", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 23);
  write_digits(folder.path(), images, labels, 11);
  const data::Mnist digits{folder.path()};
  CHECK(digits.train().size() == 23);
  CHECK(digits.test().size() == 11);
  CHECK(gather(digits.train(), {22, 0}).y == std::vector<std::int32_t>{2, 0});
  CHECK(gather(digits.train(), {22}).x.front() == Approx((22 / 255.0 - 0.1307) / 0.3081));
}

TEST_CASE("Mnist splits the test set nine to one if there are no training files", "[data][mnist]") {
  const files::TemporaryFolder folder;
  const auto [count, train, test] = GENERATE(std::tuple{2, 1, 1}, std::tuple{10, 9, 1}, std::tuple{25, 22, 3}, std::tuple{100, 90, 10});
  write_digits(folder.path(), images, labels, static_cast<std::uint32_t>(count));
  const data::Mnist digits{folder.path()};
  CHECK(digits.train().size() == train);
  CHECK(digits.test().size() == test);
  CHECK(gather(digits.test(), {0}).y.front() == train % 10);
}

TEST_CASE("Mnist reads packed and plain files from one folder", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  files::write(folder / (labels + ".gz"), files::gzip(files::read(folder / labels), folder / "scratch"));
  std::filesystem::remove(folder / labels);
  CHECK(data::Mnist{folder.path()}.train().size() == 9);
}

TEST_CASE("Mnist rejects a missing folder, an empty one and a file, and lists the expected files", "[data][mnist]") {
  const files::TemporaryFolder folder;
  CHECK_THAT(refusal(folder / "none"), Contains("none: expected a folder") && Contains("does not exist") && Contains(images) &&
                                           Contains("pdp ships 10,000 digits in examples/data/mnist"));
  CHECK_THAT(refusal(folder.path()),
             Contains("found none of them") && Contains(images) && Contains(labels) && Contains("train-images-idx3-ubyte"));
  files::write(folder / "file", "");
  CHECK_THAT(refusal(folder / "file"), Contains("expected a folder") && Contains("found a file"));
}

TEST_CASE("Mnist rejects images without labels, or labels without images, and names the missing file", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  std::filesystem::remove(folder / labels);
  CHECK_THAT(refusal(folder.path()), Contains("expected " + labels + " or " + labels + ".gz, found neither"));

  write_digits(folder.path(), images, labels, 10);
  write_digits(folder.path(), "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 10);
  std::filesystem::remove(folder / "train-images-idx3-ubyte");
  CHECK_THAT(refusal(folder.path()), Contains("expected train-images-idx3-ubyte or"));
}

TEST_CASE("Mnist rejects damaged files, with what it expected and found", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  const std::string whole = files::read(folder / images);

  files::write(folder / images, "<!DOCTYPE html>");
  CHECK_THAT(refusal(folder.path()), Contains(images) && Contains("expected an IDX file"));
  files::write(folder / images, whole.substr(0, 5000));
  CHECK_THAT(refusal(folder.path()), Contains(images) && Contains("expected 7840 bytes") && Contains("found 4984"));
  files::write(folder / images, files::idx({10, 32, 32}, std::string(10 * 32 * 32, 'x')));
  CHECK_THAT(refusal(folder.path()), Contains("expected images of 28 x 28 pixels") && Contains("found 10 x 32 x 32"));
  files::write(folder / images, files::read(folder / labels));
  CHECK_THAT(refusal(folder.path()), Contains("expected images of 28 x 28 pixels") && Contains("found 10 bytes"));

  files::write(folder / images, whole);
  files::write(folder / labels, files::idx({9}, std::string(9, '\0')));
  CHECK_THAT(refusal(folder.path()), Contains("expected 10 labels, one for each image") && Contains("found 9"));
  files::write(folder / labels, files::idx({10}, std::string(9, '\x03') + '\x0a'));
  CHECK_THAT(refusal(folder.path()), Contains("expected labels from 0 to 9, found 10 as label number 9"));
  files::write(folder / labels, whole);
  CHECK_THAT(refusal(folder.path()), Contains("expected labels in 1 dimension, found 3"));
}

TEST_CASE("Mnist reads the packed file if a folder or a pipe has the name of the plain one", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  for (const std::string& name : {images, labels}) {
    files::write(folder / (name + ".gz"), files::gzip(files::read(folder / name), folder / "scratch"));
    std::filesystem::remove(folder / name);
  }
  std::filesystem::create_directory(folder / images);
  REQUIRE(::mkfifo((folder / labels).c_str(), 0600) == 0);
  CHECK(data::Mnist{folder.path()}.train().size() == 9);
}

TEST_CASE("Mnist reports a file with a similar name, and an entry with the right name that is not a file", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte", 10);
  CHECK_THAT(refusal(folder.path()), Contains("found none of them, but t10k-images.idx3-ubyte: rename it to t10k-images-idx3-ubyte if") &&
                                         Contains("but t10k-labels.idx1-ubyte: rename it to t10k-labels-idx1-ubyte if"));
  write_digits(folder.path(), images, labels, 10);
  CHECK(data::Mnist{folder.path()}.train().size() == 9);

  // A misnamed training file must not cause a silent split of the test set.
  files::write(folder / "Train-Images.idx3-ubyte.gz", "");
  CHECK_THAT(refusal(folder.path()), Contains("but Train-Images.idx3-ubyte.gz: rename it to train-images-idx3-ubyte.gz if"));
  std::filesystem::remove(folder / "Train-Images.idx3-ubyte.gz");

  std::filesystem::remove(folder / labels);
  std::filesystem::create_directory(folder / labels);
  CHECK_THAT(refusal(folder.path()), Contains("found neither, but " + labels + ", which is a folder. "));
  files::write(folder / labels / labels, "");
  CHECK_THAT(refusal(folder.path()), Contains("which is a folder: move the file"));
  std::filesystem::remove_all(folder / labels);
  std::filesystem::create_symlink("nowhere", folder / labels);
  CHECK_THAT(refusal(folder.path()), Contains("but " + labels + ", which is not a file"));
}

TEST_CASE("Mnist reports the system's reason if it cannot find out whether a file exists", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  const std::string packed = files::gzip(files::read(folder / images), folder / "scratch");
  std::filesystem::remove(folder / images);
  std::filesystem::create_symlink(images, folder / images);  // a loop
  CHECK_THAT(refusal(folder.path()),
             Contains("/" + images + ": cannot find out whether it is there: Too many levels of symbolic links. Check the path"));
  files::write(folder / (images + ".gz"), packed);
  CHECK(data::Mnist{folder.path()}.train().size() == 9);

  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THAT(refusal(folder / "loop"), Contains("/loop: cannot find out whether it is there: Too many levels"));
  std::filesystem::create_symlink("loop", folder / "Train-Images.idx3-ubyte");
  CHECK_THAT(refusal(folder.path()), Contains("but Train-Images.idx3-ubyte, which cannot be examined: Too many levels"));
}

TEST_CASE("Mnist reports that the user may not search the folder", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0644});
  const std::string message = files::in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string{"cannot stop being root"};
    return refusal(folder.path());
  });
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0755});
  CHECK_THAT(message, Contains("Permission denied. Let this user search the folder") && !Contains("found none"));
}

TEST_CASE("Mnist rejects large files that are not digits before it unpacks them", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  const std::string zeros(3'920'000, '\0');
  const auto pack = [&](const std::string& name, const std::string& bytes) {
    std::filesystem::remove(folder / name);
    files::write(folder / (name + ".gz"), files::gzip(bytes, folder / "scratch"));
  };
  const auto rejected = [&] {
    const long before = allocations::bytes;
    std::string message = refusal(folder.path());
    CHECK(allocations::bytes - before < 1'000'000);
    return message;
  };
  pack(images, files::idx({3'920'000}, zeros));
  CHECK_THAT(rejected(), Contains("expected images of 28 x 28"));
  pack(images, files::idx({5'000, 28, 28}, zeros));
  CHECK_THAT(rejected(), Contains("expected 5000 labels"));
}

TEST_CASE("Mnist rejects fewer than two digits", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, GENERATE(0u, 1u));
  CHECK_THAT(refusal(folder.path()), Contains("expected at least one training digit and one test digit, found too few digits"));
}

TEST_CASE("Digits::part checks its range and keeps the bytes alive", "[data][mnist]") {
  const files::TemporaryFolder folder;
  write_digits(folder.path(), images, labels, 10);
  auto digits = std::make_unique<data::Digits>(folder / images, folder / labels);
  const auto part = digits->part(2, 8).part(1, 3);
  CHECK(files::message_of<pdp::ShapeError>([&] { (void)digits->part(3, 11); }));
  CHECK(files::message_of<pdp::ShapeError>([&] { (void)digits->part(3, 2); }));
  digits.reset();
  CHECK(gather(part, {0, 1}).y == std::vector<std::int32_t>{3, 4});
  CHECK(files::message_of<pdp::ShapeError>([&] { gather(part, {2}); }));
}

}  // namespace mnist_test
