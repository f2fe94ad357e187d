#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

std::string describe(const PlacedValue& value) {
  return "'" + value.name + "' (bytes " + std::to_string(value.offset) + " to " +
         std::to_string(value.offset + value.size) + ", steps " + std::to_string(value.first) + " to " +
         std::to_string(value.last) + ")";
}

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INTERNAL, "memory plan: " + text + "; this is a defect of the packer");
}

// Who wrote each byte last, and as the how manieth value of all.
class Bytes {
 public:
  struct Range {
    uint64_t end;
    uint32_t writer;
    size_t time;
  };

  void write(uint64_t begin, uint64_t end, uint32_t writer, size_t time) {
    if (begin == end) return;
    split(begin);
    split(end);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    ranges_.emplace(begin, Range{end, writer, time});
  }

  // The first of [begin, end) that was written after `time`, by somebody else than `excused`.
  uint32_t writer_after(uint64_t begin, uint64_t end, size_t time, uint32_t excused) const {
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin()) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      if (range->second.end <= begin || range->second.time <= time) continue;
      if (range->second.writer != excused) return range->second.writer;
    }
    return kNobody;
  }

 private:
  // Splits the range that contains this address, if there is one.
  void split(uint64_t at) {
    const auto after = ranges_.lower_bound(at);
    if (after == ranges_.begin()) return;
    Range& before = std::prev(after)->second;
    if (before.end <= at) return;
    ranges_.emplace_hint(after, at, before);
    before.end = at;
  }

  std::map<uint64_t, Range> ranges_;  // by where they begin; none overlaps another
};

class Replay {
 public:
  explicit Replay(std::span<const PlacedValue> values)
      : values_(values),
        time_(values.size(), 0),
        parts_(values.size()),
        replaced_by_(values.size(), kNobody) {
    for (uint32_t v = 0; v < values.size(); ++v) {
      if (values[v].inside != kNobody && values[v].first < values[values[v].inside].first) {
        parts_[values[v].inside].push_back(v);
      }
    }
  }

  void run() {
    std::vector<uint32_t> begins(values_.size());
    for (uint32_t i = 0; i < values_.size(); ++i) begins[i] = i;
    std::vector<uint32_t> ends = begins;
    std::ranges::stable_sort(
        begins, {}, [&](uint32_t i) { return std::pair(values_[i].first, values_[i].is_input ? 0 : 1); });
    std::ranges::stable_sort(ends, {}, [&](uint32_t i) { return values_[i].last; });
    auto ended = ends.begin();
    for (const uint32_t v : begins) {
      for (; ended != ends.end() && values_[*ended].last < values_[v].first; ++ended) expect_intact(*ended);
      write(v);
    }
    for (; ended != ends.end(); ++ended) expect_intact(*ended);
  }

 private:
  void write(uint32_t v) {
    const PlacedValue& value = values_[v];
    time_[v] = ++now_;
    if (value.replaces != kNobody) replaced_by_[value.replaces] = v;
    if (value.inside != kNobody && value.first > values_[value.inside].first) {
      return expect_intact(value.inside);  // it is there already
    }
    std::vector<uint32_t>& parts = parts_[v];
    std::ranges::sort(parts, {}, [&](uint32_t p) { return values_[p].offset; });
    uint64_t begin = value.offset;
    for (const uint32_t p : parts) {
      expect_intact(p);
      if (values_[p].offset < begin)
        fail(describe(values_[p]) + " overlaps another part of " + describe(value));
      bytes_.write(begin, values_[p].offset, v, now_);
      begin = values_[p].offset + values_[p].size;
    }
    bytes_.write(begin, value.offset + value.size, v, now_);
  }

  void expect_intact(uint32_t v) const {
    const PlacedValue& value = values_[v];
    const uint32_t other =
        bytes_.writer_after(value.offset, value.offset + value.size, time_[v], replaced_by_[v]);
    if (other != kNobody) fail(describe(value) + " overlaps " + describe(values_[other]));
  }

  std::span<const PlacedValue> values_;
  std::vector<size_t> time_;                  // when they were written; 0: not yet
  std::vector<std::vector<uint32_t>> parts_;  // of values that are made of earlier ones
  std::vector<uint32_t> replaced_by_;
  Bytes bytes_;
  size_t now_ = 0;
};

void check_replaces(std::span<const PlacedValue> values, const PlacedValue& value) {
  if (value.replaces >= values.size()) fail(describe(value) + " replaces a value that does not exist");
  const PlacedValue& old = values[value.replaces];
  const bool is_earlier = old.first < value.first || (old.is_input && !value.is_input);
  if (old.offset != value.offset || old.size < value.size || old.last != value.first || !is_earlier) {
    fail(describe(value) + " cannot be computed in place of " + describe(old));
  }
}

void check_inside(std::span<const PlacedValue> values, const PlacedValue& value) {
  if (value.inside >= values.size()) fail(describe(value) + " is part of a value that does not exist");
  const PlacedValue& whole = values[value.inside];
  const PlacedValue& earlier = whole.first < value.first ? whole : value;
  const PlacedValue& later = whole.first < value.first ? value : whole;
  if (value.offset < whole.offset || value.offset - whole.offset != value.inside_offset ||
      value.size > whole.size || value.inside_offset > whole.size - value.size ||
      earlier.first == later.first || earlier.last < later.first || later.replaces != kNobody) {
    fail(describe(value) + " is no part of " + describe(whole));
  }
}

void check_value(std::span<const PlacedValue> values, const PlacedValue& value, uint64_t arena_size) {
  if (value.size == 0 || value.size > arena_size || value.offset > arena_size - value.size) {
    fail(describe(value) + " reaches beyond the arena of " + std::to_string(arena_size) + " bytes");
  }
  if (value.offset % value.alignment != 0)
    fail(describe(value) + " is not aligned to " + std::to_string(value.alignment));
  if (value.first > value.last) fail(describe(value) + " ends before it begins");
  if (value.replaces != kNobody) check_replaces(values, value);
  if (value.inside != kNobody) check_inside(values, value);
}

}  // namespace

void check_no_overlap(std::span<const PlacedValue> values, uint64_t arena_size) {
  for (const PlacedValue& value : values) check_value(values, value, arena_size);
  Replay(values).run();
}

namespace {

using target::Program;
using target::ProgramStep;
using target::RegionSlot;
using target::TensorId;

struct Range {
  uint32_t device;  // the bank of one, or an area: kNone - area
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
    const uint32_t device = arena_.device_of[t];
    return {device == kNone ? kNone - arena_.area(t) : device, arena_.offsets[t], arena_.offsets[t] + size};
  }

  void check_step(uint32_t s) const {
    const ProgramStep& step = program_.steps[s];
    for (const TensorId output : step.outputs) {
      check_apart(s, step.inputs, output, "the region's output");
    }
    check_slots(s);
    const uint32_t end = s + step.npu->num_alternative_steps;
    if (end >= program_.steps.size()) fail(s, "its fallback reaches beyond the last step");
    for (uint32_t a = s + 1; a <= end; ++a) {
      for (const TensorId output : program_.steps[a].outputs) {
        check_apart(s, step.inputs, output, "an alternative's result");
        const bool is_own = std::ranges::find(step.outputs, output) != step.outputs.end();
        if (!is_own) check_apart(s, step.outputs, output, "an alternative's intermediate result");
      }
    }
  }

  uint32_t bank_of(const target::NpuRegion& region, const RegionSlot& slot) const {
    uint32_t bank = 0;
    while (bank < arena_.devices.size() && (arena_.devices[bank].key.device != region.target ||
                                            arena_.devices[bank].key.memory_class != slot.memory_class))
      ++bank;
    return bank;
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
    std::vector<Range> ranges;
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint64_t begin = arena_.slot_offsets[s].at(i);
      const uint32_t device = bank_of(*step.npu, slots[i]);
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
      if (slots[i].use == format::NpuUse_INPUT && arena_.kept[s].at(i) != 0)
        check_kept(s, slots[i], own, begin);
      for (const std::vector<TensorId>* tensors : {&step.inputs, &step.outputs}) {
        for (const TensorId tensor : *tensors) {
          if (tensor == own && arena_.device_of[tensor] == device) {
            const Range place = range(tensor);
            if (place.begin == range_of_slot.begin && place.end == range_of_slot.end) continue;
            fail(s, cat("slot ", slots[i].slot, " is not at its tensor's place"));
          }
          if (!range(tensor).overlaps(range_of_slot)) continue;
          fail(s, cat("slot ", slots[i].slot, " shares bytes with '", program_.tensors[tensor].name, "'"));
        }
      }
    }
  }

  // What an earlier region has left for the slot is there, and nobody has to copy it.
  void check_kept(uint32_t s, const RegionSlot& slot, TensorId tensor, uint64_t begin) const {
    const uint32_t distance =
        arena_.kept[s][static_cast<size_t>(&slot - program_.steps[s].npu->slots.data())];
    const ProgramStep* maker = distance > s ? nullptr : &program_.steps[s - distance];
    bool found = false;
    for (size_t i = 0; maker != nullptr && maker->npu != nullptr && i < maker->npu->slots.size(); ++i) {
      const RegionSlot& left = maker->npu->slots[i];
      found =
          found || (left.use == format::NpuUse_OUTPUT && slot_tensor(*maker, left) == tensor &&
                    maker->npu->target == program_.steps[s].npu->target &&
                    arena_.kept[s - distance].at(i) != 0 && arena_.slot_offsets[s - distance][i] == begin &&
                    may_stay(left.arrangement, slot.arrangement, program_.tensors[tensor].type));
    }
    if (!found) fail(s, cat("slot ", slot.slot, " reads what no region has left there"));
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
