/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/pack.h>
#include <string.h>

int header_pack(void);
int header_pack(void) {
  qplan_pack_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = (uint32_t)sizeof(options);
  return qplan_pack_file("", &options, NULL, NULL, NULL) == QPLAN_OK;
}
