// The parameters of a step as values: one struct for each table of parameters in format/plan.fbs.
// step_params.def lists their fields; src/packer/target/pack_step.cc writes them.
#ifndef QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
#define QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

// The number of a table in the schema's union.
template <typename Table>
inline constexpr format::KernelParams kParamsType = format::KernelParams_NONE;
#define QPLAN_PARAMS(table)                                  \
  template <>                                                \
  inline constexpr format::KernelParams kParamsType<table> = \
      format::KernelParamsTraits<format::table>::enum_value;
#include "src/packer/target/step_params.def"

// One of the tables, or none. Copies share what they hold, which never changes. It is no std::variant: that
// would compile a copy and a comparison of every table again in each file that copies a step.
class StepParams {
 public:
  StepParams() = default;
  template <typename Table, format::KernelParams kType = kParamsType<Table>>
  requires(kType != format::KernelParams_NONE) StepParams(Table table)
      : type_(kType), table_(std::make_shared<const Table>(std::move(table))) {}

  format::KernelParams type() const { return type_; }
  // Null where it is another table.
  template <typename Table>
  const Table* get_if() const {
    return type_ == kParamsType<Table> ? static_cast<const Table*>(table_.get()) : nullptr;
  }
  // Equal tables of the same type.
  bool operator==(const StepParams& other) const;

 private:
  format::KernelParams type_ = format::KernelParams_NONE;
  std::shared_ptr<const void> table_;
};

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
