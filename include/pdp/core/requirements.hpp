#pragma once

/// Stops the compiler with one sentence if it cannot compile pdp. A header that includes no other header of pdp includes this one, so the
/// compiler reads it before other code of pdp, whichever header a program includes. The header that cannot be found ends the compilation,
/// because hundreds of errors would follow the sentence.
#ifndef __linux__
#error "pdp runs on Linux only: on macOS or Windows, compile and run the program in a Linux container or virtual machine, such as WSL"
#include <see the error above>
#elif __SIZEOF_POINTER__ != 8
#error "pdp needs a 64-bit processor: compile for x86-64 or aarch64, without -m32 and -mx32"
#include <see the error above>
#elif defined(__clang__) && __clang_major__ < 16
#error "pdp needs clang 16 or newer: compile with clang++-16, or with g++ 12 or newer"
#include <see the error above>
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12
#error "pdp needs g++ 12 or newer: compile with g++-12, or with clang 16 or newer"
#include <see the error above>
#elif __cplusplus < 202002L
#error "pdp needs C++20 or newer: compile with -std=c++20"
#include <see the error above>
#endif

#include <pdp/core/one_version.hpp>
