# cmake --install BUILD --component firmware --prefix DIR: the runtime for this build's processor as a folder of sources that
# needs neither CMake nor flatc, which is an Arduino library, an ESP-IDF component, a Zephyr module and a CMSIS-Pack at once
# (cmake/firmware_package.py, docs/firmware.md). The list of sources is what this build compiles.
get_property(options_of_sources GLOBAL PROPERTY QPLAN_SOURCE_OPTIONS)
set(lines)
foreach(target qplan_base qplan_format qplan_kernels qplan_runtime qplan)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
    string(APPEND lines "${source}\n")
  endforeach()
endforeach()
foreach(entry IN LISTS options_of_sources)
  string(APPEND lines "${entry}\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/firmware_sources.txt CONTENT "${lines}" @ONLY)
find_program(QPLAN_PACKAGE_PYTHON NAMES python3 PATHS /usr/bin NO_CMAKE_FIND_ROOT_PATH)
install(CODE "
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target qplan_schema_headers
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"${QPLAN_PACKAGE_PYTHON}\" -B \"${PROJECT_SOURCE_DIR}/cmake/firmware_package.py\"
                          \"${PROJECT_BINARY_DIR}/firmware_sources.txt\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\"
                          --version ${PROJECT_VERSION} --arch ${QPLAN_ARCH} --source \"${PROJECT_SOURCE_DIR}\"
                          --headers \"${PROJECT_SOURCE_DIR}/include\" \"${QPLAN_GENERATED_DIR}\" \"${QPLAN_THIRD_PARTY_DIR}\"
                  COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT firmware EXCLUDE_FROM_ALL)
