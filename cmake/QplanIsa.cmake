# Reads kernels/isa.def, the list of instruction sets, and the families' lists of variants. QPLAN_ISAS are the names that this
# build holds, best first; "kernels/isas.h", which is generated, tells the sources which those are.
include(CheckCXXCompilerFlag)
set(QPLAN_ISA_DEF ${PROJECT_SOURCE_DIR}/kernels/isa.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${QPLAN_ISA_DEF})

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(QPLAN_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^cortex-m")
  set(QPLAN_ARCH cortex-m)
else()
  set(QPLAN_ARCH ${CMAKE_SYSTEM_PROCESSOR})
endif()
# Fuzz targets run kernels in memories between guard pages, which see more than instrumented kernels would; clang takes
# minutes for one instrumented AVX-512 file. The preset asan instruments kernels.
if(QPLAN_FUZZ_TARGETS)
  set(QPLAN_ISA_UNINSTRUMENTED -fno-sanitize=all)
endif()

# Instruction sets of few cores of an architecture: a build for another core leaves them out, as they would be dead code there.
set(QPLAN_ISA_CORES_mve cortex-m55 cortex-m85)

set(QPLAN_ISAS)
# Those of microcontrollers are compiled on every machine, where no session chooses them: packers ask them how much scratch
# memory they take, and tests run them.
set(QPLAN_SCALAR_ISAS)
set(isa_entries)
set(own_isa_entries)
set(vector_isa_entries)
set(scalar_isa_entries)
file(STRINGS ${QPLAN_ISA_DEF} rows REGEX "^QPLAN_ISA\\(")
foreach(row IN LISTS rows)
  if(NOT row MATCHES "^QPLAN_ISA\\(([a-z0-9_-]+), *([a-z0-9]+), *([A-Z0-9]+), *([0-9]+), *([A-Z0-9]+), *(own|dot|none), *([0-9]+), *([A-Za-z0-9 |]+), \"([^\"]*)\"\\)$")
    message(FATAL_ERROR "${QPLAN_ISA_DEF}: not a row: ${row}")
  endif()
  set(name ${CMAKE_MATCH_2})
  set(upper ${CMAKE_MATCH_3})
  set(base ${CMAKE_MATCH_5})
  set(vectors ${CMAKE_MATCH_6})
  set(features ${CMAKE_MATCH_8})
  if(QPLAN_ARCH STREQUAL CMAKE_MATCH_1 AND DEFINED QPLAN_ISA_CORES_${name} AND NOT CMAKE_SYSTEM_PROCESSOR IN_LIST QPLAN_ISA_CORES_${name})
    continue()
  endif()
  set(entry "F(${name}, ${upper}, (${features}), argument)")
  if(vectors STREQUAL none)
    list(PREPEND QPLAN_SCALAR_ISAS ${name})
    string(PREPEND scalar_isa_entries " ${entry}")
  endif()
  if(NOT CMAKE_MATCH_1 STREQUAL QPLAN_ARCH)
    continue()
  endif()
  set(flags "${CMAKE_MATCH_9}")
  separate_arguments(QPLAN_ISA_FLAGS_${name} UNIX_COMMAND "${flags}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR QPLAN_KERNELS_COMPILER MATCHES "clang")
    # It warns of warnings that it does not know, even where they are turned off; options -f... tell GCC how to schedule and
    # to assign registers.
    list(REMOVE_ITEM QPLAN_ISA_FLAGS_${name} -Wno-maybe-uninitialized)
    list(FILTER QPLAN_ISA_FLAGS_${name} EXCLUDE REGEX "^-f")
    list(JOIN QPLAN_ISA_FLAGS_${name} " " flags)
  endif()
  if(QPLAN_KERNELS_COMPILER)
    execute_process(COMMAND ${QPLAN_KERNELS_COMPILER} ${QPLAN_ISA_FLAGS_${name}} -fsyntax-only -x c++ /dev/null
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  else()
    # Warnings aside: compilers compile what they cannot warn of.
    string(REGEX REPLACE " -W[^ ]+" "" code_flags "${flags}")
    check_cxx_compiler_flag("${code_flags}" QPLAN_KNOWS_FLAGS_OF_${name})
    set(failed 1)
    if(QPLAN_KNOWS_FLAGS_OF_${name})
      set(failed 0)
    endif()
  endif()
  if(failed)
    message(STATUS "No kernels for ${name}: the compiler does not know its flags, ${flags}")
    continue()
  endif()
  list(PREPEND QPLAN_ISAS ${name})
  string(PREPEND isa_entries " ${entry}")
  set(QPLAN_ISA_VECTORS_${name} ${name})
  if(NOT vectors STREQUAL none)
    string(PREPEND vector_isa_entries " ${entry}")
  endif()
  if(vectors STREQUAL own)
    string(PREPEND own_isa_entries " ${entry}")
  elseif(vectors STREQUAL dot)
    string(TOLOWER ${base} lower)
    set(QPLAN_ISA_VECTORS_${name} ${QPLAN_ISA_VECTORS_${lower}})
  endif()
  set(QPLAN_ISA_KIND_${name} ${vectors})
endforeach()

# qplan_isa_intrinsics(<variable> <target> <isa> <options>...): the options by which a source of the target that is compiled
# with these options reads <immintrin.h> precompiled. Reading it takes half a second, as long as all else of most kernels.
# <variable>_file: the precompiled header, on which the source's object depends. Both are empty where sources read the header
# itself: for other compilers; with a compiler cache, which by default does not cache what reads a precompiled header; for
# editors and for the check of includes (preset "separate"); with several configurations in one build folder.
function(qplan_isa_intrinsics variable target isa)
  set(${variable} "" PARENT_SCOPE)
  set(${variable}_file "" PARENT_SCOPE)
  get_property(has_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT QPLAN_ARCH STREQUAL x86_64 OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR QPLAN_KERNELS_COMPILER
     OR CMAKE_CXX_COMPILER_LAUNCHER OR NOT QPLAN_UNITY OR CMAKE_EXPORT_COMPILE_COMMANDS OR has_configurations
     OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  set(name ${target}_intrinsics_${isa})
  set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx)
  if(NOT TARGET ${name})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/isa/intrinsics_${isa}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "// CMake precompiles headers for targets with sources.\n" @ONLY)
    add_library(${name} OBJECT ${source})
    target_link_libraries(${name} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
    target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS> ${ARGN})
    target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    target_precompile_headers(${name} PRIVATE <immintrin.h>)
    add_dependencies(${target} ${name})
  endif()
  set(${variable} "-include;${header};-Winvalid-pch" PARENT_SCOPE)
  set(${variable}_file ${header}.gch PARENT_SCOPE)
endfunction()

# qplan_isa_run(<target> <isa> <name> <content>): the object of a source for an instruction set that computes, compiled with
# its flags, and at -O2 in every preset: unoptimised intrinsics would emit weak copies of inline functions.
function(qplan_isa_run target isa name content)
  set(run ${CMAKE_CURRENT_BINARY_DIR}/isa/${name}.cc)
  file(CONFIGURE OUTPUT ${run} CONTENT "#define QPLAN_ONLY_RUN 1\n${content}" @ONLY)
  list(JOIN QPLAN_ISA_FLAGS_${isa} " " flags)
  set_property(GLOBAL APPEND PROPERTY QPLAN_SOURCE_OPTIONS "${run}\t-O2 ${flags}")  # for QplanFirmwarePackage.cmake
  # This object and that of the queries each leave helpers of the other unused.
  set(options -O2 -Wno-unused-function ${QPLAN_ISA_FLAGS_${isa}} ${QPLAN_ISA_UNINSTRUMENTED})
  set(intrinsics)
  set(intrinsics_file)
  if(NOT isa IN_LIST QPLAN_SCALAR_ISAS)
    qplan_isa_intrinsics(intrinsics ${target} ${isa} ${options})
  endif()
  set_source_files_properties(${run} PROPERTIES COMPILE_OPTIONS "${options};${intrinsics}" OBJECT_DEPENDS "${intrinsics_file}")
  target_sources(${target} PRIVATE ${run})
endfunction()

# qplan_isa_queries(<target> <isa> <name> <content>): the object with accepts, scratch_bytes and work_items. It is compiled
# without the flags of its instruction set, because the packer asks about instruction sets that its own processor lacks, and
# a compiler that may use AVX-512 copies structs with it.
function(qplan_isa_queries target isa name content)
  set(queries ${CMAKE_CURRENT_BINARY_DIR}/isa/${name}_queries.cc)
  file(CONFIGURE OUTPUT ${queries} CONTENT "#define QPLAN_ONLY_QUERIES 1\n${content}" @ONLY)
  # Vectors are passed only between functions that this object does not contain; one file's local name may be another's
  # global one. GCC drops the helpers with intrinsics, which nothing calls here, from -O1 on; at -O0 it compiles them, and
  # refuses instructions for which there are no flags.
  set(options -Wno-unused-function -Wno-psabi -Wno-shadow $<$<CONFIG:Debug>:-O1>)
  set(intrinsics)
  set(intrinsics_file)
  if(NOT isa IN_LIST QPLAN_SCALAR_ISAS)
    qplan_isa_intrinsics(intrinsics ${target} queries ${options})
  endif()
  set_source_files_properties(${queries} PROPERTIES COMPILE_OPTIONS "${options};${intrinsics}" OBJECT_DEPENDS "${intrinsics_file}")
  target_sources(${target} PRIVATE ${queries})
endfunction()

# qplan_isas_header(<file>...): generates "kernels/isas.h"; the files are those written by hand for an instruction set.
function(qplan_isas_header)
  set(files)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME_WE)
    list(APPEND files ${name})
  endforeach()
  set(variants ${files})
  list(TRANSFORM variants REPLACE "_[a-z0-9]+$" "")
  list(REMOVE_DUPLICATES variants)
  set(by_hand)
  foreach(variant IN LISTS variants)
    foreach(isa IN LISTS QPLAN_ISAS)
      set(row)
      if("${variant}_${isa}" IN_LIST files)
        set(row " QPLAN_VARIANT(name, isa)")
      endif()
      string(APPEND by_hand "#define QPLAN_FILE_${variant}_${isa}(name, isa)${row}\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/kernels/isas.h CONTENT
"// Generated by cmake/QplanIsa.cmake from kernels/isa.def: the instruction sets of this build, best first, as
// F(name, NAME, (features), argument). kernels/variant.h and kernels/cpu.cc use them.
#define QPLAN_BUILT_ISAS(F, argument)${isa_entries}
// Those with vectors of their own, with any, and of microcontrollers.
#define QPLAN_BUILT_OWN_ISAS(F, argument)${own_isa_entries}
#define QPLAN_BUILT_VECTOR_ISAS(F, argument)${vector_isa_entries}
#define QPLAN_BUILT_SCALAR_ISAS(F, argument)${scalar_isa_entries}
// A row where variants have a file written by hand for the instruction set, otherwise nothing.
${by_hand}" @ONLY)
endfunction()

# qplan_variants_isas(<variable> <folder> <variants>): the instruction sets that the lists of variants in the folder's headers
# name: in rows of these variants, or else, for a file that holds variants of several families, in any row.
function(qplan_variants_isas variable folder variants)
  set(rows)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
  foreach(header IN LISTS headers)
    file(STRINGS ${header} lines REGEX "QPLAN_(DOT|SIMD)_VARIANTS")
    if(lines)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
      string(REGEX MATCHALL "QPLAN_(DOT|SIMD)_VARIANTS[A-Z_]*\\([a-z0-9_]+" found "${lines}")
      list(APPEND rows ${found})
    endif()
  endforeach()
  set(named ${rows})
  list(FILTER named INCLUDE REGEX "\\(${variants}$")
  if(named)
    set(rows ${named})
  endif()
  set(isas)
  foreach(row IN LISTS rows)
    foreach(isa IN LISTS QPLAN_ISAS)
      if((row MATCHES "QPLAN_DOT_VARIANTS" AND NOT QPLAN_ISA_KIND_${isa} STREQUAL none) OR (row MATCHES "QPLAN_SIMD_VARIANTS" AND QPLAN_ISA_KIND_${isa} STREQUAL own))
        list(APPEND isas ${isa})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES isas)
  set(${variable} ${isas} PARENT_SCOPE)
endfunction()

# qplan_isa_sources(<target> <file>...): the variants in files of instruction sets. <variants>_simd.cc is compiled for each
# that the lists of its variants name, unless the folder has a <variants>_<isa>.cc, written by hand for that one;
# <variants>_scalar.cc for each of microcontrollers, likewise. The queries of all <variants>_simd.cc are one object for
# an instruction set: they are small, and the headers that they include are not.
function(qplan_isa_sources target)
  foreach(isa IN LISTS QPLAN_ISAS)
    set(head_${isa} "#define QPLAN_SIMD_ISA ${isa}
#define QPLAN_SIMD_VECTORS ${QPLAN_ISA_VECTORS_${isa}}
#define QPLAN_SIMD_HEADER \"kernels/simd/${isa}.h\"
")
    set(queries_${isa})
  endforeach()
  foreach(file IN LISTS ARGN)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${file} NAME_WE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
    set(include "#include \"${path}\"\n")
    if(name MATCHES "_simd$")
      string(REGEX REPLACE "_simd$" "" variants ${name})
      qplan_variants_isas(isas ${folder} ${variants})
      foreach(isa IN LISTS isas)
        if(NOT EXISTS ${folder}/${variants}_${isa}.cc)
          qplan_isa_run(${target} ${isa} ${variants}_${isa} "${head_${isa}}${include}")
          string(APPEND queries_${isa} "${include}")
        endif()
      endforeach()
    elseif(name MATCHES "_scalar$")
      string(REGEX REPLACE "_scalar$" "" variants ${name})
      foreach(isa IN LISTS QPLAN_SCALAR_ISAS)
        if(EXISTS ${folder}/${variants}_${isa}.cc)
          continue()
        endif()
        set(content "#define QPLAN_SCALAR_ISA ${isa}\n${include}")
        qplan_isa_run(${target} ${isa} ${variants}_${isa} "${content}")
        qplan_isa_queries(${target} ${isa} ${variants}_${isa} "${content}")
        # The same for images that are to be small (kernels/scalar/dsp.h).
        set(content "#define QPLAN_SCALAR_FORM 1\n#define QPLAN_SCALAR_ISA ${isa}_form\n${include}")
        qplan_isa_run(${target} ${isa} ${variants}_${isa}_form "${content}")
        qplan_isa_queries(${target} ${isa} ${variants}_${isa}_form "${content}")
      endforeach()
    else()
      set(isas ${QPLAN_ISAS} ${QPLAN_SCALAR_ISAS})
      list(REMOVE_DUPLICATES isas)
      foreach(isa IN LISTS isas)
        string(REGEX REPLACE "_${isa}$" "" variants ${name})
        # On other machines only what packers ask.
        if(NOT variants STREQUAL name AND (isa IN_LIST QPLAN_ISAS OR EXISTS ${folder}/${variants}_scalar.cc))
          qplan_isa_run(${target} ${isa} ${name} "${include}")
          qplan_isa_queries(${target} ${isa} ${name} "${include}")
        endif()
      endforeach()
    endif()
  endforeach()
  foreach(isa IN LISTS QPLAN_ISAS)
    if(queries_${isa})
      qplan_isa_queries(${target} ${isa} simd_${isa} "${head_${isa}}${queries_${isa}}")
    endif()
  endforeach()
endfunction()
