// The one place where the packer is put together with the devices that it knows by name.
#ifndef QPLAN_SRC_PACKER_PIPELINE_TARGETS_H_
#define QPLAN_SRC_PACKER_PIPELINE_TARGETS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/target.h"

namespace qplan::pipeline {

std::span<const target::TargetKind> own_targets();
// As target::parse_targets, of the packer's own targets and of libraries.
std::vector<target::Target> parse_targets(std::string_view text, target::Libraries libraries = {});
std::vector<target::Target> parse_target_file(std::string_view json, std::string_view file,
                                              target::Libraries libraries = {});
// The targets that the options name. PackError (QPLAN_INVALID_ARGUMENT).
std::vector<target::Target> read_targets(const PackOptions& options);
std::string supported_ops_page();

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_TARGETS_H_
