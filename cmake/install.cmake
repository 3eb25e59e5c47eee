# install.cmake -- what `cmake --install` gives: programs, libraries with their SONAME, headers, pkg-config files, a CMake
# package with the targets tec::tec, tec::runtime and their static forms, and manual pages.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(libtec PROPERTIES EXPORT_NAME tec)
set_target_properties(libtec_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(libtec_rpc PROPERTIES EXPORT_NAME rpc)
# Components are the packages of cmake/packages.cmake.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tec)
install(TARGETS libtec libtec_rpc EXPORT tecTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS libtec_runtime EXPORT tecTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT tec
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS libtec_static libtec_runtime_static libtec_rpc_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tec tec_runner RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tvmtune rpc_tracker rpc_server RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT pool)
install(FILES packaging/tvmtune.service packaging/rpc_tracker.service packaging/rpc_server.service
    DESTINATION lib/systemd/system COMPONENT pool)
install(DIRECTORY include/tec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(TEC_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tec)
install(EXPORT tecTargets NAMESPACE tec:: DESTINATION ${TEC_PACKAGE_DIR})
configure_package_config_file(cmake/tecConfig.cmake.in ${CMAKE_BINARY_DIR}/tecConfig.cmake
    INSTALL_DESTINATION ${TEC_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tecConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tecConfig.cmake ${CMAKE_BINARY_DIR}/tecConfigVersion.cmake DESTINATION ${TEC_PACKAGE_DIR})

# The files are finished when they are installed, because only then the prefix is known.
function(tec_install_pkgconfig name description private)
    set(PC_NAME ${name})
    set(PC_DESCRIPTION "${description}")
    set(PC_PRIVATE "${private}")
    configure_file(cmake/tec.pc.in ${CMAKE_BINARY_DIR}/${name}.pc.in @ONLY)
    install(CODE "
        get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
        configure_file(\"${CMAKE_BINARY_DIR}/${name}.pc.in\" \"${CMAKE_BINARY_DIR}/${name}.pc\")
        file(INSTALL \"${CMAKE_BINARY_DIR}/${name}.pc\" DESTINATION \"\${prefix}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")")
endfunction()

tec_install_pkgconfig(tec "Compiler for tensor expressions"
    "-L${LLVM_LIBDIR} -lLLVM-19 -lsqlite3 -lcjson -lprotobuf-c -lxgboost -lsodium -lm")
tec_install_pkgconfig(tec_runtime "Runtime of compiled tensor programs" "")
tec_install_pkgconfig(tec_rpc "Clients of servers of devices; has the runtime inside" "-lsodium -lm")
