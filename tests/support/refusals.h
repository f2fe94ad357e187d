// Tests of what a family's bind refuses: a valid step, and a table of single changes that make it wrong.
#ifndef QPLAN_TESTS_SUPPORT_REFUSALS_H_
#define QPLAN_TESTS_SUPPORT_REFUSALS_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/bind/family.h"
#include "tests/support/test_step.h"

namespace qplan::testing {

// Spec describes a step; its default value is valid. `make` builds the plan and hands the step to `use`.
template <typename Spec>
struct Refusal {
  std::function<void(Spec&)> change;
  const char* text;  // part of the error's
  qplan_status status = QPLAN_PLAN_CORRUPT;
};

template <typename Spec>
void expect_refusals(const KernelFamily& family, const std::vector<Refusal<Spec>>& refusals) {
  for (const Refusal<Spec>& refusal : refusals) {
    Spec spec;
    refusal.change(spec);
    TestStep step(family.id);
    spec.make(step);
    ArgsStorage args;
    Error error;
    EXPECT_EQ(step.bind(family, &args, &error), refusal.status) << refusal.text << ": " << error.text();
    EXPECT_NE(std::string(error.text()).find(refusal.text), std::string::npos)
        << "expected \"" << refusal.text << "\", got \"" << error.text() << "\"";
    Error of_table;
    EXPECT_EQ(family.bind(step.table_view(), true, args.bytes, &of_table), refusal.status);
    EXPECT_STREQ(of_table.text(), error.text()) << "from an array of tensors";
    EXPECT_EQ(std::string(error.text()).rfind(std::string(family.name) + ": ", 0), 0u) << error.text();
  }
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_REFUSALS_H_
