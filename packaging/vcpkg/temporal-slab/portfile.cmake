# An overlay port: vcpkg install temporal-slab --overlay-ports=packaging/vcpkg, of the tree or the archive that it lies in. It has no
# network address; one of a registry would begin with vcpkg_from_github and the sum of an archive.
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../../..")

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DTSLAB_BUILD_PRELOAD=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/temporal-slab)
vcpkg_fixup_pkgconfig()

# What the component `programs` has without a program.
file(REMOVE_RECURSE
    "${CURRENT_PACKAGES_DIR}/debug/include"
    "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc"
    "${CURRENT_PACKAGES_DIR}/share/man"
)
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
