# Lists the test cases of the Catch2 executable PROGRAM and writes FILE, which adds them to CTest. Each test of CTest runs CASES of them in
# one process.
# Replaces catch_discover_tests of Catch2. In 2.13 and in 3, that silently loses tests after a name with a lone bracket
# or a semicolon ("a number in [0, 1)"). Test names here are sentences and may contain them.
#   cmake -D PROGRAM=... -D EMULATOR=... -D CATCH_VERSION=... -D SPEC=... -D PREFIX=... -D PROPERTIES=... -D CASES=... -D FILE=...
#         -P discover.cmake
cmake_minimum_required(VERSION 3.25)

if(CATCH_VERSION VERSION_LESS 3)
  set(list --list-test-names-only)
  set(run "--warn NoTests")  # without it, a name that matches nothing passes
else()
  set(list --list-tests --verbosity quiet)
  set(run "")
endif()

execute_process(COMMAND ${EMULATOR} "${PROGRAM}" "${SPEC}" ${list} RESULT_VARIABLE result OUTPUT_VARIABLE names ERROR_VARIABLE error)
# Catch2 2 exits with the number of tests, up to 255.
if(NOT result MATCHES "^[0-9]+$" OR error OR (NOT CATCH_VERSION VERSION_LESS 3 AND NOT result EQUAL 0))
  file(REMOVE "${FILE}")
  message(FATAL_ERROR "Listing the tests of ${PROGRAM} ended with ${result}:\n${error}${names}")
endif()

# Replaces characters that are special in CMake lists before the names become a list.
string(ASCII 1 open)
string(ASCII 2 close)
string(ASCII 3 semicolon)
string(ASCII 4 backslash)
string(REPLACE "[" "${open}" names "${names}")
string(REPLACE "]" "${close}" names "${names}")
string(REPLACE ";" "${semicolon}" names "${names}")
string(REPLACE "\\" "${backslash}" names "${names}")
string(REPLACE "\n" ";" names "${names}")

macro(restore text)
  string(REPLACE "${open}" "[" ${text} "${${text}}")
  string(REPLACE "${close}" "]" ${text} "${${text}}")
  string(REPLACE "${semicolon}" ";" ${text} "${${text}}")
  string(REPLACE "${backslash}" "\\" ${text} "${${text}}")
endmacro()

set(script "")
# add_cases(<name> <spec>): appends to the script a test of CTest that runs the cases that <spec> selects.
function(add_cases name spec)  # a macro would lose backslashes
  string(APPEND script "add_test([==[${name}]==]")
  foreach(argument IN LISTS EMULATOR PROGRAM)
    string(APPEND script " [==[${argument}]==]")
  endforeach()
  string(APPEND script " [==[${spec}]==] ${run})\n")
  string(APPEND script "set_tests_properties([==[${name}]==] PROPERTIES")
  foreach(property IN LISTS PROPERTIES)
    string(APPEND script " [==[${property}]==]")
  endforeach()
  string(APPEND script ")\n")
  set(script "${script}" PARENT_SCOPE)
endfunction()

set(cases 0)
set(specs "")
foreach(name IN LISTS names)
  if(name STREQUAL "")
    continue()
  endif()
  # Escapes characters that are special in Catch2's test specifications.
  set(spec "${name}")
  foreach(character "${backslash}" "," "${open}" "${close}" "\"" "~")
    string(REPLACE "${character}" "${backslash}${character}" spec "${spec}")
  endforeach()
  if(spec MATCHES "^-")
    string(PREPEND spec "${backslash}")  # else Catch2 takes it for a flag
  endif()
  restore(name)
  restore(spec)
  if(CASES EQUAL 1)
    add_cases("${PREFIX}: ${name}" "${spec}")
    continue()
  endif()
  math(EXPR cases "${cases} + 1")
  string(APPEND specs ",${spec}")
  math(EXPR left "${cases} % ${CASES}")
  if(left EQUAL 0)
    string(SUBSTRING "${specs}" 1 -1 specs)
    math(EXPR first "${cases} - ${CASES} + 1")
    add_cases("${PREFIX}: cases ${first} to ${cases}" "${specs}")
    set(specs "")
  endif()
endforeach()
if(specs)
  string(SUBSTRING "${specs}" 1 -1 specs)
  math(EXPR first "${cases} - ${cases} % ${CASES} + 1")
  add_cases("${PREFIX}: cases ${first} to ${cases}" "${specs}")
endif()
file(WRITE "${FILE}" "${script}")
