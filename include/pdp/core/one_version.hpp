#pragma once

#include <pdp/core/version.hpp>

namespace pdp::detail {

/// Returns a version such as 1.2.3 as a number: 1002003.
constexpr int number_of(const char* version) {
  int number = 0;
  int part = 0;
  for (; *version != '\0'; ++version) {
    if (*version == '.') {
      number = (number + part) * 1000;
      part = 0;
    } else {
      part = part * 10 + (*version - '0');
    }
  }
  return number + part;
}
constexpr int version_number = number_of(version);

/// Makes the linker refuse sources that were compiled with different versions of pdp. Otherwise it would keep one of two inline functions
/// of the same name, and the program would fail at run time. Each object file defines this symbol, and its value is the version. Linkers
/// accept an absolute symbol twice if the values are equal, and print its name otherwise. The function is never called.
///
/// The symbol is defined in a function because link-time optimisation merges equal functions, but not assembly outside of functions. With
/// link-time optimisation, different versions are not found. Nor are they between a program and a shared library: the symbol is hidden.
/// Later versions must not change the name.
#ifndef __CUDACC__  // nvcc reads host functions as device code, too
[[gnu::used]] inline void refuse_two_versions() {
  asm(".globl two_versions_of_pdp_in_one_program__compile_all_sources_with_the_same\n"
      ".hidden two_versions_of_pdp_in_one_program__compile_all_sources_with_the_same\n"
      ".set two_versions_of_pdp_in_one_program__compile_all_sources_with_the_same, %c0"
      :
      : "i"(version_number));
}
#endif

}  // namespace pdp::detail
