# Configures pdp without any optional library, with the given generator, compiler and prefixes:
#   cmake -D SOURCE_DIR=... -D WORK_DIR=... -D GENERATOR=... -D COMPILER=... -D PREFIX_PATH=... -P without.cmake
# Every target that lacks its library must be left out.
cmake_minimum_required(VERSION 3.25)

foreach(package Asio OpenSSL nlohmann_json Gloo CUDAToolkit NCCL oneDNN LibCsv LibZip)
  list(APPEND hidden -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
# Lets CMake search for MPI and not find it. It then defines a target that it would not define without the search.
list(APPEND hidden -D MPI_SKIP_COMPILER_WRAPPER=ON -D MPI_SKIP_GUESSING=ON)
set(ENV{PKG_CONFIG_LIBDIR} "${WORK_DIR}")
set(ENV{PKG_CONFIG_PATH} "")

file(REMOVE_RECURSE "${WORK_DIR}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${WORK_DIR}" -G "${GENERATOR}" ${hidden} -D "CMAKE_CXX_COMPILER=${COMPILER}"
          -D "CMAKE_PREFIX_PATH=${PREFIX_PATH}" -D PDP_BUILD_TESTS=OFF -D PDP_BUILD_EXAMPLES=OFF
          -D PDP_BUILD_TOOLS=OFF -D PDP_BUILD_BENCH=OFF
  RESULT_VARIABLE result
  OUTPUT_VARIABLE said
  ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "pdp cannot be configured without what is optional:\n${said}")
endif()
foreach(target launch shm tcp safetensors csv npz mpi gloo nccl cuda onednn)
  if(NOT said MATCHES "pdp::${target} is left out: ")
    message(FATAL_ERROR "pdp::${target} is not left out, though what it needs is not there:\n${said}")
  endif()
endforeach()
message(STATUS "without what is optional, its targets are left out")
