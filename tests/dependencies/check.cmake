# Checks that docs/dependencies.md lists the Debian packages that cmake/setup.sh installs, with the same oldest versions:
#   cmake -D ROOT=. -P tests/dependencies/check.cmake
#
#   - Each package of setup.sh is in the column "Debian package" of a table, and each package there is in setup.sh.
#   - If setup.sh asks for "NAME VERSION or newer", the row of its package has that version.
cmake_minimum_required(VERSION 3.25)

set(faults "")
macro(fault text)
  string(APPEND faults "  ${text}\n")
endmacro()

# The rows of the page: versions_P for each package P.
set(listed "")
file(STRINGS "${ROOT}/docs/dependencies.md" rows REGEX "^\\| .* \\|$")
foreach(row IN LISTS rows)
  if(NOT row MATCHES "^\\| [^|]+ \\| ([^|]+) \\| [^|]+ \\| ([^|]+) \\| ")
    continue()  # a table of two or three columns
  endif()
  set(version "${CMAKE_MATCH_1}")
  string(REPLACE ", " ";" packages "${CMAKE_MATCH_2}")
  list(REMOVE_ITEM packages "Debian package" none)
  foreach(package IN LISTS packages)
    list(APPEND listed "${package}")
    set(version_${package} "${version}")
  endforeach()
endforeach()

set(installed "")
file(STRINGS "${ROOT}/cmake/setup.sh" lines REGEX "^ *need [a-z0-9+-]+ \"")
foreach(line IN LISTS lines)
  string(REGEX MATCH "need ([a-z0-9+-]+) \"([^\"]*)\"" unused "${line}")
  set(package "${CMAKE_MATCH_1}")
  set(description "${CMAKE_MATCH_2}")
  list(APPEND installed "${package}")
  if(NOT package IN_LIST listed)
    fault("docs/dependencies.md has no row with ${package}, which cmake/setup.sh installs")
  elseif(description MATCHES " ([0-9.]+) or newer$" AND NOT package STREQUAL "g++")
    set(version "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "\\.0$" "" short "${version}")
    string(REPLACE "." "[.]" pattern "(${version}|${short})")
    if(NOT version_${package} MATCHES "(^|[^0-9.])${pattern}($|[^0-9.])")
      fault("cmake/setup.sh asks for ${package} ${version}; docs/dependencies.md has the version ${version_${package}}")
    endif()
  endif()
endforeach()
foreach(package IN LISTS listed)
  if(NOT package IN_LIST installed)
    fault("docs/dependencies.md lists ${package}, which cmake/setup.sh does not install")
  endif()
endforeach()

list(LENGTH installed count)
if(faults OR count EQUAL 0)
  message(FATAL_ERROR "dependencies: ${count} packages in cmake/setup.sh\n${faults}")
endif()
message(STATUS "dependencies: docs/dependencies.md lists the ${count} packages of cmake/setup.sh")
