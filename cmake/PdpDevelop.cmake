# Compile options of pdp's own tests, examples and benchmarks: warnings, sanitizers, ccache. They do not reach users of pdp.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

add_library(pdp_develop INTERFACE)
target_compile_options(pdp_develop INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>")
# pdp uses no deprecated part of Asio. Its users may.
target_compile_definitions(pdp_develop INTERFACE ASIO_NO_DEPRECATED)
if(PDP_WARNINGS_AS_ERRORS)
  target_compile_options(pdp_develop INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()
if(PDP_NATIVE)
  target_compile_options(pdp_develop INTERFACE -march=native)
endif()

if(PDP_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND sanitize "-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/sanitizer_ignorelist.txt")
  endif()
elseif(PDP_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND sanitize -Wno-tsan)  # Asio has fences, which g++'s sanitizer does not see; pdp orders nothing by them
  endif()
elseif(NOT PDP_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "PDP_SANITIZE is none, address or thread; found '${PDP_SANITIZE}'.")
endif()
if(sanitize)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND sanitize -Wno-maybe-uninitialized)  # false alarms in the standard library's headers, once they are instrumented
  endif()
  target_compile_options(pdp_develop INTERFACE ${sanitize})
  target_link_options(pdp_develop INTERFACE ${sanitize})
endif()
if(PDP_SANITIZE STREQUAL "thread")
  # ThreadSanitizer of g++ 12 and clang 16 aborts at start-up if the kernel randomises addresses by more than 28 bits. setarch -R disables that.
  file(READ /proc/sys/vm/mmap_rnd_bits rnd_bits)
  find_program(PDP_SETARCH setarch)
  mark_as_advanced(PDP_SETARCH)
  if(rnd_bits GREATER 28 AND PDP_SETARCH)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${PDP_SETARCH} -R)
  endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PDP_CCACHE ccache)
  mark_as_advanced(PDP_CCACHE)
  if(PDP_CCACHE)
    # ccache caches compilations with a precompiled header only with these two settings.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${PDP_CCACHE})
  endif()
endif()

# pdp_escape_glob(<path> <out>): escapes the wildcards in a path for file(GLOB), as a folder may be named [b].
function(pdp_escape_glob path out)
  string(REGEX REPLACE "([[*?])" "[\\1]" path "${path}")
  set(${out} "${path}" PARENT_SCOPE)
endfunction()

# pdp_precompile(<name> LINK <target>... HEADERS <header>...): adds a target that precompiles headers for programs that link at least these targets.
function(pdp_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;HEADERS")
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "// Builds a precompiled header.\n")
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  pdp_precompiled_options(${name})
endfunction()
# pdp_use_precompiled(<target> <name>): compiles a program with headers that pdp_precompile precompiles.
function(pdp_use_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  pdp_precompiled_options(${target})
endfunction()
function(pdp_precompiled_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # lets ccache see the contents of the precompiled header
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
