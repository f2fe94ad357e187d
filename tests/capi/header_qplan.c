/* Compiled as C99, C11 and C++17 with warnings as errors: the header alone, first, and its types used. */
#include <qplan/qplan.h>

int header_qplan(void);
int header_qplan(void) {
  qplan_plan plan;
  qplan_error error;
  static qplan_session_config config;
  error.struct_size = (uint32_t)sizeof(error);
  config.struct_size = (uint32_t)sizeof(config);
  config.kernels = qplan_kernels_reference();
  return qplan_plan_open(&plan, NULL, 0, QPLAN_PLAN_DIGEST, &error) == QPLAN_OK && config.struct_size != 0;
}
