# Finds libzip. Its own configuration is not used, since it needs programs that Debian has in other packages. Defines LibZip::LibZip and
# LibZip_VERSION. Other libraries have a header zip.h, too, so the header must be that of libzip, which includes zipconf.h.
find_path(LibZip_INCLUDE_DIR zip.h)
find_path(LibZip_CONFIG_INCLUDE_DIR zipconf.h HINTS "${LibZip_INCLUDE_DIR}" "${LibZip_INCLUDE_DIR}/../lib/libzip/include")
find_library(LibZip_LIBRARY zip)
mark_as_advanced(LibZip_INCLUDE_DIR LibZip_CONFIG_INCLUDE_DIR LibZip_LIBRARY)

if(LibZip_CONFIG_INCLUDE_DIR)
  file(STRINGS "${LibZip_CONFIG_INCLUDE_DIR}/zipconf.h" LibZip_VERSION REGEX "^#define LIBZIP_VERSION +\"")
  string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" LibZip_VERSION "${LibZip_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibZip
  REQUIRED_VARS LibZip_LIBRARY LibZip_INCLUDE_DIR LibZip_CONFIG_INCLUDE_DIR LibZip_VERSION
  VERSION_VAR LibZip_VERSION)

if(LibZip_FOUND AND NOT TARGET LibZip::LibZip)
  add_library(LibZip::LibZip UNKNOWN IMPORTED)
  set_target_properties(LibZip::LibZip PROPERTIES IMPORTED_LOCATION "${LibZip_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                         "${LibZip_INCLUDE_DIR};${LibZip_CONFIG_INCLUDE_DIR}")
endif()
