# 64-bit RISC-V Linux (RV64GC; the kernels of RVV run where a processor has it). On Debian: g++-riscv64-linux-gnu clang-14
# qemu-user. QPLAN_EMULATED_CPU: rv64, or rv64,v=true,vext_spec=v1.0,vlen=256.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
if(NOT DEFINED QPLAN_EMULATED_CPU)
  set(QPLAN_EMULATED_CPU rv64)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake)
# GCC 12 has no intrinsics of RVV: Clang compiles the kernels, in the versions whose intrinsics have the names of version 0.10
# of their specification. Without it there are no kernels of RVV. It has no OpenMP for RISC-V on Debian: GCC compiles the rest.
find_program(QPLAN_RISCV_CLANG NAMES clang++-14 clang++-15)
if(QPLAN_RISCV_CLANG)
  set(QPLAN_KERNELS_COMPILER ${QPLAN_RISCV_CLANG} --target=riscv64-linux-gnu)
endif()
