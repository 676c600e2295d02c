#include <pdp/report/html.hpp>

#include <cmath>
#include <random>
#include <string>

#include "catch.hpp"
#include "comma_locale.hpp"
#include "report/markup.hpp"

namespace report = pdp::report;

namespace html_test {

const std::string replacement = "\xef\xbf\xbd";

TEST_CASE("escaped leaves no character that begins a tag, an entity or the end of an attribute", "[report]") {
  CHECK(report::escaped("a < b && \"c\" > 'd'") == "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;");
  CHECK(report::escaped("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;");
  CHECK(report::escaped("tab\t, newline\n, Zürich, 日本, 😀") == "tab\t, newline\n, Zürich, 日本, 😀");
}

TEST_CASE("escaped replaces control characters and bytes that are not UTF-8", "[report]") {
  using namespace std::string_literals;
  CHECK(report::escaped("a\0b\x1b[2J\x7f\r"s) == "a" + replacement + "b" + replacement + "[2J" + replacement + replacement);
  CHECK(report::escaped("\xff") == replacement);
  CHECK(report::escaped("\xc3") == replacement);                                      // cut off
  CHECK(report::escaped("\xc0\xbc") == replacement + replacement);                    // < in too many bytes
  CHECK(report::escaped("\xed\xa0\x80") == replacement + replacement + replacement);  // half of a surrogate pair
  CHECK(report::escaped("\xc2\x85") == replacement + replacement);                    // a control character
  CHECK(report::escaped("\xf4\x90\x80\x80").size() == 4 * replacement.size());        // beyond Unicode
}

TEST_CASE("escaped turns any bytes into well-formed text", "[report]") {
  std::mt19937 random{random_seed()};
  for (int trial = 0; trial < 2000; ++trial) {
    std::string words(random() % 40, '\0');
    for (char& letter : words) letter = static_cast<char>(random() % (trial % 2 == 0 ? 256 : 64));
    const std::string html = "<!DOCTYPE html>\n<p title=\"" + report::escaped(words) + "\">" + report::escaped(words) + "</p>";
    const markup::Page page{html};
    REQUIRE(page.elements().size() == 1);
    CHECK(page.elements()[0].text == page.elements()[0].attributes.at("title"));
  }
}

TEST_CASE("Numbers, times and counts are short and independent of the locale", "[report]") {
  const CommaLocale locale;
  CHECK(report::number(0.123456) == "0.1235");
  CHECK(report::number(1e-30) == "1e-30");
  CHECK(report::number(88'123.4) == "88,123");
  CHECK(report::number(9999.4) == "9999");
  CHECK(report::number(NAN) == "NaN");
  CHECK(report::number(-INFINITY) == "-infinity");
  CHECK(report::whole(0) == "0");
  CHECK(report::whole(999) == "999");
  CHECK(report::whole(-1000) == "-1,000");
  CHECK(report::whole(1234567) == "1,234,567");
  CHECK(report::time_text(0.00123) == "1.23 ms");
  CHECK(report::time_text(4.56e-5) == "45.6 µs");
  CHECK(report::time_text(59.4) == "59.4 s");
  CHECK(report::time_text(59.6) == "1 min 0 s");
  CHECK(report::time_text(7500) == "2 h 5 min");
  CHECK(report::time_text(NAN) == "NaN s");
  CHECK(report::counted(1, "step") == "1 step");
  CHECK(report::counted(2000, "step") == "2,000 steps");
}

TEST_CASE("Table escapes its cells", "[report]") {
  report::Table table{"<caption>", {"a & b", "c"}};
  table.row({"<td>", "\"2\""});
  const std::string html = "<!DOCTYPE html>\n" + table.html();
  const markup::Page page{html};
  CHECK(page.elements()[0].text == "<caption>");
  CHECK(page.elements()[1].attributes.at("aria-label") == "<caption>");
  CHECK(page.elements()[1].text == "\na & bc\n\n<td>\"2\"\n");
}

}  // namespace html_test
