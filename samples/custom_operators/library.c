/* The library of operators that --custom-operators loads. */
#include <qplan/custom_operator.h>

extern const qplan_custom_operator twice_operator, running_sum_operator;

QPLAN_API const qplan_custom_operator* const* qplan_custom_operators(uint32_t* count);
const qplan_custom_operator* const* qplan_custom_operators(uint32_t* count) {
  static const qplan_custom_operator* const operators[] = {&twice_operator, &running_sum_operator};
  *count = sizeof(operators) / sizeof(operators[0]);
  return operators;
}
