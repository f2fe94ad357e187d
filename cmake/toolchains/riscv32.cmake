# RISC-V of 32 bits with multiplication and compressed instructions (RV32IMC), floats in software. On Debian:
# gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf libstdc++-arm-none-eabi-newlib. No package has headers of the C++ library
# for this compiler: those for Arm cores without an operating system serve, as the runtime uses no more than their templates.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv32)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_CXX_COMPILER riscv64-unknown-elf-g++)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(cpu "-march=rv32imc -mabi=ilp32 --specs=picolibc.specs")
file(GLOB cxx_headers /usr/include/newlib/c++/*)
list(GET cxx_headers -1 cxx_headers)
set(CMAKE_C_FLAGS_INIT "${cpu}")
set(CMAKE_CXX_FLAGS_INIT "${cpu} -isystem ${cxx_headers} -isystem ${cxx_headers}/arm-none-eabi/thumb/v6-m/nofp")
set(CMAKE_ASM_FLAGS_INIT "${cpu}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
