// A locale with decimal commas and dots between thousands, like the German one, to test code that must not depend on the locale.
#pragma once

#include <stdlib.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <locale>
#include <string>

#include "data/files.hpp"

/// Sets the locale of C functions and of streams during its lifetime. localedef compiles it, which needs neither root nor a package of
/// locales.
class CommaLocale {
 public:
  CommaLocale() : streams_before_{std::locale::global(std::locale{std::locale::classic(), new Commas})} {
    files::write(folder_ / "charmap",
                 "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n"
                 "<U002C> /x2c COMMA\n<U002E> /x2e FULL STOP\nEND CHARMAP\n");
    files::write(folder_ / "source",
                 "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
                 "END LC_NUMERIC\n");
    const std::string place = folder_.path();
    const std::string command = "localedef -c -f " + place + "/charmap -i " + place + "/source " + place + "/comma >/dev/null 2>&1";
    static_cast<void>(std::system(command.c_str()));  // localedef warns about every category that the source lacks
    ::setenv("LOCPATH", place.c_str(), 1);
    is_set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::locale::global(streams_before_);
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
  }
  /// Whether C functions use the locale, too. False if localedef is not installed.
  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  files::TemporaryFolder folder_;
  std::locale streams_before_;
  bool is_set_ = false;
};
