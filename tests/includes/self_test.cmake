# Plants each kind of fault in a small source tree under WORK_DIR and checks that check.cmake reports it.
cmake_minimum_required(VERSION 3.25)
cmake_path(ABSOLUTE_PATH WORK_DIR NORMALIZE)

function(source path text)
  file(WRITE "${WORK_DIR}/${path}" "${text}\n")
endfunction()

# Writes a tree without faults. Its sources reach other headers through its own headers, and mention names in comments and strings.
function(sound_tree)
  file(REMOVE_RECURSE "${WORK_DIR}")
  source(include/pdp/shape.hpp "#pragma once\n#include <vector>\n#include <fmt/format.h>\nstd::vector<int> f(); // a std::optional, [maybe]")
  source(include/pdp/pdp.hpp "#pragma once\n#include <pdp/shape.hpp>\n#include <cerrno>\nstd::vector<int> g(); int h() { return errno; }")
  source(tests/catch.hpp "#pragma once\n#include <catch2/catch.hpp>\nusing Catch::Approx;")
  source(tests/core/a_test.cpp "#include \"catch.hpp\"\n#include <pdp/pdp.hpp>\n#if 0\n#endif\nconst char* text = \"std::map; // \\\" fmt::join\";")
  source(examples/a.cpp "#include \"common/run.hpp\"\nstd::string s;")
  source(examples/common/run.hpp "#pragma once\n#include <string>")
endfunction()

function(check outcome text)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "ROOT=${WORK_DIR}" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.cmake"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(result EQUAL 0)
    set(found passes)
  else()
    set(found fails)
  endif()
  # CMake wraps long messages.
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${text}" at)
  if(NOT found STREQUAL outcome OR at EQUAL -1)
    message(FATAL_ERROR "includes: expected that it ${outcome} with '${text}'; it ${found} with:\n${output}")
  endif()
  sound_tree()
endfunction()

sound_tree()
check(passes "6 sources include the headers of the 4 names that they use")

source(include/pdp/shape.hpp "#pragma once\nstd::vector<int> f();")
check(fails "include/pdp/shape.hpp names std::vector without <vector>")

source(include/pdp/pdp.hpp "#pragma once\ninline bool f(unsigned a) { return std::has_single_bit(a); }")
check(fails "include/pdp/pdp.hpp names std::has_single_bit without <bit>")

source(include/pdp/pdp.hpp "#pragma once\n#include <algorithm>\ninline auto f(auto& a) { return std::ranges::sort(a), a | std::views::take(1); }")
check(fails "include/pdp/pdp.hpp names std::views::take without <ranges>")

source(include/pdp/pdp.hpp "#pragma once\ninline int f() { return ::close(0); }")
check(fails "include/pdp/pdp.hpp names ::close without <unistd.h>")

source(include/pdp/pdp.hpp "#pragma once\ninline int f() { return errno; }")
check(fails "include/pdp/pdp.hpp names errno without <cerrno>")

# A source must include the header of another library itself, even if shape.hpp includes it.
source(include/pdp/pdp.hpp "#pragma once\n#include <pdp/shape.hpp>\ninline auto f() { return fmt::format(\"{}\", 1); }")
check(fails "include/pdp/pdp.hpp names fmt::format without <fmt/format.h>")

source(include/pdp/pdp.hpp "#pragma once\n#include <fmt/core.h>")
check(fails "include/pdp/pdp.hpp includes <fmt/core.h>, whose contents differ between releases of fmt")

source(examples/common/run.hpp "#pragma once")
check(fails "examples/a.cpp names std::string without <string>")

source(tests/core/a_test.cpp "#include \"catch.hpp\"\nauto m = Catch::Matchers::Contains(\"a\");")
check(fails "tests/core/a_test.cpp says Catch::Matchers::Contains, which need not be the same in Catch2 2 and 3")

source(tests/core/a_test.cpp "#include \"catch.hpp\"\nnamespace Catch { template <> struct StringMaker<int>; }")
check(fails "tests/core/a_test.cpp says namespace Catch")

source(tests/core/a_test.cpp "#include <catch2/catch_test_macros.hpp>")
check(fails "tests/core/a_test.cpp includes <catch2/catch_test_macros.hpp>: include \"catch.hpp\"")
message(STATUS "includes: each planted fault was found")
