# Writes pdp as a single header: cmake -D ROOT=. -D WORK_DIR=... -D PYTHON=python3 -P check.cmake
#
#   - The same headers give the same bytes.
#   - The file includes no header of pdp and asks for no separate compilation.
#
# tests/consume compiles such a header, and links a program whose object files all include it.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
foreach(folder IN ITEMS first second)
  execute_process(COMMAND "${PYTHON}" "${ROOT}/tools/amalgamate" --paths "${WORK_DIR}/${folder}/pdp.hpp" pdp/comm/hierarchical.hpp COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(READ "${WORK_DIR}/first/pdp.hpp" text)
file(READ "${WORK_DIR}/second/pdp.hpp" again)
if(NOT text STREQUAL again)
  message(FATAL_ERROR "amalgamate: two files of the same headers differ: ${WORK_DIR}/first/pdp.hpp and ${WORK_DIR}/second/pdp.hpp")
endif()
if(text MATCHES "\n *(#[^\n]*(<pdp/|PDP_SEPARATE)[^\n]*)")
  message(FATAL_ERROR "amalgamate: the file must need no other header of pdp and no macro, but it has the line: ${CMAKE_MATCH_1}")
endif()
string(REGEX MATCHALL "\n// ---- pdp/[^\n]+" headers "${text}")
list(REMOVE_DUPLICATES headers)  # a header that includes others between its own lines has several parts
list(LENGTH headers count)
if(count LESS 300)
  message(FATAL_ERROR "amalgamate: the file has parts of ${count} headers only")
endif()

file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "amalgamate: ${count} headers of pdp make one")
