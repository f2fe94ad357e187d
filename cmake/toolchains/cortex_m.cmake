# What the toolchains of Cortex-M cores share: GCC and newlib for ${CMAKE_SYSTEM_PROCESSOR}, or for the core that QPLAN_CPU
# names, with the unit for floats that QPLAN_FLOAT_FLAGS states. On Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi
# libstdc++-arm-none-eabi-newlib (the runtime uses FlatBuffers' headers, which include the C++ library's).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
if(NOT QPLAN_CPU)
  set(QPLAN_CPU ${CMAKE_SYSTEM_PROCESSOR})
endif()
set(cpu "-mcpu=${QPLAN_CPU} -mthumb ${QPLAN_FLOAT_FLAGS}")
set(CMAKE_C_FLAGS_INIT "${cpu}")
set(CMAKE_CXX_FLAGS_INIT "${cpu}")
set(CMAKE_ASM_FLAGS_INIT "${cpu}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
