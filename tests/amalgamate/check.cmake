# Writes pdp as a single header, then compiles and runs examples/quickstart.cpp with it:
#   cmake -D ROOT=. -D WORK_DIR=... -D PYTHON=python3 -D COMPILER=g++ -D OBJCOPY=objcopy -D "INCLUDES=/usr/include/eigen3" -P check.cmake
#
#   - The same headers give the same bytes.
#   - The file includes no header of pdp and asks for no separate compilation.
#   - Two sources that include it can be linked: all definitions are inline. For this the object file is linked twice.
#   - The program trains on two ranks, in threads and in processes.
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

set(includes "")
foreach(dir IN LISTS INCLUDES)
  list(APPEND includes -isystem "${dir}")
endforeach()
set(program "${WORK_DIR}/quickstart")
foreach(command IN ITEMS
        "${COMPILER};-std=c++20;-O1;-Wall;-Wextra;-Wconversion;-Wshadow;-Werror;-I;${WORK_DIR}/first;${includes};-c;${ROOT}/examples/quickstart.cpp;-o;${program}.o"
        "${OBJCOPY};--redefine-sym;main=main_again;${program}.o;${program}_again.o"
        "${COMPILER};${program}.o;${program}_again.o;-o;${program};-lfmt;-lz;-lcrypto")
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(ranks IN ITEMS --threads --ranks)
  execute_process(COMMAND "${program}" ${ranks} 2 WORKING_DIRECTORY "${ROOT}" RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0 OR NOT said MATCHES "test accuracy 0\\.(8[5-9]|9)")
    message(FATAL_ERROR "amalgamate: quickstart ${ranks} 2 ends with ${result}, expected a test accuracy of 0.85 or more:\n${said}")
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "amalgamate: ${count} headers of pdp make one, and examples/quickstart.cpp trains with it")
