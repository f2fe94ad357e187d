# libqplan_vta_sim.so and the sample's driver pass the suite; the sample's driver with a fault does not.
find_package(Threads REQUIRED)
file(GLOB skeleton CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/samples/npu_driver_skeleton/*.c)
# The sample's sources as a library of its own, in a wrapper with faults, and with files replaced by those of a device
# that takes less.
add_library(qplan_npu_skeleton MODULE ${skeleton})
set(limited ${skeleton})
list(FILTER limited EXCLUDE REGEX "/(supported|blob|target|driver)\\.c$")
file(GLOB replaced CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/limited/*.c)
add_library(qplan_npu_limited MODULE ${limited} ${replaced})
set_target_properties(qplan_npu_limited PROPERTIES OUTPUT_NAME npu_limited)
target_include_directories(qplan_npu_limited PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/samples/npu_driver_skeleton)
add_library(qplan_npu_broken MODULE ${CMAKE_CURRENT_LIST_DIR}/broken_driver.cc ${skeleton})
set_target_properties(qplan_npu_skeleton PROPERTIES OUTPUT_NAME npu_skeleton)
set_target_properties(qplan_npu_broken PROPERTIES OUTPUT_NAME npu_broken CXX_STANDARD 17)
foreach(library qplan_npu_skeleton qplan_npu_broken qplan_npu_limited)
  set_target_properties(${library} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden)
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${library} PRIVATE -Wall -Wextra -Wpedantic -ffp-contract=off)
  target_link_libraries(${library} PRIVATE qplan_third_party Threads::Threads)
endforeach()
target_compile_definitions(qplan_npu_broken PRIVATE qplan_npu_driver_entry=skeleton_driver_entry)

# The driver for Arm's core driver, on the fake one: its programs have a format of their own.
add_library(qplan_ethosu_fake MODULE ${PROJECT_SOURCE_DIR}/samples/ethosu_driver/entry.cc)
set_target_properties(qplan_ethosu_fake PROPERTIES CXX_VISIBILITY_PRESET hidden)
target_link_libraries(qplan_ethosu_fake PRIVATE qplan_host_flags qplan_ethosu_driver)

foreach(driver sim vta_sim skeleton ethosu ethosu_sim)
  set(library sim)
  set(options "")
  if(driver STREQUAL "vta_sim")
    set(library $<TARGET_FILE:qplan_vta_sim>)
    set(options --options "sram=quarter,coherent=0,explore=2")
  elseif(driver STREQUAL "skeleton")
    set(library $<TARGET_FILE:qplan_npu_skeleton>)
  elseif(driver STREQUAL "ethosu_sim")
    set(options --options "device=ethos-u65-256,coherent=0")
  elseif(driver STREQUAL "ethosu")
    set(library $<TARGET_FILE:qplan_ethosu_fake>)
  endif()
  add_test(NAME conformance/${driver} COMMAND qplan_npu_conformance ${library} ${options})
  set_tests_properties(conformance/${driver} PROPERTIES TIMEOUT 900)
endforeach()
add_test(NAME conformance/broken_drivers
  COMMAND ${QPLAN_TEST_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/conformance_test.py $<TARGET_FILE:qplan_npu_conformance>
    $<TARGET_FILE:qplan_npu_broken>)
set_tests_properties(conformance/broken_drivers PROPERTIES TIMEOUT 900)
add_test(NAME conformance/skeleton_models
  COMMAND ${QPLAN_TEST_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/skeleton_model_test.py $<TARGET_FILE:qplan_command>
    $<TARGET_FILE:qplan_npu_skeleton>)
add_test(NAME conformance/limited_devices
  COMMAND ${QPLAN_TEST_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/limited_test.py $<TARGET_FILE:qplan_npu_conformance>
    $<TARGET_FILE:qplan_npu_limited> $<TARGET_FILE:qplan_command>)
set_tests_properties(conformance/limited_devices PROPERTIES TIMEOUT 900)
