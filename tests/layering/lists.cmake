# Regenerates the lists of headers for the current tree: cmake -D INCLUDE_DIR=include -D LISTS=cmake/PdpHeaders.cmake -P tests/layering/lists.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/scan.cmake")
cmake_path(ABSOLUTE_PATH INCLUDE_DIR NORMALIZE)
cmake_path(ABSOLUTE_PATH LISTS NORMALIZE)

pdp_classify_headers("${INCLUDE_DIR}")
set(text "# The headers of pdp: those that need no optional library, those of each component, and those in CUDA C++. tests/layering checks the lists;
# tests/layering/lists.cmake writes them anew.
")
foreach(list IN LISTS pdp_header_lists)
  list(JOIN pdp_${list} "\n    " headers)
  string(APPEND text "\nset(pdp_${list}\n    ${headers})\n")
endforeach()
file(WRITE "${LISTS}" "${text}")
