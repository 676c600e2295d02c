# Finds standalone Asio (without Boost), which has no CMake configuration of its own. Defines Asio::Asio and Asio_VERSION.
find_path(Asio_INCLUDE_DIR NAMES asio/version.hpp)
mark_as_advanced(Asio_INCLUDE_DIR)

if(Asio_INCLUDE_DIR)
  # ASIO_VERSION 102201 means 1.22.1.
  file(STRINGS "${Asio_INCLUDE_DIR}/asio/version.hpp" Asio_VERSION REGEX "^#define ASIO_VERSION [0-9]+")
  string(REGEX REPLACE "^#define ASIO_VERSION ([0-9]+).*" "\\1" Asio_VERSION "${Asio_VERSION}")
  math(EXPR Asio_VERSION_MAJOR "${Asio_VERSION} / 100000")
  math(EXPR Asio_VERSION_MINOR "${Asio_VERSION} / 100 % 1000")
  math(EXPR Asio_VERSION_PATCH "${Asio_VERSION} % 100")
  set(Asio_VERSION ${Asio_VERSION_MAJOR}.${Asio_VERSION_MINOR}.${Asio_VERSION_PATCH})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Asio
  REQUIRED_VARS Asio_INCLUDE_DIR
  VERSION_VAR Asio_VERSION
  REASON_FAILURE_MESSAGE "Its package is libasio-dev on Debian and Ubuntu. Elsewhere name its folder by -DAsio_INCLUDE_DIR=DIR.")

if(Asio_FOUND AND NOT TARGET Asio::Asio)
  find_package(Threads QUIET)
  add_library(Asio::Asio INTERFACE IMPORTED)
  set_target_properties(
    Asio::Asio
    PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Asio_INCLUDE_DIR}"
               INTERFACE_COMPILE_DEFINITIONS ASIO_STANDALONE
               INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
