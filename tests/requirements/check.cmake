# Checks that a program that cannot be built gets one sentence that says what to do:
#   cmake -D ROOT=. -D WORK_DIR=... -D COMPILER=g++ -D COMPILER_ID=GNU -D PROCESSOR=x86_64 -D "INCLUDES=..." -P check.cmake
#
#   - Another system, 32 bits, an old compiler and C++17: core/requirements.hpp says so, and ends the compilation.
#   - A library is missing: the first header that needs it says so.
#   - Sources with different versions of pdp: the linker prints a symbol whose name says so. Sources with the same version are linked.
#
# INCLUDES are the folders of other libraries.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
# The folders that the compiler searches itself.
file(WRITE "${WORK_DIR}/empty.cpp" "")
execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${COMPILER}" -E -v "${WORK_DIR}/empty.cpp" OUTPUT_QUIET ERROR_VARIABLE said)
string(REGEX REPLACE ".*#include <...> search starts here:\n(.*)\nEnd of search list.*" "\\1" said "${said}")
string(REGEX MATCHALL "[^ \n]+" searched "${said}")
set(IMPLICIT_INCLUDES "")
foreach(dir IN LISTS searched)
  file(REAL_PATH "${dir}" dir)
  list(APPEND IMPLICIT_INCLUDES "${dir}")
endforeach()
set(foreign "")
foreach(dir IN LISTS INCLUDES)
  if(NOT dir IN_LIST IMPLICIT_INCLUDES)
    list(APPEND foreign -isystem "${dir}")
  endif()
endforeach()

# compile(<header> <option>...): compiles a source that includes the header. Sets said and errors, the number of errors.
function(compile header)
  file(WRITE "${WORK_DIR}/source.cpp" "#include <${header}>\n")
  execute_process(COMMAND "${COMPILER}" -fsyntax-only -I "${ROOT}/include" ${ARGN} "${WORK_DIR}/source.cpp" OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX MATCHALL "error:" errors "${said}")
  list(LENGTH errors errors)
  set(said "${said}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# stops(<text> <header> <option>...): checks that the compiler prints the text and one more error, the header that ends the compilation.
function(stops text header)
  compile("${header}" ${ARGN})
  string(FIND "${said}" "${text}" found)
  if(found EQUAL -1 OR NOT errors EQUAL 2)
    message(FATAL_ERROR "requirements: <${header}> with ${ARGN} must stop with '${text}' and one more error. The compiler said:\n${said}")
  endif()
endfunction()

# ---- System, compiler and language --------------------------------------------------------------------------------

set(requirements pdp/core/requirements.hpp)
compile("${requirements}" -std=c++20)
if(NOT said STREQUAL "")
  message(FATAL_ERROR "requirements: <${requirements}> must compile. The compiler said:\n${said}")
endif()
stops("pdp runs on Linux only" "${requirements}" -std=c++20 -U__linux__)
if(PROCESSOR STREQUAL "x86_64")
  stops("pdp needs a 64-bit processor" "${requirements}" -std=c++20 -m32)
endif()
if(COMPILER_ID STREQUAL "GNU")
  stops("pdp needs g++ 12 or newer" "${requirements}" -std=c++20 -U__GNUC__ -D__GNUC__=11)
else()
  stops("pdp needs clang 16 or newer" "${requirements}" -std=c++20 -U__clang_major__ -D__clang_major__=15)
endif()
foreach(header IN ITEMS pdp/pdp.hpp pdp/comm/shm.hpp pdp/comm/tcp.hpp pdp/comm/hierarchical.hpp pdp/comm/mpi.hpp pdp/comm/gloo.hpp pdp/rpc/run.hpp
                        pdp/checkpoint/safetensors.hpp pdp/data/safetensors.hpp pdp/data/csv.hpp pdp/data/npz.hpp pdp/cpu/onednn.hpp pdp/cuda/device.hpp pdp/comm/nccl.hpp)
  stops("pdp needs C++20 or newer" "${header}" ${foreign} -std=c++17)
endforeach()

# ---- Missing libraries --------------------------------------------------------------------------------------------

set(files_of_Eigen Eigen eigen3)
set(files_of_zlib zlib.h)
set(files_of_fmt fmt)
set(files_of_JSON nlohmann)
set(files_of_libcsv csv.h)
set(files_of_libzip zip.h)
set(files_of_OpenSSL openssl)
set(files_of_Asio asio asio.hpp)
set(files_of_Gloo gloo)
set(files_of_MPI mpi.h)
set(files_of_oneDNN oneapi)
set(files_of_CUDA cuda_runtime_api.h)
set(files_of_NCCL nccl.h)

# hide(<library>): sets folders to options that name the compiler's folders, and those of INCLUDES, without the headers of the library. A
# folder that has some is replaced by a folder of links to the rest.
function(hide library)
  set(options "")
  foreach(dir IN LISTS INCLUDES IMPLICIT_INCLUDES)
    set(has_some FALSE)
    foreach(name IN LISTS files_of_${library})
      if(EXISTS "${dir}/${name}")
        set(has_some TRUE)
      endif()
    endforeach()
    if(has_some)
      string(MAKE_C_IDENTIFIER "${library}${dir}" links)
      set(links "${WORK_DIR}/${links}")
      file(MAKE_DIRECTORY "${links}")
      file(GLOB entries RELATIVE "${dir}" "${dir}/*")
      list(REMOVE_ITEM entries ${files_of_${library}})
      foreach(entry IN LISTS entries)
        file(CREATE_LINK "${dir}/${entry}" "${links}/${entry}" SYMBOLIC)
      endforeach()
      set(dir "${links}")
    endif()
    list(APPEND options -isystem "${dir}")
  endforeach()
  set(folders "${options}" PARENT_SCOPE)
endfunction()

foreach(case IN ITEMS
        "pdp/pdp.hpp;Eigen;pdp needs Eigen 3.4 or newer (Debian: libeigen3-dev): add -I/usr/include/eigen3"
        "pdp/cpu/gemm.hpp;Eigen;pdp needs Eigen 3.4 or newer"
        "pdp/pdp.hpp;zlib;pdp needs zlib (Debian: zlib1g-dev)"
        "pdp/pdp.hpp;fmt;pdp needs fmt 9 or newer (Debian: libfmt-dev)"
        "pdp/train/print.hpp;fmt;pdp needs fmt 9 or newer (Debian: libfmt-dev)"
        "pdp/rpc/timeline.hpp;fmt;pdp needs fmt 9 or newer (Debian: libfmt-dev)"
        "pdp/data/safetensors.hpp;JSON;safetensors files need JSON for Modern C++ (Debian: nlohmann-json3-dev)"
        "pdp/data/csv.hpp;libcsv;CSV files need libcsv 3 (Debian: libcsv-dev)"
        "pdp/data/npz.hpp;libzip;.npz files need libzip 1.7 (Debian: libzip-dev)"
        "pdp/comm/shm.hpp;OpenSSL;ranks that are processes need OpenSSL's libcrypto (Debian: libssl-dev)"
        "pdp/comm/tcp.hpp;Asio;pdp over TCP needs standalone Asio (Debian: libasio-dev)"
        "pdp/comm/hierarchical.hpp;Asio;pdp over TCP needs standalone Asio (Debian: libasio-dev)"
        "pdp/comm/gloo.hpp;Gloo;pdp over Gloo needs Gloo (Debian: libgloo-dev)"
        "pdp/comm/mpi.hpp;MPI;pdp over MPI needs an MPI library (Debian: libopenmpi-dev or libmpich-dev)"
        "pdp/cpu/onednn.hpp;oneDNN;products by oneDNN need oneDNN 2 or newer (Debian: libdnnl-dev)"
        "pdp/cuda/detail/library.hpp;CUDA;pdp on GPUs needs the CUDA toolkit, 12 or newer"
        "pdp/comm/nccl/library.hpp;NCCL;pdp over NCCL needs NVIDIA's NCCL and the CUDA toolkit")
  list(POP_FRONT case header library text)
  hide(${library})
  compile("${header}" -std=c++20 -nostdinc ${folders})
  string(REGEX MATCH "error: [^\n]*" first "${said}")
  string(FIND "${first}" "${text}" found)
  if(found EQUAL -1 OR NOT errors EQUAL 2)
    message(FATAL_ERROR "requirements: <${header}> without ${library} must stop with '${text}' and one more error. The compiler said:\n${said}")
  endif()
endforeach()

# ---- Two versions -------------------------------------------------------------------------------------------------

foreach(version IN ITEMS 0.1.0 0.1.1)
  foreach(name IN ITEMS requirements one_version version)
    file(READ "${ROOT}/include/pdp/core/${name}.hpp" text)
    string(REGEX REPLACE "version\\[\\] = \"[^\"]*\"" "version[] = \"${version}\"" text "${text}")
    file(WRITE "${WORK_DIR}/${version}/pdp/core/${name}.hpp" "${text}")
  endforeach()
endforeach()
file(WRITE "${WORK_DIR}/first.cpp" "#include <pdp/core/requirements.hpp>\nint main() { return 0; }\n")
file(WRITE "${WORK_DIR}/second.cpp" "#include <pdp/core/requirements.hpp>\n")
foreach(options IN ITEMS -O0 -O2 -flto)
  foreach(version IN ITEMS 0.1.0 0.1.1)
    foreach(source IN ITEMS first second)
      execute_process(COMMAND "${COMPILER}" -std=c++20 ${options} -I "${WORK_DIR}/${version}" -c "${WORK_DIR}/${source}.cpp" -o "${WORK_DIR}/${version}/${source}.o"
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    execute_process(
      COMMAND "${COMPILER}" ${options} "${WORK_DIR}/0.1.0/first.o" "${WORK_DIR}/${version}/second.o" -o "${WORK_DIR}/program"
      RESULT_VARIABLE result
      OUTPUT_VARIABLE said
      ERROR_VARIABLE said)
    set(expected 0)
    if(NOT version STREQUAL "0.1.0" AND NOT options STREQUAL "-flto")
      set(expected "^[1-9]")
    endif()
    if(NOT result MATCHES "${expected}" OR (result AND NOT said MATCHES "two_versions_of_pdp_in_one_program__compile_all_sources_with_the_same"))
      message(FATAL_ERROR "requirements: with ${options}, the linker ends with ${result} for the versions 0.1.0 and ${version}:\n${said}")
    endif()
  endforeach()
endforeach()

file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "requirements: each missing requirement is named in one sentence")
