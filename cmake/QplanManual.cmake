# Manual pages and completions of bash and zsh, written from the help of the command that was built: build/<preset>/manual.
# Where the command cannot run (cross builds), or Python is missing, there are none.
find_package(Python3 COMPONENTS Interpreter QUIET)
set(QPLAN_HAS_MANUAL OFF)
if(QPLAN_BUILD_COMMAND AND Python3_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT QPLAN_SANITIZE)
  set(QPLAN_HAS_MANUAL ON)
  set(QPLAN_MANUAL_DIR ${PROJECT_BINARY_DIR}/manual)
  set(stamp ${QPLAN_MANUAL_DIR}/stamp)
  add_custom_command(OUTPUT ${stamp} VERBATIM
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/manual/generate.py $<TARGET_FILE:qplan_command>
            ${PROJECT_VERSION} ${QPLAN_MANUAL_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS qplan_command ${PROJECT_SOURCE_DIR}/cmake/manual/generate.py ${PROJECT_SOURCE_DIR}/cmake/manual/help_pages.py)
  add_custom_target(qplan_manual ALL DEPENDS ${stamp})
endif()
