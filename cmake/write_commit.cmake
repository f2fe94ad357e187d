# cmake -DSOURCE=<repository> -DHEADER=<file> -P write_commit.cmake: a header with the commit that is built. It is written only
# when it changes. A source tree that is no git repository may have the commit in the environment, as QPLAN_COMMIT.
set(commit "$ENV{QPLAN_COMMIT}")
if(commit STREQUAL "" AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --match=
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[-0-9A-Za-z.+]+$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define QPLAN_COMMIT \"${commit}\"\n" @ONLY)
