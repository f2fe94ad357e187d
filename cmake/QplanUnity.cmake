# qplan_unity(<target> [ANY_FOLDER] [SIZE <files>] [SKIP <regex>...] [TOGETHER <regex>...] [LIGHT [HOT <regex>...]])
# Compiles the files of a target several at a time: most of what compiling a file costs is the headers that it shares
# with others. Small units hold neighbours of one folder, large ones (from 48 files) or with ANY_FOLDER files of all
# folders, and those that match TOGETHER, which share an expensive header, in units of their own. LIGHT: files are
# compiled with -Og in Release, a quarter less time than with -O1, except those that match HOT, in units of their own.
# Call it when the target has all its sources. A file stays alone if it has flags of its own, is the only one of its
# folder, or matches SKIP. A file in a unit can be in no other target of the same CMakeLists.txt.
#
# Two files of a target must therefore not use one name in the anonymous namespaces of one namespace: most such pairs do
# not compile, but a constant or a type of one file can silently hide one of an outer namespace from another file
# (cmake/check_units.py looks for such names). With QPLAN_UNITY=OFF (preset "separate") every file is compiled by
# itself: for editors, which want a command for each file, and for the check that each file includes what it uses.
option(QPLAN_UNITY "Compile several files of the packer, the command and the tests at a time" ON)
# Users of qplan and CI compile everything once, so units are large: the packer takes two thirds of the processor time
# that it takes by folders, and up to 2.8 GB of memory for a unit. Developers compile again what a change touches, so
# units are small.
set(default_unity_size 240)
# Four large units may be compiled at a time, if there are as many processors.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # in MiB
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
if(jobs GREATER 4)
  set(jobs 4)
endif()
math(EXPR needed "${jobs} * 2800")
if(memory LESS needed)
  set(default_unity_size 24)
endif()
if(QPLAN_BUILD_TESTS OR QPLAN_FUZZ_TARGETS)
  set(default_unity_size 6)
endif()
set(QPLAN_UNITY_SIZE ${default_unity_size} CACHE STRING "At most so many files are compiled at a time")
# The runtime's files are objects of their own, so that programs link what they use. Where everything is compiled once they
# read the plan's schema precompiled; developers go without: a change of a header would compile everything.
set(QPLAN_PRECOMPILES_SCHEMA FALSE)
if(QPLAN_BUILD_PACKER AND QPLAN_UNITY AND QPLAN_UNITY_SIZE GREATER_EQUAL 48 AND NOT QPLAN_FUZZ_TARGETS)
  set(QPLAN_PRECOMPILES_SCHEMA TRUE)
endif()

function(qplan_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ANY_FOLDER;LIGHT" "SIZE" "SKIP;HOT;TOGETHER")
  set(light_options "$<$<CONFIG:Release>:-Og;$<$<CXX_COMPILER_ID:GNU>:${QPLAN_GCC_MEMORY}>>")
  if(NOT QPLAN_UNITY)
    return()
  endif()
  if(NOT arg_SIZE)
    set(arg_SIZE ${QPLAN_UNITY_SIZE})
  endif()
  if(arg_SIZE GREATER_EQUAL 48)
    set(arg_ANY_FOLDER TRUE)
  endif()
  # The sources by folder.
  get_target_property(sources ${target} SOURCES)
  set(folders)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    foreach(list SKIP HOT TOGETHER)
      set(in_${list} FALSE)
      foreach(regex IN LISTS arg_${list})
        if(source MATCHES "${regex}")
          set(in_${list} TRUE)
        endif()
      endforeach()
    endforeach()
    if(NOT source MATCHES "\\.cc$" OR options OR in_SKIP)
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(arg_ANY_FOLDER)
      set(folder all)
      if(in_TOGETHER)
        string(APPEND folder /together)
      endif()
    endif()
    if(arg_LIGHT AND NOT in_HOT)
      string(APPEND folder /light)
    endif()
    string(MAKE_C_IDENTIFIER "files_${folder}" list)
    list(APPEND ${list} ${source})
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)

  foreach(folder IN LISTS folders)
    string(MAKE_C_IDENTIFIER "files_${folder}" list)
    list(LENGTH ${list} length)
    if(length LESS 2)
      continue()
    endif()
    # As many files in each unit as in the others.
    math(EXPR units "(${length} + ${arg_SIZE} - 1) / ${arg_SIZE}")
    math(EXPR last "${units} - 1")
    foreach(unit RANGE ${last})
      math(EXPR begin "${unit} * ${length} / ${units}")
      math(EXPR size "(${unit} + 1) * ${length} / ${units} - ${begin}")
      list(SUBLIST ${list} ${begin} ${size} files)
      set_source_files_properties(${files} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
      # Paths under the repository: the unit is the same in every checkout, which compiler caches like.
      set(content "")
      foreach(file IN LISTS files)
        cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
        string(APPEND content "#include \"${file}\"\n")
      endforeach()
      set(path ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}/${folder}/unit_${unit}.cc)
      file(CONFIGURE OUTPUT ${path} CONTENT "${content}" @ONLY)
      target_sources(${target} PRIVATE ${path})
      if(folder MATCHES "/light$")
        set_source_files_properties(${path} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS "${light_options}")
      endif()
    endforeach()
  endforeach()
  # A type of an anonymous namespace in a unit is in no header, whatever the warning believes.
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>")
endfunction()
