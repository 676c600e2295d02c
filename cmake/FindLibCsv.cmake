# Finds libcsv, which has no configuration of its own. Defines LibCsv::LibCsv and LibCsv_VERSION. Other libraries have a header csv.h, too, so
# the header must be that of libcsv.
find_path(LibCsv_INCLUDE_DIR csv.h)
find_library(LibCsv_LIBRARY csv)
mark_as_advanced(LibCsv_INCLUDE_DIR LibCsv_LIBRARY)

if(LibCsv_INCLUDE_DIR)
  file(STRINGS "${LibCsv_INCLUDE_DIR}/csv.h" LibCsv_lines REGEX "^#define CSV_(MAJOR|MINOR|RELEASE) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" LibCsv_VERSION "${LibCsv_lines}")
  list(JOIN LibCsv_VERSION "." LibCsv_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibCsv
  REQUIRED_VARS LibCsv_LIBRARY LibCsv_INCLUDE_DIR LibCsv_VERSION
  VERSION_VAR LibCsv_VERSION)

if(LibCsv_FOUND AND NOT TARGET LibCsv::LibCsv)
  add_library(LibCsv::LibCsv UNKNOWN IMPORTED)
  set_target_properties(LibCsv::LibCsv PROPERTIES IMPORTED_LOCATION "${LibCsv_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LibCsv_INCLUDE_DIR}")
endif()
