# Two sets of flags, as interface targets: the runtime's (freestanding-ish C++17) and the host's (C++20).
set(QPLAN_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")
option(QPLAN_COVERAGE "Instrument for gcov" OFF)

add_library(qplan_common_flags INTERFACE)
target_include_directories(qplan_common_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
if(NOT QPLAN_ERROR_TEXTS)
  target_compile_definitions(qplan_common_flags INTERFACE QPLAN_ERROR_TEXTS=0)
endif()
target_compile_options(qplan_common_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla $<$<BOOL:${QPLAN_WERROR}>:-Werror>
  # One arithmetic on every machine: no contraction, no reassociation.
  -ffp-contract=off -fno-fast-math
  -fvisibility=hidden
  # GCC 11 knows no [[maybe_unused]] of members, and says so.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,12>>:-Wno-attributes>"
  # GCC 13 and later follow what a function would do with a null that its caller has excluded.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds>")
# For what runs seldom or waits for other code: the packer, the command, the tests. Compiled a third faster than with -O3.
# Presets of fuzz targets choose a level of their own. GCC collects its garbage from two gigabytes on, not from 128 MB: the
# largest unit takes a sixth less time and a third more memory.
set(QPLAN_GCC_MEMORY "--param=ggc-min-heapsize=2097152;--param=ggc-min-expand=100")
# The presets asan and tsan are Release with -O1 -g1, so these levels hold for them too. With QPLAN_UNITY_SIZE=24 the unit
# that takes longest under asan needs 27 s of processor time and 1.1 GB; with RelWithDebInfo's -O2 -g it needs 93 s and 2.2 GB
# (GCC 12, AMD EPYC, 2026-11).
if(NOT QPLAN_FUZZ_TARGETS)
  set(QPLAN_COLD_FLAGS $<$<CONFIG:Release>:-O1> "$<$<CXX_COMPILER_ID:GNU>:${QPLAN_GCC_MEMORY}>")
endif()
if(QPLAN_SANITIZE)
  target_compile_options(qplan_common_flags INTERFACE
    -fsanitize=${QPLAN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(qplan_common_flags INTERFACE -fsanitize=${QPLAN_SANITIZE})
endif()
if(QPLAN_COVERAGE)
  target_compile_options(qplan_common_flags INTERFACE --coverage)
  target_link_options(qplan_common_flags INTERFACE --coverage)
endif()

add_library(qplan_runtime_flags INTERFACE)
target_link_libraries(qplan_runtime_flags INTERFACE qplan_common_flags)
target_compile_features(qplan_runtime_flags INTERFACE cxx_std_17)
target_compile_options(qplan_runtime_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -ffunction-sections -fdata-sections -fno-stack-protector -U_FORTIFY_SOURCE -fno-math-errno)
target_compile_definitions(qplan_runtime_flags INTERFACE
  FLATBUFFERS_ASSERT=QPLAN_FLATBUFFERS_ASSERT
  FLATBUFFERS_ASSERT_INCLUDE="format/flatbuffers_assert.h")

add_library(qplan_host_flags INTERFACE)
target_link_libraries(qplan_host_flags INTERFACE qplan_common_flags)
target_compile_features(qplan_host_flags INTERFACE cxx_std_20)
# GCC 12 warns wrongly about overlapping copies in `"text" + std::string` (GCC bug 105651) and dangling lists
# of vectors, a warning that GCC 11 lacks.
target_compile_options(qplan_host_flags INTERFACE
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>"
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,12>>:-Wno-dangling-pointer>")
