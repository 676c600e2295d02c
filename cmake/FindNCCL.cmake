# Finds NVIDIA's NCCL: its header and library, in the CUDA toolkit or elsewhere. Also needs the CUDA toolkit.
#
#   NCCL::NCCL      the library, with the CUDA runtime
#   NCCL_VERSION    its version, from nccl.h
#
# NCCL_ROOT names a further folder to search.
include(FindPackageHandleStandardArgs)

find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" lines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  list(JOIN numbers "." NCCL_VERSION)
endif()

find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR CUDAToolkit_FOUND VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  # nccl.h includes headers of the toolkit, and pdp calls the CUDA runtime. The driver library is not linked, as the program would then not
  # start without a driver. It is loaded at run time.
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
  target_link_libraries(NCCL::NCCL INTERFACE CUDA::cudart)
endif()
