# Cortex-M4 with its single-precision FPU.
set(CMAKE_SYSTEM_PROCESSOR cortex-m4)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=hard -mfpu=fpv4-sp-d16")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
