# Cortex-M7. The flags are those of its single-precision FPU, which all that have one know.
set(CMAKE_SYSTEM_PROCESSOR cortex-m7)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=hard -mfpu=fpv5-sp-d16")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
