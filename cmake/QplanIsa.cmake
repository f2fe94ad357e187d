# ISA files are found by their suffix: <family>_avx2.cc, <family>_avx512vnni.cc. They are compiled at -O2 in every
# preset: unoptimised intrinsics would emit weak copies of inline functions. QPLAN_ISAS lists what this build holds.
set(QPLAN_ISA_FLAGS_sse41 -msse4.1 -mssse3)
set(QPLAN_ISA_FLAGS_avx2 -mavx2 -mfma)
set(QPLAN_ISA_FLAGS_avxvnni -mavx2 -mfma -mavxvnni)
# GCC 12 warns of its own _mm512_undefined_epi32().
set(QPLAN_ISA_FLAGS_avx512vnni -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -Wno-uninitialized -Wno-maybe-uninitialized)
# Fuzz targets run kernels in memories between guard pages, which see more than instrumented kernels would; clang takes
# minutes for one instrumented AVX-512 file. The preset asan instruments kernels.
if(QPLAN_FUZZ_TARGETS)
  set(QPLAN_ISA_UNINSTRUMENTED -fno-sanitize=all)
endif()
set(QPLAN_ISAS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND QPLAN_ISAS sse41 avx2 avxvnni avx512vnni)
endif()

# qplan_isa_sources(<target> <file>...): adds the files whose ISA this build holds, each as two objects. `run` is compiled
# with the ISA's flags; the queries (accepts, scratch_bytes, units) are compiled without them, because the packer asks them
# about instruction sets that its own processor lacks, and a compiler that may use AVX-512 copies structs with it.
function(qplan_isa_sources target)
  foreach(isa IN LISTS QPLAN_ISAS)
    foreach(file IN LISTS ARGN)
      if(file MATCHES "_${isa}\\.cc$")
        target_sources(${target} PRIVATE ${file})
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-O2;-Wno-unused-function;${QPLAN_ISA_FLAGS_${isa}};${QPLAN_ISA_UNINSTRUMENTED}"
                                    COMPILE_DEFINITIONS QPLAN_ONLY_RUN)
        get_filename_component(name ${file} NAME_WE)
        file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
        set(queries ${CMAKE_CURRENT_BINARY_DIR}/queries/${name}_queries.cc)
        # Each of the two leaves helpers of the other unused.
        file(CONFIGURE OUTPUT ${queries} CONTENT "#define QPLAN_ONLY_QUERIES 1
#include \"${path}\"
" @ONLY)
        target_sources(${target} PRIVATE ${queries})
        # Vectors are passed only between functions that this object does not contain.
        set_source_files_properties(${queries} PROPERTIES COMPILE_OPTIONS "-Wno-unused-function;-Wno-psabi")
      endif()
    endforeach()
    string(TOUPPER ${isa} upper)
    target_compile_definitions(${target} PUBLIC QPLAN_HAVE_${upper}=1)
  endforeach()
endfunction()
