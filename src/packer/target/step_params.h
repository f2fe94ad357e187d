// The parameters of a step as values: one struct for each table of parameters in format/plan.fbs.
// step_params.def lists their fields; src/packer/target/pack_step.cc writes them.
#ifndef QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
#define QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "format/plan_generated.h"
#include "src/packer/op/custom.h"

namespace qplan::target {

// Float requantisation beside multipliers and shifts (format/README.md, "Float requantisation"). The vectors
// are empty under FloatEpilogue_NONE.
struct FloatEpilogues {
  format::FloatEpilogue form = format::FloatEpilogue_NONE;
  std::vector<float> scale;
  std::vector<float> offset;
  bool operator==(const FloatEpilogues&) const = default;
};

using op::CustomOption;

#define QPLAN_PARAMS(table) struct table {
#define QPLAN_FIELD(type, name, shown) type name = {};
#define QPLAN_FLOAT_EPILOGUES(name) FloatEpilogues name = {};
#define QPLAN_PARAMS_END(table)                  \
  bool operator==(const table&) const = default; \
  }                                              \
  ;
#include "src/packer/target/step_params.def"

// The index of an fallback is the union's type.
using StepParams = std::variant<std::monostate
#define QPLAN_PARAMS(table) , table
#include "src/packer/target/step_params.def"
                                >;
static_assert(std::variant_size_v<StepParams> == format::KernelParams_MAX + 1);

#define QPLAN_PARAMS(table)                                                                              \
  static_assert(                                                                                         \
      std::is_same_v<                                                                                    \
          std::variant_alternative_t<format::KernelParamsTraits<format::table>::enum_value, StepParams>, \
          table>,                                                                                        \
      #table " has another place in the schema's union");
#include "src/packer/target/step_params.def"

inline format::KernelParams type_of(const StepParams& params) {
  return static_cast<format::KernelParams>(params.index());
}

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
