# cmake --install: headers, libraries, the command, the Python package, and a CMake package for find_package(qplan).
# The package's targets are written by hand (qplanConfig.cmake.in): an export would drag in the flags and object
# libraries that exist only inside this build.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Python looks in <prefix>/lib/python3/dist-packages by itself only where the prefix is /usr; else name it in PYTHONPATH.
set(QPLAN_INSTALL_PYTHONDIR lib/python3/dist-packages CACHE STRING "Where the Python package goes, under the prefix")
set(QPLAN_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/qplan)
# qplan.h includes <dlpack/dlpack.h>. Not in the include directory itself, where another installation may have its own.
set(QPLAN_INSTALL_THIRD_PARTY_DIR ${CMAKE_INSTALL_DATADIR}/qplan/include)

install(FILES include/qplan/qplan.h include/qplan/custom_operator.h include/qplan/firmware.h include/qplan/npu_driver.h
        include/qplan/npu_oplist.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qplan)
install(FILES ${QPLAN_THIRD_PARTY_DIR}/dlpack/dlpack.h DESTINATION ${QPLAN_INSTALL_THIRD_PARTY_DIR}/dlpack)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS qplan ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(QPLAN_BUILD_PACKER)
  install(FILES include/qplan/host.h include/qplan/npu_sim.h include/qplan/npu_target.h include/qplan/pack.h include/qplan/pass.hpp
          include/qplan/pattern.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qplan)
  install(TARGETS qplan_host qplan_npu_isa qplan_sim qplan_pack ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # A driver to be loaded, not linked to: its place is the library folder all the same.
  install(TARGETS qplan_shared qplan_vta_sim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS qplan_command qplan_npu_conformance RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY python/qplan DESTINATION ${QPLAN_INSTALL_PYTHONDIR} FILES_MATCHING PATTERN "*.py")
  # The -l flags that OpenMP means with this compiler: "gomp;pthread".
  set(QPLAN_OPENMP_LIBRARIES ${OpenMP_CXX_LIB_NAMES})
elseif(QPLAN_BUILD_COMMAND)
  install(TARGETS qplan_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/qplanConfig.cmake.in ${PROJECT_BINARY_DIR}/qplanConfig.cmake
  INSTALL_DESTINATION ${QPLAN_INSTALL_CMAKEDIR}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR QPLAN_INSTALL_THIRD_PARTY_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qplanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qplanConfig.cmake ${PROJECT_BINARY_DIR}/qplanConfigVersion.cmake
  DESTINATION ${QPLAN_INSTALL_CMAKEDIR})
