// A device of the test's own: it takes single operators, and its programs are the text of their region.
#ifndef QPLAN_TESTS_PACKER_SUPPORT_TOY_TARGET_H_
#define QPLAN_TESTS_PACKER_SUPPORT_TOY_TARGET_H_

#include <string>
#include <utility>
#include <vector>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"

namespace qplan::testing {

struct ToyOptions {
  bool packed = true;       // boundary tensors are packed in its buffers; else after 16 bytes of 7
  uint64_t scratch = 0;     // bytes
  uint32_t alignment = 64;  // of every slot
  std::string refuse = {};  // operators whose source names are among these letters are refused
};

inline target::CompiledRegion compile_toy(const ToyOptions& options, const ir::Module& module,
                                          const ir::Function& region) {
  std::vector<target::RefusedNode> refused;
  for (uint32_t n = 0; n < region.nodes().size(); ++n) {
    const std::string& name = region.nodes()[n].name;
    if (name.empty() || options.refuse.find(name) == std::string::npos) continue;
    refused.push_back({n, {"toy.shape", "'" + name + "' does not fit", "make it smaller"}});
  }
  if (!refused.empty()) throw target::RegionRefused(std::move(refused));
  target::CompiledRegion result;
  result.format = 0x31594f54;  // "TOY1"
  const std::string text = text::print(module) + region.name();
  result.blob.assign(text.begin(), text.end());
  result.program_bytes = 96;
  result.cycles = 1000 * region.nodes().size();
  const auto add = [&](format::NpuUse use, uint32_t index, const ir::TensorType& type) {
    target::Arrangement arrangement = target::packed_arrangement(type);
    if (!options.packed) {
      arrangement.origin = 16;
      arrangement.size += 16;
      arrangement.fill = 7;
    }
    const auto slot = static_cast<uint32_t>(result.slots.size());
    result.slots.push_back({slot, use, index, arrangement, options.alignment});
  };
  for (uint32_t i = 0; i < region.params().size(); ++i) {
    add(format::NpuUse_INPUT, i, region.type(region.params()[i]));
  }
  for (uint32_t i = 0; i < region.outputs().size(); ++i) {
    add(format::NpuUse_OUTPUT, i, region.type(region.outputs()[i]));
  }
  if (options.scratch != 0) {
    target::Arrangement scratch;
    scratch.size = options.scratch;
    const auto slot = static_cast<uint32_t>(result.slots.size());
    result.slots.push_back({slot, format::NpuUse_SCRATCH, 0, scratch, options.alignment});
  }
  for (const ir::Node& node : region.nodes()) result.units.push_back({node.name, 1000, 0});
  return result;
}

inline target::Target toy_target(const std::vector<std::string>& operators, const ToyOptions& options = {}) {
  target::Target target = target::operators_target("toy", operators);
  target.compile = [options](const ir::Module& module, const ir::Function& region) {
    return compile_toy(options, module, region);
  };
  return target;
}

// The toy, and the CPU.
inline std::vector<target::Target> toy_targets(const std::vector<std::string>& operators,
                                               const ToyOptions& options = {}) {
  std::vector<target::Target> targets = pipeline::parse_targets("cpu");
  targets.insert(targets.begin(), toy_target(operators, options));
  return targets;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_PACKER_SUPPORT_TOY_TARGET_H_
