#include "src/vta/sim/dram.h"

#include <utility>

namespace qplan::sim {
namespace {

bool holds(const Segment& segment, uint64_t address, uint64_t bytes) {
  return address >= segment.address && address - segment.address <= segment.bytes &&
         bytes <= segment.bytes - (address - segment.address);
}

}  // namespace

void Dram::add(Segment segment) {
  if (segment.is_writable) {
    Touches untouched = {};
    untouched.is_known = segment.is_initialised ? 1 : 0;
    segment.touches.assign((segment.bytes + kGranule - 1) / kGranule, untouched);
  }
  segments_.push_back(std::move(segment));
}

Segment* Dram::find(uint64_t address, uint64_t bytes) {
  if (last_ < segments_.size() && holds(segments_[last_], address, bytes)) return &segments_[last_];
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (!holds(segments_[i], address, bytes)) continue;
    last_ = i;
    return &segments_[i];
  }
  return nullptr;
}

void Dram::forget_touches() {
  for (Segment& segment : segments_) {
    for (Touches& touches : segment.touches) {
      const uint32_t is_known = touches.is_known;
      touches = {};
      touches.is_known = is_known & 1;
    }
  }
}

}  // namespace qplan::sim
