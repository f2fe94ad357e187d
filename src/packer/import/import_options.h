// Information that the caller gives an importer because the model lacks it. An importer ignores options that
// its format cannot use, and refuses names that the model does not have.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_OPTIONS_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "src/packer/ir/module.h"

namespace qplan {

struct ImportOptions {
  // Inputs and unbound parameters that become constants, by name.
  std::map<std::string, ir::ConstantRef, std::less<>> bindings;
  // Types of inputs: they fix dynamic extents, and type the free variables of Relay text.
  std::map<std::string, ir::TensorType, std::less<>> input_types;
  // Data for constants that a text names without giving them, the same for the same seed on every host.
  // Without a seed such a text is refused.
  std::optional<uint64_t> synthesize_constants;
};

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_OPTIONS_H_
