# Plants faults in small headers under WORK_DIR and checks that check.cmake finds them. Takes the compiler arguments of check.cmake.
cmake_minimum_required(VERSION 3.25)
cmake_path(ABSOLUTE_PATH WORK_DIR NORMALIZE)
file(REMOVE_RECURSE "${WORK_DIR}")

# check(<passes|fails> <text of the header> <text of the output>): checks the outcome for this header, and that the output contains the text.
function(check outcome header text)
  set(file "${WORK_DIR}/include/pdp/planted.hpp")
  file(WRITE "${file}" "#pragma once\n#include <cstddef>\n#include <utility>\n${header}\n")
  execute_process(
    COMMAND
      "${CMAKE_COMMAND}" -D "HEADERS=${file}" -D "INCLUDE_DIR=${WORK_DIR}/include" -D "WORK_DIR=${WORK_DIR}" -D
      "COMPILER=${COMPILER}" -D "COMPILER_ID=${COMPILER_ID}" -D "STANDARD=${STANDARD}" -D DEFINITIONS=PDP_SEPARATE_PLANTED -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.cmake"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(result EQUAL 0)
    set(found passes)
  else()
    set(found fails)
  endif()
  string(FIND "${output}" "${text}" at)
  if(NOT found STREQUAL outcome OR at EQUAL -1)
    message(FATAL_ERROR "headers: expected that it ${outcome} with '${text}' for\n${header}\nit ${found}, with:\n${output}")
  endif()
endfunction()

set(sound "inline std::size_t twice(std::size_t number) { return 2 * number; }")
check(passes "${sound}" "1 headers compile")

check(fails "template <std::size_t... I> constexpr std::size_t sum(std::index_sequence<I...>) { return (I + ...); }" "planted.hpp:4")
check(fails "struct Waiter { int timeout(int begin) { return begin; } };" "planted.hpp:4")
check(fails "enum class Kind { None, Some };" "planted.hpp:4")
check(fails "inline int first(int slots) { return slots; }" "planted.hpp:4")

check(fails "inline std::size_t wide(int number) { return std::size_t{0} + number; }" "sign-conversion")
check(fails "inline double add(float a, double b) { return a + b; }" "double-promotion")
check(fails "inline long cut(double number) { return (long)number; }" "old-style-cast")

set(definition "#ifndef PDP_SEPARATE_PLANTED\n@\n#endif")
string(REPLACE "@" "inline int first(int slots) { return slots; }" macro "${definition}")
check(fails "${macro}" "planted.hpp:5")
string(REPLACE "@" "inline long cut(double number) { return (long)number; }" cast "${definition}")
check(fails "${cast}" "old-style-cast")
if(COMPILER_ID STREQUAL "GNU")
  check(fails "inline int pick(int a) { if (a == 1) return 1; else if (a == 1) return 2; return 0; }" "duplicated-cond")
endif()
message(STATUS "headers: each planted fault was found")
