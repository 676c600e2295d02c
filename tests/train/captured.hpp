#pragma once

#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

/// Returns the text that is written to a stream, such as standard output, while f runs.
template <class F>
std::string captured(F&& f, std::FILE* stream = stdout) {
  std::FILE* const file = std::tmpfile();
  std::fflush(stream);
  const int number = ::fileno(stream), before = ::dup(number);
  if (file == nullptr || before < 0 || ::dup2(::fileno(file), number) < 0) throw std::runtime_error{"the stream cannot be caught"};
  const auto restore = [&] {
    std::fflush(stream);
    ::dup2(before, number);
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
