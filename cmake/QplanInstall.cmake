# cmake --install: headers, libraries, the command with manual and completions, the Python package, pkg-config files and a CMake
# package for find_package(qplan). Each file belongs to a component, which is a Debian package too (cmake/QplanPackages.cmake):
#   runtime  libqplan_runtime.so.1       library  libqplan.so.1       tools  the command and the conformance suite
#   dev      everything to compile with  python   the Python package
# The CMake package's targets are written by hand (qplanConfig.cmake.in): an export would drag in the flags and object
# libraries that exist only inside this build.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Python looks in <prefix>/lib/python3/dist-packages by itself only where the prefix is /usr; else name it in PYTHONPATH.
set(QPLAN_INSTALL_PYTHONDIR lib/python3/dist-packages CACHE STRING "Where the Python package goes, under the prefix")
set(QPLAN_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/qplan)
# qplan.h includes <dlpack/dlpack.h>. Not in the include directory itself, where another installation may have its own.
set(QPLAN_INSTALL_THIRD_PARTY_DIR ${CMAKE_INSTALL_DATADIR}/qplan/include)

install(FILES include/qplan/qplan.h include/qplan/qplan.hpp include/qplan/custom_operator.h include/qplan/firmware.h
        include/qplan/camera.h include/qplan/npu_driver.h include/qplan/npu_op.h include/qplan/npu_oplist.h
        include/qplan/signature.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qplan COMPONENT dev)
install(FILES ${QPLAN_THIRD_PARTY_DIR}/dlpack/dlpack.h DESTINATION ${QPLAN_INSTALL_THIRD_PARTY_DIR}/dlpack COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)
install(TARGETS qplan ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
set(installed qplan)
set(packages)  # of pkg-config
# What boards have too: files, threads, the command and Python.
if(QPLAN_BUILD_COMMAND)
  install(FILES include/qplan/host.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qplan COMPONENT dev)
  install(TARGETS qplan_host ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(TARGETS qplan_runtime_shared
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
  install(TARGETS qplan_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(DIRECTORY python/qplan DESTINATION ${QPLAN_INSTALL_PYTHONDIR} COMPONENT python
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
  # The -l flags that OpenMP means with this compiler: "gomp;pthread".
  set(QPLAN_OPENMP_LIBRARIES ${OpenMP_CXX_LIB_NAMES})
  list(APPEND installed qplan_host qplan_runtime_shared qplan_command)
  list(APPEND packages qplan-runtime)
endif()
if(QPLAN_BUILD_PACKER)
  install(FILES include/qplan/npu_sim.h include/qplan/npu_target.h include/qplan/pack.h include/qplan/pass.hpp
          include/qplan/pattern.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qplan COMPONENT dev)
  install(TARGETS qplan_npu_isa qplan_sim qplan_pack ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(TARGETS qplan_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
  # A driver to be loaded, not linked to: its place is the library folder all the same.
  install(TARGETS qplan_vta_sim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tools)
  install(TARGETS qplan_npu_conformance RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  list(APPEND installed qplan_npu_isa qplan_sim qplan_pack qplan_shared qplan_vta_sim qplan_npu_conformance)
  list(APPEND packages qplan)
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()  # the files move with the prefix
  file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(PREPEND pc_prefix "\${pcfiledir}/")
endif()
# An absolute folder takes the place of the prefix.
cmake_path(APPEND pc_prefix "${CMAKE_INSTALL_INCLUDEDIR}" OUTPUT_VARIABLE QPLAN_PC_INCLUDEDIR)
cmake_path(APPEND pc_prefix "${QPLAN_INSTALL_THIRD_PARTY_DIR}" OUTPUT_VARIABLE QPLAN_PC_THIRD_PARTY_DIR)
foreach(folder QPLAN_PC_INCLUDEDIR QPLAN_PC_THIRD_PARTY_DIR)
  string(REPLACE " " "\\ " ${folder} "${${folder}}")  # as pkg-config does in ${pcfiledir}
endforeach()
foreach(package ${packages})
  configure_file(cmake/pkgconfig/${package}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()
if(QPLAN_HAS_MANUAL)
  install(DIRECTORY ${QPLAN_MANUAL_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
  install(FILES ${QPLAN_MANUAL_DIR}/bash/qplan DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
  install(FILES ${QPLAN_MANUAL_DIR}/zsh/_qplan DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT tools)
  list(APPEND installed qplan_manual)
endif()
# What 'cmake --install' needs of a build tree with tests.
add_custom_target(qplan_installed DEPENDS ${installed})

configure_package_config_file(cmake/qplanConfig.cmake.in ${PROJECT_BINARY_DIR}/qplanConfig.cmake
  INSTALL_DESTINATION ${QPLAN_INSTALL_CMAKEDIR}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR QPLAN_INSTALL_THIRD_PARTY_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qplanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qplanConfig.cmake ${PROJECT_BINARY_DIR}/qplanConfigVersion.cmake
  DESTINATION ${QPLAN_INSTALL_CMAKEDIR} COMPONENT dev)
