# Cortex-M3 (Armv7-M): no DSP instructions, floats in software.
set(CMAKE_SYSTEM_PROCESSOR cortex-m3)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=soft")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
