# cmake --build build/release --target qplan_reference: the reference of the public headers, build/release/reference/html.
find_program(QPLAN_DOXYGEN doxygen)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(QPLAN_DOXYGEN AND Python3_FOUND)
  add_custom_target(qplan_reference VERBATIM
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/reference/doxygen.py ${PROJECT_SOURCE_DIR}/include
            ${PROJECT_BINARY_DIR}/reference)
endif()
