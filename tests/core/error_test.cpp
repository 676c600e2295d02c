#include <pdp/core/error.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include "catch.hpp"

TEST_CASE("text joins strings, characters and numbers of every type", "[core]") {
  const std::string word = "rows";
  CHECK(pdp::text().empty());
  CHECK(pdp::text("expected ", 3, ' ', word, std::string_view{", found "}, std::uint8_t{200}) == "expected 3 rows, found 200");
  CHECK(pdp::text(std::int8_t{-7}, '/', true, '/', false) == "-7/true/false");
  CHECK(pdp::text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(pdp::text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(pdp::text(2.5, " s, ", 0.0, ", ", -0.1, ", ", 1e8, ", ", 1e300, ", ", 2.5e-7) == "2.5 s, 0, -0.1, 100000000, 1e+300, 2.5e-07");
  CHECK(pdp::text(std::numeric_limits<double>::infinity(), ' ', -std::numeric_limits<double>::max()) == "inf -1.7976931348623157e+308");
}

TEST_CASE("Errors can be caught by the type of their base class", "[core]") {
  const auto caught = [](const auto& error) {
    try {
      throw error;
    } catch (const pdp::UsageError&) {
      return "usage";
    } catch (const pdp::ConfigError&) {
      return "config";
    } catch (const pdp::FileError&) {
      return "file";
    } catch (const pdp::CommunicationError&) {
      return "communication";
    } catch (const pdp::Error&) {
      return "error";
    }
  };
  CHECK(caught(pdp::UsageError{"x"}) == std::string{"usage"});
  CHECK(caught(pdp::ConfigError{"x"}) == std::string{"config"});
  CHECK(caught(pdp::ChecksumError{"x"}) == std::string{"file"});
  CHECK(caught(pdp::Timeout{"x"}) == std::string{"communication"});
  CHECK(caught(pdp::MismatchedCollective{"x"}) == std::string{"communication"});
  CHECK(caught(pdp::PeerLost{2, "x"}) == std::string{"communication"});
  CHECK(caught(pdp::ShapeError{"x"}) == std::string{"error"});
  CHECK(caught(pdp::PlanError{"x"}) == std::string{"error"});
}

TEST_CASE("PeerLost carries the lost rank and the message", "[core]") {
  const pdp::PeerLost lost{3, "rank 3 is gone"};
  CHECK(lost.rank() == 3);
  CHECK_THAT(lost.what(), Equals("rank 3 is gone"));
}

TEST_CASE("printable, in_quotes and errors escape control characters and invalid UTF-8", "[core]") {
  CHECK(pdp::printable("a\r\x1b[2J\x7f b\n\tc") == "a\\r\\x1b[2J\\x7f b\n\tc");
  CHECK(pdp::printable(std::string_view{"\0", 1}) == "\\x00");
  // Valid UTF-8 stays. Invalid bytes, surrogates, overlong forms and C1 controls are escaped.
  CHECK(pdp::printable("Gr\xc3\xbc\xc3\x9f"
                       "e \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "Gr\xc3\xbc\xc3\x9f"
        "e \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(pdp::printable("\xc2\x9b") == "\\xc2\\x9b");
  CHECK(pdp::printable("\xc3") == "\\xc3");
  CHECK(pdp::printable("\xff\x80") == "\\xff\\x80");
  CHECK(pdp::printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(pdp::printable("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(pdp::in_quotes("4\r\n") == "'4\\r\\n'");
  CHECK(pdp::in_quotes(std::string(300, 'x')) == "'" + std::string(200, 'x') + "'...");
  CHECK(std::string{pdp::FileError{"no file a\x1b"
                                   "b"}
                        .what()} ==
        "no file a\\x1b"
        "b");
  CHECK(std::string{pdp::PeerLost{1, "rank 1 has said \x07"}.what()} == "rank 1 has said \\x07");
}
