// The constants of meta[relay.Constant][k]: TVM's JSON of a map from type key to array of nodes, with its
// NDArrays base64-encoded next to it.
#ifndef QPLAN_SRC_PACKER_TEXT_METADATA_H_
#define QPLAN_SRC_PACKER_TEXT_METADATA_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::text {

// The JSON, without the line "#[metadata]".
std::string write_metadata(const std::vector<ir::ConstantRef>& constants);
// PackError without a place.
std::vector<ir::ConstantRef> read_metadata(std::string_view json);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_METADATA_H_
