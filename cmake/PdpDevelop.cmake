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
