# Cortex-M0+ (Armv6-M): no DSP instructions, floats in software. Cortex-M0 runs the same code.
set(CMAKE_SYSTEM_PROCESSOR cortex-m0plus)
set(QPLAN_FLOAT_FLAGS "-mfloat-abi=soft")
include(${CMAKE_CURRENT_LIST_DIR}/cortex_m.cmake)
