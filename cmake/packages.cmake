# packages.cmake -- Debian packages by `cpack -G DEB`: tec (compiler, libraries, headers, manual), tec-runtime (the runtime
# library alone), tec-pool (the tuning daemon with its unit and user).

set(CPACK_PACKAGE_NAME tec)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the authors of tec <tec@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tec runtime pool)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})

set(CPACK_DEBIAN_TEC_PACKAGE_NAME tec)
set(CPACK_DEBIAN_TEC_PACKAGE_SECTION devel)
# The linker is a program that the compiler runs: no library tells dpkg-shlibdeps of it.
set(CPACK_DEBIAN_TEC_PACKAGE_DEPENDS "tec-runtime (= ${PROJECT_VERSION}), lld-19")
# Loaded for record stores on a server alone.
set(CPACK_DEBIAN_TEC_PACKAGE_RECOMMENDS "libpq5")
set(CPACK_COMPONENT_TEC_DESCRIPTION "Compiler and tuner for tensor expressions\n The programs, libraries, headers and manual pages.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tec-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Runtime of compiled tensor programs\n The library that loads and runs modules of tec. It needs nothing but libc.")
set(CPACK_DEBIAN_POOL_PACKAGE_NAME tec-pool)
set(CPACK_DEBIAN_POOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_POOL_PACKAGE_DEPENDS "tec (= ${PROJECT_VERSION}), passwd")
set(CPACK_DEBIAN_POOL_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/packaging/pool/postinst ${CMAKE_SOURCE_DIR}/packaging/pool/prerm ${CMAKE_SOURCE_DIR}/packaging/pool/postrm)
set(CPACK_COMPONENT_POOL_DESCRIPTION "Tuning daemon of tec\n The daemon, its client, its unit for systemd, and the user that it runs as.")
include(CPack)
