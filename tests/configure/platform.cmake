# Configures pdp for systems and with compilers that it does not support:
#   cmake -D SOURCE_DIR=... -D WORK_DIR=... -D GENERATOR=... -D COMPILER=... -D COMPILER_ID=... -D PROCESSOR=... -P platform.cmake
# Each case must fail with a sentence that says what to do, in pdp's own build and in find_package of an installed pdp.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")

# The files of an installed pdp that find_package reads before it finds libraries.
set(package "${WORK_DIR}/package")
file(COPY "${SOURCE_DIR}/cmake/PdpComponents.cmake" DESTINATION "${package}")
file(READ "${SOURCE_DIR}/cmake/pdp-config.cmake.in" text)
string(REPLACE "@PACKAGE_INIT@" "" text "${text}")
string(REPLACE "@PACKAGE_PDP_SOURCE_DIR@" "${package}" text "${text}")
file(WRITE "${package}/pdp-config.cmake" "${text}")
file(WRITE "${WORK_DIR}/project/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(around LANGUAGES CXX)\nfind_package(pdp REQUIRED)\n")

# refuses(<text> <option>...): configures pdp, and the project, with these options. Both must fail and say the text.
function(refuses text)
  foreach(source IN ITEMS "${SOURCE_DIR}" "${WORK_DIR}/project")
    file(REMOVE_RECURSE "${WORK_DIR}/build")
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -S "${source}" -B "${WORK_DIR}/build" -G "${GENERATOR}" "-Dpdp_DIR=${package}" -D PDP_BUILD_TESTS=OFF
              # No program can be linked for another system.
              -D CMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY ${ARGN}
      RESULT_VARIABLE result
      OUTPUT_VARIABLE said
      ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")  # CMake breaks the lines of long messages
    string(FIND "${said}" "${text}" found)
    if(result EQUAL 0 OR found EQUAL -1)
      message(FATAL_ERROR "with ${ARGN}: expected that ${source} is refused with '${text}'; cmake ended with ${result}:\n${said}")
    endif()
  endforeach()
endfunction()

refuses("pdp runs on Linux (x86-64 and aarch64); this build is for FreeBSD. On macOS or Windows, use a Linux container" "-DCMAKE_CXX_COMPILER=${COMPILER}"
        -D CMAKE_SYSTEM_NAME=FreeBSD)
refuses("pdp runs on Linux (x86-64 and aarch64); this build is for Windows. On macOS or Windows, use a Linux container" "-DCMAKE_CXX_COMPILER=${COMPILER}"
        -D CMAKE_SYSTEM_NAME=Windows)
if(PROCESSOR STREQUAL "x86_64")
  refuses("pdp needs a 64-bit processor; this build is for 32 bits. Compile for x86-64 or aarch64" "-DCMAKE_CXX_COMPILER=${COMPILER}" -D CMAKE_CXX_FLAGS=-m32)
endif()

# An old compiler: one that claims to be older than it is.
if(COMPILER_ID STREQUAL "GNU")
  set(macro __GNUC__)
  set(old 11)
  set(text "pdp needs g++ 12 or newer; ${WORK_DIR}/old is 11.")
else()
  set(macro __clang_major__)
  set(old 15)
  set(text "pdp needs clang 16 or newer; ${WORK_DIR}/old is 15.")
endif()
file(WRITE "${WORK_DIR}/old" "#!/bin/sh\nexec '${COMPILER}' -U${macro} -D${macro}=${old} \"$@\"\n")
file(CHMOD "${WORK_DIR}/old" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
refuses("${text}" "-DCMAKE_CXX_COMPILER=${WORK_DIR}/old")

file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "other systems, 32 bits and old compilers are refused")
