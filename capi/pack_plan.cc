// The part of the packer's C API that works on plans: it needs no model and none of the packer's libraries,
// so that a board has it too.
#include <cstdint>

#include "capi/pack_guard.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/cost_file.h"

qplan_status qplan_inspect_json(const void* plan, size_t size, qplan_write_fn write, void* user,
                                qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_text(qplan::inspect::inspect_json(reader.view()), write, user);
  });
}

qplan_status qplan_tuning_space(const void* plan, size_t size, uint32_t isa_limit, uint32_t num_threads,
                                qplan_write_fn write, void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_text(qplan::schedule::tuning_space(reader.view(), isa_limit, num_threads), write, user);
  });
}

qplan_status qplan_reschedule(const void* plan, size_t size, const char* schedules, qplan_write_fn write,
                              void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    if (schedules == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, "pack: schedules is NULL");
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    const qplan::AlignedBytes result = qplan::schedule::reschedule(reader.view(), schedules);
    write(user, reinterpret_cast<const char*>(result.data()), result.size());
  });
}

qplan_status qplan_fit_costs(const char* measurements, qplan_write_fn write, void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    if (measurements == nullptr) qplan::fail(QPLAN_INVALID_ARGUMENT, "pack: measurements is NULL");
    qplan::write_text(qplan::target::fit_costs_json(measurements), write, user);
  });
}

qplan_status qplan_extract_step(const void* plan, size_t size, uint32_t step, qplan_write_fn write,
                                void* user, qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    const qplan::AlignedBytes result = qplan::schedule::extract_step(reader.view(), step);
    write(user, reinterpret_cast<const char*>(result.data()), result.size());
  });
}

qplan_status qplan_disassemble(const void* plan, size_t size, qplan_write_fn write, void* user,
                               qplan_error* error) {
  return qplan::guarded({}, error, [&] {
    qplan::check_write(write);
    const qplan::inspect::PlanReader reader(qplan::bytes_of(plan, size, "plan"));
    qplan::write_lines(qplan::inspect::disassemble(reader.view()), write, user);
  });
}
