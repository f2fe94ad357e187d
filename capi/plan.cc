// qplan_plan_*: a plan file as a verified view.
#include "format/plan_view.h"
#include "kernels/cpu.h"
#include "qplan/qplan.h"
#include "src/base/error.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"
#include "src/runtime/work.h"

using qplan::Error;
using qplan::format::count_of;
using qplan::format::Function;
using qplan::format::PlanView;

namespace {

// Null when there is no such function or direction.
const flatbuffers::Vector<uint32_t>* io_list(const PlanView& view, const char* function, int direction) {
  if (!view.is_open()) return nullptr;
  const Function* found = view.find_function(function);
  if (found == nullptr) return nullptr;
  if (direction == QPLAN_INPUT) return found->inputs();
  return direction == QPLAN_OUTPUT ? found->outputs() : nullptr;
}

qplan_status finish(const Error& error, qplan_error* to) {
  error.copy_to(to);
  return error.status();
}

}  // namespace

qplan_status qplan_plan_open(qplan_plan* plan, const void* bytes, size_t size, uint32_t flags,
                             qplan_error* error) {
  Error result;
  PlanView view;
  if (plan != nullptr) qplan::put_view(view, plan);
  if (plan == nullptr || bytes == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT) << "plan: " << (plan == nullptr ? "plan" : "bytes") << " is NULL";
  } else if ((flags & ~uint32_t{QPLAN_PLAN_DIGEST}) != 0) {
    result.set(QPLAN_INVALID_ARGUMENT)
        << "plan: unknown flags " << flags << ", expected 0 or QPLAN_PLAN_DIGEST";
  } else if (view.open(bytes, size, (flags & QPLAN_PLAN_DIGEST) != 0, &result) == QPLAN_OK) {
    qplan::put_view(view, plan);
  }
  return finish(result, error);
}

uint32_t qplan_plan_io_count(const qplan_plan* plan, const char* function, int direction) {
  return count_of(io_list(qplan::get_view(plan), function, direction));
}

qplan_status qplan_plan_io_info(const qplan_plan* plan, const char* function, int direction, uint32_t index,
                                qplan_tensor_info* info) {
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || info == nullptr || (direction != QPLAN_INPUT && direction != QPLAN_OUTPUT)) {
    return QPLAN_INVALID_ARGUMENT;
  }
  if (view.find_function(function) == nullptr) return QPLAN_NOT_FOUND;
  const auto* list = io_list(view, function, direction);
  if (index >= count_of(list)) return QPLAN_INVALID_ARGUMENT;
  return qplan::fill_fields(qplan::tensor_info(view, list->Get(index)), info) ? QPLAN_OK
                                                                              : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_plan_get_info(const qplan_plan* plan, qplan_plan_info* info) {
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || info == nullptr) return QPLAN_INVALID_ARGUMENT;
  qplan_plan_info found = {};
  found.is_for_other_arch = qplan::is_for_other_arch(view) ? 1 : 0;
  found.target_options = qplan::target_options(view);
  found.runtime_arch = qplan::cpu_arch();
  found.version_major = view.header().version_major;
  found.version_minor = view.header().version_minor;
  return qplan::fill_fields(found, info) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_plan_work(const qplan_plan* plan, const char* function, const qplan_kernel_set* kernels,
                             uint64_t* work, qplan_error* error) {
  Error result;
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || kernels == nullptr || work == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT) << "plan: "
                                       << (!view.is_open()      ? "the plan is not open"
                                           : kernels == nullptr ? "kernels is NULL"
                                                                : "work is NULL");
    return finish(result, error);
  }
  const Function* found = view.find_function(function);
  if (found == nullptr) {
    result.set(QPLAN_NOT_FOUND) << "plan: there is no function " << qplan::Quoted{function};
  } else {
    (void)qplan::function_work(view, *found, *kernels, work, &result);
  }
  return finish(result, error);
}
