# Cortex-M33 with DSP extension and single-precision FPU.
set(CMAKE_SYSTEM_PROCESSOR cortex-m33)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=hard -mfpu=fpv5-sp-d16")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
