#include "src/packer/target/step_params.h"

namespace qplan::target {

bool StepParams::operator==(const StepParams& other) const {
  if (type_ != other.type_) return false;
  if (table_ == other.table_) return true;
  switch (type_) {
#define QPLAN_PARAMS(table) \
  case kParamsType<table>:  \
    return *get_if<table>() == *other.get_if<table>();
#include "src/packer/target/step_params.def"
    case format::KernelParams_NONE:
      break;
  }
  return true;
}

}  // namespace qplan::target
