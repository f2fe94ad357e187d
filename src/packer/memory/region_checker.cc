#include "src/packer/memory/region_checker.h"

#include <algorithm>
#include <string>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::memory {
namespace {

using target::Program;
using target::ProgramStep;
using target::RegionSlot;
using target::TensorId;

struct Range {
  uint32_t device;
  uint64_t begin, end;

  bool overlaps(const Range& other) const {
    return device == other.device && begin < other.end && other.begin < end;
  }
};

class Checker {
 public:
  Checker(const Program& program, const Arena& arena) : program_(program), arena_(arena) {}

  void run() const {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (program_.steps[s].npu != nullptr) check_step(s);
    }
  }

 private:
  Range range(TensorId t) const {
    const auto size = static_cast<uint64_t>(program_.tensors[t].type.size_bytes());
    return {arena_.device_of[t], arena_.offsets[t], arena_.offsets[t] + size};
  }

  void check_step(uint32_t s) const {
    const ProgramStep& step = program_.steps[s];
    for (const TensorId output : step.outputs) {
      check_apart(s, step.inputs, output, "the region's output");
    }
    check_slots(s);
    const uint32_t end = s + step.npu->num_alternative_steps;
    if (end >= program_.steps.size()) fail(s, "its alternative reaches beyond the last step");
    for (uint32_t a = s + 1; a <= end; ++a) {
      for (const TensorId output : program_.steps[a].outputs) {
        check_apart(s, step.inputs, output, "an alternative's result");
        const bool is_own = std::ranges::find(step.outputs, output) != step.outputs.end();
        if (!is_own) check_apart(s, step.outputs, output, "an alternative's intermediate result");
      }
    }
  }

  void check_apart(uint32_t s, const std::vector<TensorId>& others, TensorId tensor, const char* what) const {
    for (const TensorId other : others) {
      if (!range(tensor).overlaps(range(other))) continue;
      fail(s, cat(what, " '", program_.tensors[tensor].name, "' shares bytes with '",
                  program_.tensors[other].name, "'"));
    }
  }

  // A tensor in place is in its slot; every other tensor of the step overlaps no slot except its own.
  void check_slots(uint32_t s) const {
    const ProgramStep& step = program_.steps[s];
    const std::vector<RegionSlot>& slots = step.npu->slots;
    const uint32_t device = step.npu->target;
    std::vector<Range> ranges;
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint64_t begin = arena_.slot_offsets[s].at(i);
      const Range range_of_slot = {device, begin, begin + slots[i].arrangement.size};
      if (range_of_slot.end > arena_.devices[device].size) {
        fail(s, cat("slot ", slots[i].slot, " reaches beyond the device's bank"));
      }
      for (size_t k = 0; k < ranges.size(); ++k) {
        if (range_of_slot.overlaps(ranges[k])) {
          fail(s, cat("slots ", slots[k].slot, " and ", slots[i].slot, " share bytes"));
        }
      }
      ranges.push_back(range_of_slot);
      const uint32_t own = slot_tensor(step, slots[i]);
      for (const std::vector<TensorId>* tensors : {&step.inputs, &step.outputs}) {
        for (const TensorId tensor : *tensors) {
          if (tensor == own && arena_.device_of[tensor] == device) {
            const Range place = range(tensor);
            if (place.begin == range_of_slot.begin && place.end == range_of_slot.end) continue;
            fail(s, cat("slot ", slots[i].slot, " is not where its tensor lies"));
          }
          if (!range(tensor).overlaps(range_of_slot)) continue;
          fail(s, cat("slot ", slots[i].slot, " shares bytes with '", program_.tensors[tensor].name, "'"));
        }
      }
    }
  }

  [[noreturn]] void fail(uint32_t s, const std::string& text) const {
    throw PackError(QPLAN_INTERNAL, cat("memory plan: region '", program_.steps[s].name, "' (step ", s,
                                        "): ", text, "; this is a defect of the packer"));
  }

  const Program& program_;
  const Arena& arena_;
};

}  // namespace

void check_regions(const Program& program, const Arena& arena) { Checker(program, arena).run(); }

}  // namespace qplan::memory
