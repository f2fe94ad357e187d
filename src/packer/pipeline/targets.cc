#include "src/packer/pipeline/targets.h"

#include "src/packer/target/external/external.h"
#include "src/packer/target/target_list.h"
#include "src/vta/compiler/target.h"

namespace qplan::pipeline {

// Messages and docs/supported_ops.md list them in this order.
std::span<const target::TargetKind> own_targets() {
  static const target::TargetKind kinds[] = {target::cpu_kind(), vta::compiler::target_kind()};
  return kinds;
}

std::vector<target::Target> parse_targets(std::string_view text, target::Libraries libraries) {
  return target::parse_targets(text, {own_targets(), libraries});
}

std::vector<target::Target> parse_target_file(std::string_view json, std::string_view file,
                                              target::Libraries libraries) {
  return target::parse_target_file(json, file, {own_targets(), libraries});
}

std::vector<target::Target> read_targets(const PackOptions& options) {
  std::vector<const qplan_npu_target*> libraries;
  for (const std::string& path : options.target_libs)
    libraries.push_back(&target::external::load_library(path, own_targets()));
  if (!options.target_file) return parse_targets(options.target, libraries);
  return parse_target_file(options.target_file->json, options.target_file->name, libraries);
}

std::string supported_ops_page() { return target::supported_ops_page(own_targets()); }

}  // namespace qplan::pipeline
