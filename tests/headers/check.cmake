# Compiles all HEADERS (paths below INCLUDE_DIR, a list) as one source, syntax only, as a user's program may include them. The headers of
# other libraries and the macros of macros.hpp come first. More warnings than in pdp's own build are enabled, and all are errors.
# PDP_SEPARATE_... is not defined, so the definitions are compiled, too. SOURCES lists the headers that hold them. USE is a header that
# instantiates common templates. Further arguments: COMPILER, COMPILER_ID, STANDARD, INCLUDES, IMPLICIT_INCLUDES and DEFINITIONS of a target
# that links pdp, and WORK_DIR, the folder of the source.
cmake_minimum_required(VERSION 3.25)

set(both
    -Wall
    -Wextra
    -Wpedantic
    -Wcast-align
    -Wcast-qual
    -Wconversion
    -Wdouble-promotion
    -Wextra-semi
    -Wformat=2
    -Wimplicit-fallthrough
    -Wnon-virtual-dtor
    -Wnull-dereference
    -Wold-style-cast
    -Woverloaded-virtual
    -Wshadow
    -Wsign-conversion
    -Wundef
    -Wzero-as-null-pointer-constant)
set(warnings_GNU
    ${both}
    -Wduplicated-branches
    -Wduplicated-cond
    -Wlogical-op
    -Wmissing-declarations
    -Wredundant-decls
    -Wsuggest-override
    -Wuseless-cast)
set(warnings_Clang
    ${both}
    -Wcomma
    -Wextra-semi-stmt
    -Wmissing-prototypes
    -Wrange-loop-analysis
    -Wreserved-identifier
    -Wunreachable-code)

set(command "${COMPILER}" ${STANDARD} -fsyntax-only -I "${INCLUDE_DIR}")
foreach(dir IN LISTS INCLUDES)
  if(dir AND NOT dir STREQUAL INCLUDE_DIR AND NOT dir IN_LIST IMPLICIT_INCLUDES)
    list(APPEND command -isystem "${dir}")
  endif()
endforeach()
list(FILTER DEFINITIONS EXCLUDE REGEX "^PDP_SEPARATE_")
foreach(definition IN LISTS DEFINITIONS)
  list(APPEND command "-D${definition}")
endforeach()

set(foreign "")
set(own "")
set(count 0)
foreach(header IN LISTS HEADERS SOURCES)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${INCLUDE_DIR}")
  if(NOT header MATCHES "/source\\.hpp$")
    string(APPEND own "#include <${header}>\n")
    math(EXPR count "${count} + 1")
  endif()
  file(STRINGS "${INCLUDE_DIR}/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*<[^ ]+>")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "<pdp/")
      list(APPEND foreign "${line}")
    endif()
  endforeach()
endforeach()
if(count EQUAL 0)
  message(FATAL_ERROR "headers: no header to compile")
endif()
list(REMOVE_DUPLICATES foreign)
list(JOIN foreign "\n" foreign)

set(text "${foreign}\n#include \"${CMAKE_CURRENT_LIST_DIR}/macros.hpp\"\n${own}")
if(USE)
  string(APPEND text "#include \"${USE}\"\n")
endif()
list(APPEND command ${warnings_${COMPILER_ID}} -Werror)
set(source "${WORK_DIR}/headers.cpp")
file(WRITE "${source}" "${text}")
execute_process(COMMAND ${command} "${source}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  list(JOIN command " " command)
  message(FATAL_ERROR "headers: ${count} headers do not compile:\n${output}\nThe command was: ${command} ${source}")
endif()
message(STATUS "headers: ${count} headers compile")
