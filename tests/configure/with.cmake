# Configures pdp with each kind of value of PDP_WITH_TCP and its siblings, with the given generator, compiler and prefixes:
#   cmake -D SOURCE_DIR=... -D WORK_DIR=... -D GENERATOR=... -D COMPILER=... -D PREFIX_PATH=... -P with.cmake
# CMAKE_DISABLE_FIND_PACKAGE_... hides the library of a component in cases that need it to be missing. The cases share one build folder, as
# most steps of configuring do not change.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")

# configure(<outcome> <text> <option>...): configures pdp with the options. <outcome> is passes or fails; the output must match <text>.
function(configure outcome text)
  set(options PDP_WITH_CUDA=OFF PDP_WITH_NCCL=OFF PDP_WITH_MPI=OFF PDP_WITH_GLOO=AUTO PDP_WITH_ONEDNN=AUTO PDP_WITH_CSV=AUTO PDP_WITH_SHM=AUTO PDP_WITH_TCP=AUTO
              ${ARGN})
  list(TRANSFORM options PREPEND -D)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}"
            -D PDP_BUILD_TESTS=OFF -D PDP_BUILD_EXAMPLES=OFF -D PDP_BUILD_TOOLS=OFF -D PDP_BUILD_BENCH=OFF ${options}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  if(result EQUAL 0)
    set(found passes)
  else()
    set(found fails)
  endif()
  string(REGEX REPLACE "[ \n]+" " " said "${said}")  # CMake breaks the lines of long messages
  if(NOT found STREQUAL outcome OR NOT said MATCHES "${text}")
    message(FATAL_ERROR "with ${ARGN}: expected that configuring ${outcome} and says '${text}'; it ${found}:\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# A component that is OFF is left out, with all components that need it, even if its library is found.
configure(passes "pdp::tcp is left out: PDP_WITH_TCP is OFF.*pdp::hierarchical is left out: it needs pdp::tcp: PDP_WITH_TCP is OFF" PDP_WITH_TCP=OFF)
configure(passes "pdp::shm is left out: PDP_WITH_SHM is OFF.*pdp::hierarchical is left out: it needs pdp::shm" PDP_WITH_SHM=OFF)
configure(passes "pdp::mpi is left out: PDP_WITH_MPI is OFF")

# A component that is ON has its target.
configure(passes "" PDP_WITH_TCP=ON PDP_WITH_SHM=on)
if(said MATCHES "pdp::(launch|shm|tcp|hierarchical) is left out")
  message(FATAL_ERROR "with PDP_WITH_TCP=ON and PDP_WITH_SHM=on a component is left out:\n${said}")
endif()

# If a library is missing, a component that is AUTO is left out, and one that is ON is an error.
foreach(case IN ITEMS "TCP;tcp;Asio;standalone Asio 1.22 or newer .libasio-dev." "ONEDNN;onednn;oneDNN;oneDNN 2.0 or newer .libdnnl-dev."
                      "GLOO;gloo;Gloo;Gloo .libgloo-dev." "CSV;csv;LibCsv;libcsv 3.0 or newer .libcsv-dev." "NPZ;npz;LibZip;libzip 1.7 or newer .libzip-dev." "MPI;mpi;MPI;an MPI library .libopenmpi-dev or libmpich-dev."
                      "CUDA;cuda;CUDAToolkit;the CUDA toolkit 12 or newer" "NCCL;nccl;NCCL;the CUDA toolkit and NCCL 2.27 or newer")
  list(POP_FRONT case upper component package text)
  set(hidden CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
  configure(passes "pdp::${component} is left out: it needs ${text}, which was not found" PDP_WITH_${upper}=AUTO ${hidden})
  configure(fails "PDP_WITH_${upper} is ON, but pdp::${component} cannot be made: it needs ${text}, which was not found. Install that" PDP_WITH_${upper}=ON ${hidden})
  list(TRANSFORM hidden REPLACE "=ON" "=OFF")
  configure(passes "" ${hidden})
endforeach()
configure(fails "PDP_WITH_SHM is ON, but pdp::shm cannot be made: it needs pdp::launch: it needs OpenSSL 1.1.1" PDP_WITH_SHM=ON
          CMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON)
configure(fails "PDP_WITH_TCP is AUTO, ON or OFF; found 'perhaps'" PDP_WITH_TCP=perhaps CMAKE_DISABLE_FIND_PACKAGE_OpenSSL=OFF)

# pdp leaves no variable in the project around it, except those that find_package promises. In the cache it leaves only its own entries and
# those of the packages that it finds.
file(WRITE "${WORK_DIR}/around/CMakeLists.txt" [==[
cmake_minimum_required(VERSION 3.25)
project(around LANGUAGES CXX)
find_package(Threads REQUIRED)  # a module of CMake that sets variables itself
get_cmake_property(before VARIABLES)
get_cmake_property(cache_before CACHE_VARIABLES)
set(expected "")
if(INSTALLED)
  find_package(pdp REQUIRED COMPONENTS tcp OPTIONAL_COMPONENTS telepathy)
  set(expected [[^pdp_]])
else()
  add_subdirectory("${PDP_DIRECTORY}" pdp)
  set(expected [[^$]])
endif()
get_cmake_property(after VARIABLES)
get_cmake_property(cache_after CACHE_VARIABLES)
# The command project sets CMAKE_PROJECT_VERSION in every subdirectory that calls it.
list(REMOVE_ITEM cache_after ${cache_before})
list(FILTER cache_after EXCLUDE REGEX "^(PDP_|pdp_|CMAKE_DISABLE|CMAKE_PROJECT_VERSION|(Asio|oneDNN|LibCsv|LibZip|Gloo|nlohmann_json|Eigen3|fmt|OPENSSL|ZLIB|PKG|FIND_PACKAGE_MESSAGE_DETAILS|pkgcfg|_?__pkg|_OPENSSL|prefix_result)_?|(around|pdp)_)")
list(REMOVE_ITEM after ${before} before cache_before expected ${cache_after})
list(FILTER after EXCLUDE REGEX "${expected}")
get_cmake_property(cached CACHE_VARIABLES)
list(REMOVE_ITEM after ${cached})
list(FILTER after EXCLUDE REGEX "^(PACKAGE_|CMAKE_FIND_PACKAGE_NAME$|OUTPUT_|Asio_|ARG[VNC0-9])")
message(STATUS "left behind: variables [${after}], cache [${cache_after}]")
if(after OR cache_after)
  message(FATAL_ERROR "pdp leaves something behind")
endif()
if(NOT TARGET pdp::tcp OR INSTALLED AND (TARGET nlohmann_json::nlohmann_json OR TARGET gloo OR TARGET oneDNN::oneDNN OR TARGET pdp::shm OR NOT pdp_tcp_FOUND))
  message(FATAL_ERROR "the component tcp is missing, or others were loaded")
endif()
]==])
configure(passes "")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK_DIR}/build" --prefix "${WORK_DIR}/prefix" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(installed IN ITEMS ON OFF)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${WORK_DIR}/around" -B "${WORK_DIR}/around/${installed}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
            "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix;${PREFIX_PATH}" -D CMAKE_BUILD_TYPE=Release -D INSTALLED=${installed} -D "PDP_DIRECTORY=${SOURCE_DIR}"
            -D PDP_WITH_MPI=OFF -D PDP_WITH_CUDA=OFF -D PDP_WITH_NCCL=OFF
    RESULT_VARIABLE result
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  if(NOT result EQUAL 0 OR (installed AND NOT said MATCHES "pdp::telepathy is left out: pdp has no component telepathy; it has "))
    message(FATAL_ERROR "a project around pdp, installed ${installed}:\n${said}")
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "each component is there, left out, or an error, as PDP_WITH_... says")
