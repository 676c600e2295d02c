# Nothing is compiled here: the targets of pdp compile its sources in the project that links them.
set(VCPKG_BUILD_TYPE release)

vcpkg_from_github(
    OUT_SOURCE_PATH SOURCE_PATH
    REPO "@REPOSITORY@"
    REF "v${VERSION}"
    SHA512 @SHA512@
    HEAD_REF main
)

vcpkg_check_features(
    OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        csv    PDP_WITH_CSV
        cuda   PDP_WITH_CUDA
        gloo   PDP_WITH_GLOO
        mpi    PDP_WITH_MPI
        nccl   PDP_WITH_NCCL
        npz    PDP_WITH_NPZ
        onednn PDP_WITH_ONEDNN
        shm    PDP_WITH_SHM
        tcp    PDP_WITH_TCP
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DPDP_BUILD_BENCH=OFF
        -DPDP_BUILD_EXAMPLES=OFF
        -DPDP_BUILD_TESTS=OFF
        -DPDP_BUILD_TOOLS=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/pdp)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/share/doc")

file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
