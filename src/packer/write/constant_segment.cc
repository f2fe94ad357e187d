#include "src/packer/write/constant_segment.h"

#include <string_view>
#include <unordered_map>

#include "src/base/checked.h"

namespace qplan::write {

ConstantSegment lay_out_constants(const target::Program& program) {
  ConstantSegment segment;
  segment.offsets.assign(program.tensors.size(), 0);
  std::unordered_map<std::string_view, uint64_t> offset_of;  // only looked up, so its order does not matter
  for (target::TensorId t = 0; t < program.tensors.size(); ++t) {
    const target::ProgramTensor& tensor = program.tensors[t];
    if (!tensor.is_constant()) continue;
    const std::string_view content(reinterpret_cast<const char*>(tensor.constant->data()),
                                   tensor.constant->size());
    const uint64_t next = round_up(segment.size, ConstantSegment::kAlignment);
    const auto [entry, is_new] = offset_of.emplace(content, next);
    segment.offsets[t] = entry->second;
    if (!is_new) continue;
    segment.first_tensor.push_back(t);
    segment.size = next + content.size();
  }
  return segment;
}

}  // namespace qplan::write
