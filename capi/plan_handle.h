// qplan_plan's storage holds a PlanView.
#ifndef QPLAN_CAPI_PLAN_HANDLE_H_
#define QPLAN_CAPI_PLAN_HANDLE_H_

#include <string.h>

#include <type_traits>

#include "format/plan_view.h"
#include "qplan/qplan.h"

namespace qplan {

static_assert(sizeof(format::PlanView) <= sizeof(qplan_plan::opaque), "qplan_plan is ABI");
static_assert(std::is_trivially_copyable<format::PlanView>::value, "it is moved with memcpy");

inline void put_view(const format::PlanView& view, qplan_plan* plan) {
  memset(plan->opaque, 0, sizeof(plan->opaque));
  memcpy(plan->opaque, &view, sizeof(view));
}

// A closed view for NULL and for a plan that was not opened.
inline format::PlanView get_view(const qplan_plan* plan) {
  format::PlanView view;
  if (plan != nullptr) memcpy(&view, plan->opaque, sizeof(view));
  return view;
}

}  // namespace qplan

#endif  // QPLAN_CAPI_PLAN_HANDLE_H_
