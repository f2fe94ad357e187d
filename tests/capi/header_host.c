/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/host.h>

int header_host(void);
int header_host(void) {
  qplan_file file;
  qplan_platform platform = {sizeof(qplan_platform),
                             QPLAN_LOG_INFO,
                             NULL,
                             qplan_host_log,
                             NULL,
                             NULL,
                             qplan_host_now_ns,
                             NULL,
                             NULL,
                             0};
  return qplan_file_map("", &file, NULL) == QPLAN_OK && platform.struct_size != 0;
}
