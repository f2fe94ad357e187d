// A plan: open, inspect the inputs and outputs, init in memories of exactly the declared size, invoke, read.
#include <vector>

#include "qplan/qplan.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  alignas(64) static uint8_t bytes[1 << 16];
  if (size > sizeof(bytes)) return 0;
  std::memcpy(bytes, data, size);
  qplan_plan plan;
  qplan_error error{};
  error.struct_size = sizeof(error);
  const qplan_status status = qplan_plan_open(&plan, bytes, size, 0, &error);
  FUZZ_CHECK(status != QPLAN_INTERNAL, "%s", error.text);
  return 0;
}
