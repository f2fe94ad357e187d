#include <algorithm>
#include <cstddef>

#include "format/memory_layout.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

using target::Program;
using target::ProgramStep;
using target::TensorId;

// Wholes that are parts of others: bounds how often a tensor is moved, here and in the checker.
constexpr uint32_t kMaxDepth = 16;

// A part and its place in a whole.
struct Place {
  TensorId part;
  uint64_t offset;
};

// The division of one step: an output of several inputs (it joins them), or outputs of one input (it cuts
// it).
struct Division {
  uint32_t step = 0;
  TensorId whole = kNone;
  bool joins = false;
  std::vector<Place> places;
};

// The tensors of a buffer, and when its bytes change. A step that finds parts in their places changes none.
struct Contents {
  std::vector<TensorId> tensors;
  uint32_t last_write = 0;
  uint32_t depth = 0;
};

class PartPlacer {
 public:
  PartPlacer(const Program& program, const DeviceTensors& device_of, const PartOffsetQuery& part_offset,
             Lifetimes* lifetimes)
      : program_(program),
        part_offset_(part_offset),
        l_(*lifetimes),
        may_share_(program.tensors.size(), true),
        overwritten_(program.tensors.size(), UINT32_MAX),
        contents_(l_.buffers.size()),
        is_joined_(l_.buffers.size(), false),
        live_(static_cast<uint32_t>(program.steps.size()), format::kArenaAlignment) {
    for (size_t t = 0; t < program.tensors.size(); ++t) {
      if (l_.buffer[t] == kNone || device_of[t] != kNone) may_share_[t] = false;
      if (l_.buffer[t] != kNone) contents_[l_.buffer[t]].tensors.push_back(static_cast<TensorId>(t));
      if (l_.replaces[t] != kNone) overwritten_[l_.replaces[t]] = l_.first[t];
    }
    for (const std::vector<TensorId>* ends : {&program.inputs, &program.outputs}) {
      for (const TensorId tensor : *ends) may_share_[tensor] = false;
    }
    for (const target::ProgramState& state : program.states)
      may_share_[state.input] = may_share_[state.output] = false;
    std::vector<bool> begins_with_another(l_.buffers.size(), false);
    for (size_t b = 0; b < l_.buffers.size(); ++b) {
      if (l_.buffers[b].rest_of != kNone)
        begins_with_another[b] = begins_with_another[l_.buffers[b].rest_of] = true;
    }
    for (size_t t = 0; t < program.tensors.size(); ++t) {
      if (l_.buffer[t] != kNone && begins_with_another[l_.buffer[t]]) may_share_[t] = false;
    }
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      const ProgramStep& step = program.steps[s];
      for (const std::vector<TensorId>* tensors : {&step.inputs, &step.outputs}) {
        for (const TensorId tensor : *tensors) {
          if (step.npu != nullptr) may_share_[tensor] = false;
        }
      }
      for (const TensorId tensor : step.outputs) contents_[l_.buffer[tensor]].last_write = s;
    }
    for (size_t b = 0; b < l_.buffers.size(); ++b) {
      if (l_.device[b] == kNone) live_.add(l_.buffers[b]);
    }
  }

  void run() {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      Division division = division_of(s);
      if (division.places.empty()) continue;
      std::erase_if(division.places, [&](const Place& place) { return !stays_whole(division, place.part); });
      join(&division);
    }
    drop_joined_buffers();
  }

 private:
  uint64_t size(TensorId t) const { return static_cast<uint64_t>(program_.tensors[t].type.size_bytes()); }
  const Buffer& buffer(TensorId t) const { return l_.buffers[l_.buffer[t]]; }

  Division division_of(uint32_t s) const {
    Division division;
    division.step = s;
    const ProgramStep& step = program_.steps[s];
    if (step.inputs.size() != 1 && step.outputs.size() != 1) return division;
    // With one input and one output the smaller is the part: a slice lies in what it is cut from.
    division.joins =
        step.outputs.size() == 1 && (step.inputs.size() > 1 || size(step.inputs[0]) <= size(step.outputs[0]));
    division.whole = division.joins ? step.outputs[0] : step.inputs[0];
    if (!may_share_[division.whole]) return division;
    const std::vector<TensorId>& parts = division.joins ? step.inputs : step.outputs;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      if (!may_share_[parts[i]] || std::ranges::count(parts, parts[i]) != 1) continue;
      const std::optional<uint64_t> offset = division.joins ? part_offset_(s, 0, i) : part_offset_(s, i, 0);
      if (offset) division.places.push_back({parts[i], *offset});
    }
    return division;
  }

  // Whether nothing would write over the part's bytes while it or the whole needs them.
  bool stays_whole(const Division& division, TensorId part) const {
    const TensorId whole = division.whole;
    const uint32_t s = division.step;
    const Contents& of_part = contents_[l_.buffer[part]];
    const Contents& of_whole = contents_[l_.buffer[whole]];
    // The part's buffer fits where the part goes.
    if (l_.inside[part] != kNone || l_.buffer[part] == l_.buffer[whole] || buffer(part).size != size(part)) {
      return false;
    }
    if (division.joins) {
      // What comes along with the part must not be in the way of an input that goes elsewhere.
      for (const TensorId input : program_.steps[s].inputs) {
        if (input != part && l_.buffer[input] == l_.buffer[part]) return false;
      }
      return buffer(whole).first == s && buffer(part).first < s && of_part.last_write < s &&
             buffer(part).last < overwritten_[whole] && of_part.depth < kMaxDepth;
    }
    return buffer(part).first == s && buffer(whole).first < s && of_whole.last_write < s &&
           buffer(whole).last < overwritten_[part];
  }

  // By how many steps the whole's buffer lives longer for the part.
  uint32_t extension(TensorId whole, TensorId part) const {
    const Buffer& a = buffer(whole);
    const Buffer& b = buffer(part);
    return (a.first - std::min(a.first, b.first)) + (std::max(a.last, b.last) - a.last);
  }

  // Keeps as many parts as do not raise the peak.
  void join(Division* division) {
    std::vector<Place>& places = division->places;
    std::ranges::stable_sort(places, {}, [&](const Place& p) { return extension(division->whole, p.part); });
    const uint64_t peak = live_.peak();
    for (; !places.empty(); places.pop_back()) {
      Buffer joined = buffer(division->whole);
      live_.remove(joined);
      for (const Place& place : places) {
        const Buffer& part = buffer(place.part);
        live_.remove(part);
        joined.first = std::min(joined.first, part.first);
        joined.last = std::max(joined.last, part.last);
      }
      live_.add(joined);
      if (live_.peak() <= peak) {
        const uint32_t to = l_.buffer[division->whole];
        for (const Place& place : places) move_part(*division, place, to);
        l_.buffers[to] = joined;
        return;
      }
      live_.remove(joined);
      live_.add(buffer(division->whole));
      for (const Place& place : places) live_.add(buffer(place.part));
    }
  }

  void move_part(const Division& division, const Place& place, uint32_t to) {
    const uint32_t from = l_.buffer[place.part];
    const uint64_t offset = l_.offset[division.whole] + place.offset;
    for (const TensorId tensor : contents_[from].tensors) {
      l_.buffer[tensor] = to;
      l_.offset[tensor] += offset;
      contents_[to].tensors.push_back(tensor);
    }
    contents_[to].last_write = std::max(contents_[to].last_write, contents_[from].last_write);
    contents_[to].depth = std::max(contents_[to].depth, contents_[from].depth + (division.joins ? 1 : 0));
    l_.inside[place.part] = division.whole;
    is_joined_[from] = true;
  }

  void drop_joined_buffers() {
    std::vector<uint32_t> index(l_.buffers.size(), kNone);
    uint32_t count = 0;
    for (size_t b = 0; b < l_.buffers.size(); ++b) {
      if (is_joined_[b]) continue;
      index[b] = count;
      l_.buffers[count] = l_.buffers[b];
      l_.device[count] = l_.device[b];
      ++count;
    }
    l_.buffers.resize(count);
    for (Buffer& buffer : l_.buffers) {
      if (buffer.rest_of != kNone) buffer.rest_of = index[buffer.rest_of];
    }
    l_.device.resize(count);
    for (uint32_t& b : l_.buffer) {
      if (b != kNone) b = index[b];
    }
  }

  const Program& program_;
  const PartOffsetQuery& part_offset_;
  Lifetimes& l_;
  std::vector<bool> may_share_;        // per tensor
  std::vector<uint32_t> overwritten_;  // per tensor: the step that computes in its place
  std::vector<Contents> contents_;     // per buffer
  std::vector<bool> is_joined_;        // per buffer: it is another's now
  LiveBytes live_;
};

}  // namespace

void place_parts(const Program& program, const DeviceTensors& device_of, const PartOffsetQuery& part_offset,
                 Lifetimes* lifetimes) {
  PartPlacer(program, device_of, part_offset, lifetimes).run();
}

}  // namespace qplan::memory
