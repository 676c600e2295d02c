# Compiles SOURCE for its syntax and checks the outcome. twins.cpp must compile. Any other file must not, and the
# compiler's output must match the regular expression (CMake's kind) of every comment line of one of these forms:
#   // error: regex           both compilers
#   // error(g++): regex      g++ only
#   // error(clang): regex    clang only
# The header PREFIX is compiled to what the compiler can load instead of it, and included in all of them. Compiled from scratch, each takes
# five times as long.
cmake_minimum_required(VERSION 3.25)

set(command "${COMPILER}" ${STANDARD})
foreach(dir IN LISTS INCLUDES)
  if(dir AND NOT dir IN_LIST IMPLICIT_INCLUDES)
    list(APPEND command -isystem "${dir}")
  endif()
endforeach()
foreach(definition IN LISTS DEFINITIONS)
  list(APPEND command "-D${definition}")
endforeach()
if(COMPILER_ID STREQUAL "GNU")
  set(compiler "g[+][+]")
  set(precompiled "${PREFIX}.gch")
  set(use -include "${PREFIX}")
else()
  set(compiler clang)
  set(precompiled "${PREFIX}.pch")
  set(use -include-pch "${PREFIX}.pch")
endif()
if(SOURCE STREQUAL PREFIX)
  execute_process(COMMAND ${command} -x c++-header "${PREFIX}" -o "${precompiled}" COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
execute_process(COMMAND ${command} -fsyntax-only ${use} "${SOURCE}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(SOURCE MATCHES "/twins\\.cpp$")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} must compile and does not:\n${output}")
  endif()
  return()
endif()

file(READ "${SOURCE}" text)
# Semicolons and brackets mean something to CMake's lists, so the lines are cut by hand.
set(expected 0)
while(text MATCHES "(^|\n)// error(\\(${compiler}\\))?: ([^\n]+)(\n.*)")
  set(regex "${CMAKE_MATCH_3}")
  set(text "${CMAKE_MATCH_4}")
  math(EXPR expected "${expected} + 1")
  if(result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiles. It must not, with the text: ${regex}")
  endif()
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "${SOURCE} does not compile, as it should, but no text matches: ${regex}\nThe compiler said:\n${output}")
  endif()
endwhile()
if(expected EQUAL 0)
  message(FATAL_ERROR "${SOURCE} has no line '// error: regex' for this compiler.")
endif()
