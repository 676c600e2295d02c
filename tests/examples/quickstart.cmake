# Checks that the first program in README.md equals examples/quickstart.cpp: cmake -D ROOT=. -P tests/examples/quickstart.cmake
cmake_minimum_required(VERSION 3.25)

file(READ "${ROOT}/README.md" readme)
file(READ "${ROOT}/examples/quickstart.cpp" program)
string(FIND "${readme}" "```cpp\n${program}```\n" found)
string(FIND "${readme}" "```cpp\n" first)
if(found EQUAL -1 OR NOT found EQUAL first)
  message(FATAL_ERROR "the first program of README.md is not examples/quickstart.cpp, word by word")
endif()
message(STATUS "README.md shows examples/quickstart.cpp")
