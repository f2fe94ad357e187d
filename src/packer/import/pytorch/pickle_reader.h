// The names that a pickle of a TorchScript archive may use, and what calling one of them means.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

// Reads the pickles of TorchScript archives (data.pkl, constants.pkl): protocol 2, the opcodes that PyTorch's
// own pickler writes. Nothing is looked up, imported or called: GLOBAL gives an inert name from a fixed list,
// REDUCE knows what a handful of those names build, and any other name is refused.

// The value that the pickle makes, in the table. storage_prefix: before the key of a storage in the archive's
// names, "net/constants/". PackError (QPLAN_MODEL_INVALID) with the byte at which something is wrong.
Ref read_pickle(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_PICKLE_READER_H_
