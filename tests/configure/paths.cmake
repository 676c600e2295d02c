# Configures and installs copies of pdp in folders whose names contain characters that are special to CMake:
#   cmake -D SOURCE_DIR=... -D WORK_DIR=... -D GENERATOR=... -D COMPILER=... -D PREFIX_PATH=... -P paths.cmake
# Each copy must have the same targets and headers as a copy in a folder with a plain name, or fail with an explanation.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")

macro(configure name)
  set(copy "${WORK_DIR}/${name}/pdp")
  file(COPY "${SOURCE_DIR}/" DESTINATION "${copy}" PATTERN build EXCLUDE PATTERN .git EXCLUDE)
  if(NOT "${ARGN}" STREQUAL "")
    file(REMOVE_RECURSE ${ARGN})
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${copy}" -B "${copy}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}"
            -D PDP_WITH_CUDA=OFF -D PDP_BUILD_TESTS=ON -D PDP_BUILD_EXAMPLES=ON -D PDP_BUILD_BENCH=ON
    RESULT_VARIABLE result
    OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
endmacro()

function(look name targets headers)
  configure("${name}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "pdp cannot be configured in ${copy}:\n${said}")
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${copy}/build" --target help OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(test_|mnist_|pdp_|roofline)[a-z_]*:" all "${all}")  # not the targets whose names are paths
  set(${targets} "${all}" PARENT_SCOPE)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${copy}/build" --prefix "${copy}/prefix" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND find "${copy}/prefix" -name "*.hpp" OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "pdp/[a-z_/]*\\.hpp\n" all "${all}")
  list(LENGTH all count)
  set(${headers} "${count}" PARENT_SCOPE)
endfunction()

function(refuses text name)
  configure("${name}" ${ARGN})
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  if(result EQUAL 0 OR NOT said MATCHES "${text}")
    message(FATAL_ERROR "expected that pdp is refused in ${copy} with '${text}'; cmake ended with ${result}:\n${said}")
  endif()
endfunction()

look(plain targets headers)
if(NOT targets MATCHES "test_core:" OR NOT targets MATCHES "mnist_ddp:" OR NOT targets MATCHES "roofline:" OR NOT headers GREATER 200)
  message(FATAL_ERROR "pdp in a folder with a plain name has ${headers} headers and the targets ${targets}")
endif()
foreach(name IN ITEMS "[b]" "a b+(c)" "*?'&")
  look("${name}" found_targets found_headers)
  if(NOT found_targets STREQUAL targets OR NOT found_headers EQUAL headers)
    message(FATAL_ERROR "pdp in ${name} has ${found_headers} headers instead of ${headers}, and the targets ${found_targets} instead of ${targets}")
  endif()
endforeach()

# Links a program of another project with a libcrypto in such a folder. To save time, pdp's sources are emptied first, since the program uses
# no code of pdp.
file(GLOB_RECURSE sources "${WORK_DIR}/plain/pdp/src/*.cpp" "${WORK_DIR}/plain/pdp/prefix/*.cpp")
if(NOT sources)
  message(FATAL_ERROR "there are no sources of pdp in ${WORK_DIR}/plain/pdp")
endif()
foreach(source IN LISTS sources)
  file(WRITE "${source}" "")
endforeach()
execute_process(COMMAND "${COMPILER}" -print-file-name=libcrypto.so OUTPUT_VARIABLE crypto OUTPUT_STRIP_TRAILING_WHITESPACE)
if(IS_ABSOLUTE "${crypto}")
  set(project "${WORK_DIR}/program")
  file(WRITE "${project}/main.cpp" "extern \"C\" unsigned long OpenSSL_version_num();\nint main() { return OpenSSL_version_num() == 0; }\n")
  file(WRITE "${project}/CMakeLists.txt"
       "cmake_minimum_required(VERSION 3.25)\nproject(program LANGUAGES CXX)\n"
       "if(PDP_DIRECTORY)\n  add_subdirectory(\"\${PDP_DIRECTORY}\" pdp)\nelse()\n  find_package(pdp REQUIRED COMPONENTS shm)\nendif()\n"
       "add_executable(program main.cpp)\ntarget_link_libraries(program PRIVATE pdp::pdp)\n")
  foreach(name IN ITEMS plain "a b" "a'(b)")  # no comma, since CMake passes the path by -Wl,-rpath, which splits it at commas
    set(library "${WORK_DIR}/crypto/${name}/libcrypto.so")
    file(MAKE_DIRECTORY "${WORK_DIR}/crypto/${name}")
    file(CREATE_LINK "${crypto}" "${library}" SYMBOLIC)
    foreach(build IN ITEMS package subdirectory)  # the program is compiled once for each, and linked again for each name
      set(pdp "")
      if(build STREQUAL "subdirectory")
        set(pdp "-DPDP_DIRECTORY=${WORK_DIR}/plain/pdp" -D PDP_WITH_CUDA=OFF)
      endif()
      execute_process(
        COMMAND
          "${CMAKE_COMMAND}" -S "${project}" -B "${project}/${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
          "-DCMAKE_PREFIX_PATH=${WORK_DIR}/plain/pdp/prefix;${PREFIX_PATH}" -D CMAKE_BUILD_TYPE=Debug "-DOPENSSL_CRYPTO_LIBRARY=${library}" ${pdp}
        OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
      execute_process(
        COMMAND "${CMAKE_COMMAND}" --build "${project}/${build}" --target program
        RESULT_VARIABLE result
        OUTPUT_VARIABLE said
        ERROR_VARIABLE said)
      execute_process(COMMAND "${project}/${build}/program" RESULT_VARIABLE ran)
      if(NOT result EQUAL 0 OR NOT ran EQUAL 0)
        message(FATAL_ERROR "a program cannot be linked with ${library}, or ends with ${ran}:\n${said}")
      endif()
    endforeach()
  endforeach()
endif()

refuses("Rename the folder" "open[")
refuses("pdp has found no header in" empty "${WORK_DIR}/empty/pdp/include/pdp")
file(REMOVE_RECURSE "${WORK_DIR}")
message(STATUS "in folders with odd names, pdp has the same targets and headers")
