# Cortex-M55 with MVE and FPU.
set(CMAKE_SYSTEM_PROCESSOR cortex-m55)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
