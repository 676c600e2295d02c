#pragma once

#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

/// Returns the text that is written to standard output while f runs.
template <class F>
std::string captured(F&& f) {
  std::FILE* const file = std::tmpfile();
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  if (file == nullptr || before < 0 || ::dup2(::fileno(file), STDOUT_FILENO) < 0)
    throw std::runtime_error{"standard output cannot be caught"};
  const auto restore = [&] {
    std::fflush(stdout);
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
  };
  try {
    f();
  } catch (...) {
    restore();
    std::fclose(file);
    throw;
  }
  restore();
  std::string words;
  std::rewind(file);
  for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) words += static_cast<char>(letter);
  std::fclose(file);
  return words;
}
