# Cortex-M85 with MVE and FPU. GCC 12 does not know it: the code is that of Cortex-M55, whose instructions it has.
set(CMAKE_SYSTEM_PROCESSOR cortex-m85)
set(QPLAN_CPU cortex-m55)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
