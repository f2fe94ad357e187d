# GCC for 64-bit Arm Linux, and QEMU's user mode, which runs what is built (tests). On Debian: g++-aarch64-linux-gnu
# qemu-user. QPLAN_EMULATED_CPU says what the emulated processor has: cortex-a53 (Armv8.0), max (all that QEMU knows).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
if(NOT DEFINED QPLAN_EMULATED_CPU)
  set(QPLAN_EMULATED_CPU cortex-a53)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu ${QPLAN_EMULATED_CPU} -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
