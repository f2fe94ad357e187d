// The names that a pickle of a TorchScript archive may use, and what calling one of them means.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_NAMES_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_NAMES_H_

#include <optional>
#include <string_view>
#include <vector>

#include "src/packer/import/pytorch/value.h"

namespace qplan::pt {

// "torch._utils._rebuild_tensor_v2", "__torch__.Net", "torch.FloatStorage", ...
bool is_known_name(std::string_view name);
// A class of the archive, or one of torch.classes: "__torch__.…".
bool is_class_name(std::string_view name);
// The type of a storage: "torch.FloatStorage".
std::optional<ScalarType> storage_type(std::string_view name);
// The result of the named function for the arguments. PackError where it is no function or the arguments do
// not fit.
Ref build(std::string_view name, const std::vector<Ref>& arguments, ValueTable& values);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_NAMES_H_
