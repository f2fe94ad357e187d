# 64-bit Arm Linux. On Debian: g++-aarch64-linux-gnu qemu-user. QPLAN_EMULATED_CPU says what the emulated processor has:
# cortex-a53 (Armv8.0), max (all that QEMU knows).
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT DEFINED QPLAN_EMULATED_CPU)
  set(QPLAN_EMULATED_CPU cortex-a53)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake)
