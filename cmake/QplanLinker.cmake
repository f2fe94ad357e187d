# A fast linker where one is present: mold, lld or gold, in this order. For packer_tests, the largest test executable, lld takes
# 0.3 s of processor time, gold 0.6 s and GNU ld 1.5 s. QPLAN_LINKER names another, "default" the compiler's own. Programs
# for other processors are linked by their toolchain's.
set(QPLAN_LINKER "" CACHE STRING "The linker, as -fuse-ld takes it; empty: the fastest that is present; default: the compiler's")
if(NOT QPLAN_LINKER AND NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  include(CheckLinkerFlag)
  set(linkers mold lld gold)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(REMOVE_ITEM linkers lld)  # it cannot read what GCC leaves for the link
  endif()
  foreach(linker IN LISTS linkers)
    check_linker_flag(CXX -fuse-ld=${linker} QPLAN_LINKS_WITH_${linker})
    if(QPLAN_LINKS_WITH_${linker})
      set(QPLAN_LINKER ${linker})
      break()
    endif()
  endforeach()
endif()
if(QPLAN_LINKER AND NOT QPLAN_LINKER STREQUAL default)
  add_link_options(-fuse-ld=${QPLAN_LINKER})
endif()
