# What `cmake --install` puts down: library, headers, CMake package, pkg-config file.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cinta)

install(TARGETS cinta EXPORT cinta)
install(EXPORT cinta NAMESPACE cinta:: FILE cinta-targets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/cinta-config.cmake.in ${PROJECT_BINARY_DIR}/cinta-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cinta-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cinta-config.cmake ${PROJECT_BINARY_DIR}/cinta-config-version.cmake
        DESTINATION ${package_folder})
configure_file(cmake/cinta.pc.in ${PROJECT_BINARY_DIR}/cinta.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cinta.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What the command runs lies beside it, in the build tree as where it is installed.
configure_file(tools/tune_optuna.py ${PROJECT_BINARY_DIR}/share/cinta/tune_optuna.py COPYONLY)
install(FILES tools/tune_optuna.py DESTINATION ${CMAKE_INSTALL_DATADIR}/cinta)

# Headers of the floors; of backends/ only the contract, because nobody includes a backend.
set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/cinta)
foreach(folder IN ITEMS core autograd backends/kernels ops optim distributed models data train)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder}/ DESTINATION ${header_folder}/${folder} FILES_MATCHING PATTERN *.h)
  endif()
endforeach()
file(GLOB umbrella_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/cinta/*.h)
file(GLOB backend_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/*.h)
install(FILES ${umbrella_headers} DESTINATION ${header_folder})
install(FILES ${backend_headers} DESTINATION ${header_folder}/backends)
