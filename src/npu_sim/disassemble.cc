#include "qplan/npu_sim.h"
#include "src/npu_sim/kinds.h"

qplan_npu_status qplan_npu_sim_disassemble(const void* blob, uint64_t bytes, const char* text,
                                           void (*line)(void* user, const char* text), void* user,
                                           qplan_npu_reason* why) {
  using namespace qplan::sim;
  if (line == nullptr || (blob == nullptr && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  try {
    OpenText opened;
    std::string error;
    if (!read_open_text(text == nullptr ? "" : text, &opened, &error)) {
      give_reason(why, error);
      return QPLAN_NPU_E_ARGUMENT;
    }
    const auto write = [&](const std::string& of) { line(user, of.c_str()); };
    if (opened.ethosu != nullptr)
      return qplan::ethosu::sim::list_blob(*opened.ethosu, blob, bytes, write, why);
    return list_blob(opened.options, blob, bytes, write, why);
  } catch (...) {
    return QPLAN_NPU_E_MEMORY;
  }
}
