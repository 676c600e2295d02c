# Install rules: headers, one targets file per component, package configuration and find modules, pkg-config files, sources, data, licence.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(PDP_SOURCE_DIR "${CMAKE_INSTALL_DATADIR}/pdp/src")
set(pdp_cmake_dir "${CMAKE_INSTALL_DATADIR}/cmake/pdp")

foreach(target IN LISTS pdp_targets)
  get_target_property(sets ${target} INTERFACE_HEADER_SETS)
  set(file_sets "")
  foreach(set IN LISTS sets)
    list(APPEND file_sets FILE_SET ${set} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endforeach()
  string(REPLACE "_" "-" export ${target})
  install(TARGETS ${target} EXPORT ${export} ${file_sets})
  install(EXPORT ${export} NAMESPACE pdp:: FILE ${export}-targets.cmake DESTINATION "${pdp_cmake_dir}")
endforeach()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/pdp-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/pdp-config.cmake"
  INSTALL_DESTINATION "${pdp_cmake_dir}"
  PATH_VARS PDP_SOURCE_DIR
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor release may break its users.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/pdp-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/pdp-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/pdp-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/PdpComponents.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindAsio.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindNCCL.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/FindoneDNN.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindLibCsv.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindLibZip.cmake"
  DESTINATION "${pdp_cmake_dir}")
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/src/" DESTINATION "${PDP_SOURCE_DIR}")
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/examples/data/mnist" DESTINATION "${CMAKE_INSTALL_DATADIR}/pdp")
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
include(PdpPkgConfig)
