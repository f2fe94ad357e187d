# Headers of the host that are the same for every processor, copied to a directory of their own: naming /usr/include to a
# cross compiler would let host headers in. FlatBuffers' and dlpack's are the runtime's.
find_path(QPLAN_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
find_path(QPLAN_DLPACK_INCLUDE dlpack/dlpack.h PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
foreach(name FLATBUFFERS DLPACK)
  if(NOT QPLAN_${name}_INCLUDE)
    string(TOLOWER ${name} lower)
    message(FATAL_ERROR "qplan: the headers of ${lower} were not found; on Debian: apt-get install lib${lower}-dev")
  endif()
endforeach()
set(QPLAN_THIRD_PARTY_DIR ${PROJECT_BINARY_DIR}/third_party)
# qplan_copy_folder(<parent> <folder>): a header that differs from its copy is copied again, with a new time by which Ninja
# sees it, and one that changes configures the build again.
function(qplan_copy_folder parent folder)
  file(GLOB_RECURSE headers RELATIVE ${parent} ${parent}/${folder}/*)
  foreach(header IN LISTS headers)
    configure_file(${parent}/${header} ${QPLAN_THIRD_PARTY_DIR}/${header} COPYONLY)
  endforeach()
endfunction()
qplan_copy_folder(${QPLAN_FLATBUFFERS_INCLUDE} flatbuffers)
qplan_copy_folder(${QPLAN_DLPACK_INCLUDE} dlpack)
add_library(qplan_third_party INTERFACE)
target_include_directories(qplan_third_party SYSTEM INTERFACE $<BUILD_INTERFACE:${QPLAN_THIRD_PARTY_DIR}>)
# Vectors of floats that kernels load 16 at a time; the headers allow 32 bytes unless told otherwise, the same in all sources.
target_compile_definitions(qplan_third_party INTERFACE $<BUILD_INTERFACE:FLATBUFFERS_MAX_ALIGNMENT=64>)

# qplan_copy_headers(<folder> <header> <package>): a folder of headers that the command includes, likewise.
function(qplan_copy_headers folder header package)
  string(TOUPPER ${folder} upper)
  find_path(QPLAN_${upper}_INCLUDE ${folder}/${header} PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
  if(NOT QPLAN_${upper}_INCLUDE)
    message(FATAL_ERROR "qplan: <${folder}/${header}> was not found; on Debian: apt-get install ${package};"
                        " without the command: -DQPLAN_BUILD_COMMAND=OFF")
  endif()
  qplan_copy_folder(${QPLAN_${upper}_INCLUDE} ${folder})
endfunction()
if(QPLAN_BUILD_COMMAND AND NOT QPLAN_BUILD_PACKER)
  qplan_copy_headers(CLI CLI.hpp libcli11-dev)
  qplan_copy_headers(nlohmann json.hpp nlohmann-json3-dev)
  qplan_copy_headers(stb stb_image.h libstb-dev)
endif()
