#include <sys/stat.h>

#include <pdp/data/idx.hpp>

#include "catch.hpp"
#include "data/allocations.hpp"
#include "data/files.hpp"

namespace idx_test {

namespace data = pdp::data;
using pdp::Index;
using pdp::text;

namespace {

data::Idx parse(const std::string& bytes) { return data::read_idx(data::Input{files::as_bytes(bytes), "digits.idx"}); }

std::string refusal(const std::string& bytes) {
  return files::message_of<pdp::FileError>([&] { parse(bytes); }).value();
}

std::string counted(std::size_t size) {
  std::string values;
  for (std::size_t i = 0; i < size; ++i) values += static_cast<char>(i * 7 + i / 256);
  return values;
}

}  // namespace

TEST_CASE("read_idx reads 1 to 4 dimensions, plain or packed, from memory or from a file", "[data]") {
  const files::TemporaryFolder folder;
  const auto extents =
      GENERATE(std::vector<std::uint32_t>{1}, std::vector<std::uint32_t>{5}, std::vector<std::uint32_t>{0},
               std::vector<std::uint32_t>{3, 7}, std::vector<std::uint32_t>{0, 28, 28}, std::vector<std::uint32_t>{200, 28, 28},
               std::vector<std::uint32_t>{2, 3, 5, 7}, std::vector<std::uint32_t>{65536}, std::vector<std::uint32_t>{65537});
  std::size_t size = 1;
  for (const auto extent : extents) size *= extent;
  const std::string values = counted(size);
  const std::string plain = files::idx(extents, values);
  const std::string packed = files::gzip(plain, folder / "scratch");
  files::write(folder / "plain", plain);
  files::write(folder / "packed", packed);

  for (const data::Idx& idx : {parse(plain), parse(packed), data::read_idx(folder / "plain"), data::read_idx(folder / "packed")}) {
    CHECK(std::vector<std::uint32_t>(idx.extents.begin(), idx.extents.end()) == extents);
    CHECK(std::string(idx.values.begin(), idx.values.end()) == values);
  }
}

TEST_CASE("read_idx rejects every truncated file, plain or packed", "[data]") {
  const files::TemporaryFolder folder;
  const std::string plain = files::idx({3, 4}, counted(12));
  const std::string packed = files::gzip(plain, folder / "scratch");
  for (const std::string& whole : {plain, packed})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO("the first " << size << " of " << whole.size() << " bytes");
      CHECK_THAT(refusal(whole.substr(0, size)), StartsWith("digits.idx: expected") && Contains("found"));
      if (whole == packed) CHECK_THAT(refusal(whole.substr(0, size)), Contains("truncated"));
    }
}

TEST_CASE("read_idx rejects extra bytes in a plain file, in a packed one and after the gzip stream", "[data]") {
  const files::TemporaryFolder folder;
  const std::string plain = files::idx({3}, "abc");
  CHECK_THAT(refusal(plain + "x"), Contains("expected 3 bytes of data after the IDX header, found 4"));
  CHECK_THAT(refusal(files::gzip(plain + "x", folder / "scratch")), Contains("expected 3 bytes") && Contains("found more"));
  const std::string packed = files::gzip(plain, folder / "scratch");
  CHECK_THAT(refusal(packed + "x"), Contains("bytes after the end of the gzip stream"));
  CHECK_THAT(refusal(packed + std::string(3, '\0') + "x"), Contains("bytes after the end of the gzip stream"));
  CHECK_THAT(refusal(packed + "\x1f garbage"), Contains("damaged"));
  CHECK_THAT(refusal(packed + packed), Contains("expected 3 bytes") && Contains("found more"));
}

TEST_CASE("read_idx reads several gzip members with zero padding and detects damage in each", "[data]") {
  const files::TemporaryFolder folder;
  const std::string plain = files::idx({100, 1000}, counted(100'000));
  const auto packed = [&](std::size_t begin, std::size_t end) { return files::gzip(plain.substr(begin, end - begin), folder / "scratch"); };
  const std::string zeros(70'000, '\0');  // more than the reader takes at once
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{12}, std::size_t{70'000}, plain.size()}) {
    INFO("cut at " << cut);
    const std::string first = packed(0, cut), second = packed(cut, plain.size());
    for (const std::string& whole : {first + second, first + second + '\0', first + second + zeros, first + zeros + second}) {
      const auto values = parse(whole).values;
      CHECK(std::string(values.begin(), values.end()) == counted(100'000));
    }
  }
  const std::string first = packed(0, 50'000), second = packed(50'000, plain.size());
  for (std::size_t size = 1; size < second.size(); size += 97) {
    INFO("the first " << size << " bytes of the second member");
    CHECK_THAT(refusal(first + second.substr(0, size)), Contains("truncated"));
  }
  std::string wrong = first + second;
  wrong[first.size() - 1] = static_cast<char>(wrong[first.size() - 1] ^ 1);  // in the length field of the first member
  CHECK_THAT(refusal(wrong), Contains("incorrect length check"));
  wrong = first + second;
  wrong[wrong.size() - 8] = static_cast<char>(wrong[wrong.size() - 8] ^ 1);  // in the checksum of the second member
  CHECK_THAT(refusal(wrong), Contains("incorrect data check"));
}

TEST_CASE("read_idx rejects a gzip file of another size than its header says, without allocating it", "[data]") {
  const files::TemporaryFolder folder;
  constexpr std::uint32_t bytes = 80'000'000;
  const auto packed = [&](std::uint32_t announced) {
    return files::gzip(files::idx({announced}, std::string(bytes, '\0')), folder / "scratch");
  };
  for (const auto& [announced, found] : {std::pair{bytes + 1, "found 80000000"}, {bytes - 1, "found more"}, {1000u, "found more"}}) {
    const std::string whole = packed(announced);
    const long before = allocations::bytes;
    const std::string message = refusal(whole);
    CHECK(allocations::bytes - before < 1'000'000);
    CHECK_THAT(message, Contains(text("expected ", announced, " bytes")) && Contains(found));
  }
  CHECK(parse(packed(bytes)).values.size() == bytes);
}

TEST_CASE("read_idx detects a flipped bit of a packed file, or reads the same values", "[data]") {
  const files::TemporaryFolder folder;
  const std::string plain = files::idx({20}, counted(20));
  const std::string packed = files::gzip(plain, folder / "scratch");
  for (std::size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    std::string values;
    // The gzip header holds a time and an operating system, which do not affect the values.
    if (!files::message_of<pdp::FileError>([&] {
          const auto idx = parse(flipped);
          values.assign(idx.values.begin(), idx.values.end());
        }))
      CHECK(values == counted(20));
  }
}

TEST_CASE("read_idx rejects a file of another format, with what it expected and found", "[data]") {
  CHECK_THAT(refusal("<!DOCTYPE html>"), Contains("begins with the bytes 00 00") && Contains("found 3c 21"));
  CHECK_THAT(refusal({"\0\0\x0d\x01\0\0\0\0", 8}), Contains("type 08 (unsigned bytes)") && Contains("found type 0d"));
  CHECK_THAT(refusal({"\0\0\x08\0", 4}), Contains("1 to 4 IDX dimensions, found 0"));
  CHECK_THAT(refusal(files::idx({1, 1, 1, 1, 1}, "a")), Contains("1 to 4 IDX dimensions, found 5"));
  CHECK_THAT(refusal({"\0\0\x08\xff", 4}), Contains("1 to 4 IDX dimensions, found 255"));
  for (const char type : {'\0', '\x07', '\x09', '\x0b', '\x0c', '\x0d', '\x0e', '\xff'})
    CHECK_THAT(refusal({'\0', '\0', type, '\1', '\0', '\0', '\0', '\0'}), Contains("type 08 (unsigned bytes)"));
  CHECK_THAT(refusal(""), Contains("ends within the header"));
}

TEST_CASE("read_idx rejects a header that announces more bytes than the file holds", "[data]") {
  const files::TemporaryFolder folder;
  const std::string terabytes = files::idx({1u << 31, 1u << 11}, "abc");
  CHECK_THAT(refusal(terabytes), Contains("expected 4398046511104 bytes") && Contains("found 3"));
  CHECK_THAT(refusal(files::gzip(terabytes, folder / "scratch")), Contains("expected 4398046511104 bytes") && Contains("found 3"));
  const std::uint32_t most = 0xffffffff;
  CHECK_THAT(refusal(files::idx({most, most, most, most}, "abc")), Contains("multiply to more than 2^63"));
  CHECK_THAT(refusal(files::idx({most, most, most, 0}, "abc")), Contains("multiply to more than 2^63"));
  CHECK_THAT(refusal(files::idx({0, most, most, most}, "abc")), Contains("expected 0 bytes") && Contains("found 3"));
}

TEST_CASE("read_idx rejects a missing path, a folder, a device and a pipe without blocking", "[data]") {
  const files::TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& path) {
    return files::message_of<pdp::FileError>([&] { data::read_idx(path); }).value();
  };
  CHECK_THAT(refused(folder / "none"), Contains("none: cannot open it: No such file or directory"));
  CHECK_THAT(refused(folder.path()), Contains("expected a regular file, found a directory"));
  CHECK_THAT(refused("/dev/zero"), Contains("expected a regular file, found a device"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(refused(folder / "pipe"), Contains("expected a regular file, found a pipe"));
  std::filesystem::create_symlink(folder / "pipe", folder / "link");
  CHECK_THAT(refused(folder / "link"), Contains("expected a regular file"));
  files::write(folder / "file", files::idx({1}, "a"));
  std::filesystem::remove(folder / "link");
  std::filesystem::create_symlink("file", folder / "link");
  CHECK(data::read_idx(folder / "link").values == std::vector<std::uint8_t>{'a'});
}

}  // namespace idx_test
