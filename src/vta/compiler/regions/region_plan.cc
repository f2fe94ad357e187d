#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/target/region.h"
#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler {
namespace {

class Planner {
 public:
  Planner(const Config& config, const ir::Module& module, const ir::Function& region)
      : module_(module), region_(region), table_(pattern_table(config)) {}

  RegionPlan run() {
    for (uint32_t p = 0; p < region_.params().size(); ++p) add_value(region_.params()[p]).param = p;
    std::vector<UnitPlan> plans;
    NodeAttempts attempts("vta.region.unit", target::kNothingToChange);
    for (node_ = 0; node_ < region_.nodes().size(); ++node_)
      attempts.attempt(node_, [&] { plans.push_back(read_node()); });
    attempts.check();
    for (node_ = 0; node_ < region_.nodes().size(); ++node_) add_unit(std::move(plans[node_]));
    for (uint32_t o = 0; o < region_.outputs().size(); ++o) {
      RegionValue& value = result_.values[index_of(region_.outputs()[o])];
      if (value.param || value.output)
        throw PackError(QPLAN_INTERNAL, cat("vta: output ", o, " of region '", region_.name(),
                                            "' is a parameter, or an output already"));
      value.output = o;
    }
    settle_renames();
    return std::move(result_);
  }

 private:
  const ir::Node& node() const { return region_.nodes()[node_]; }
  [[noreturn]] void refuse(const char* id, std::string text, std::string hint) const {
    throw RegionRefused(node_, {id, std::move(text), std::move(hint)});
  }

  // What is neither a parameter nor a result.
  [[noreturn]] void refuse_constant() const {
    refuse("vta.region.constant", "it reads a constant where the device reads an activation",
           target::kNothingToChange);
  }

  RegionValue& add_value(ir::ValueId id) {
    index_[id.index] = result_.values.size();
    RegionValue& value = result_.values.emplace_back();
    value.id = id;
    value.name = region_.value(id).name;
    value.storage = index_[id.index];
    return value;
  }
  size_t index_of(ir::ValueId id) const {
    const auto it = index_.find(id.index);
    if (it == index_.end())
      throw PackError(QPLAN_INTERNAL,
                      cat("vta: region '", region_.name(), "' reads a constant as an activation"));
    return it->second;
  }

  // With inputs of the region's function.
  UnitPlan read_node() const {
    const target::MatchedNode match = target::match_node("vta", table_, module_, region_, node_);
    UnitPlan plan = rows()[match.row].read(match.candidate());
    for (UnitActivation& input : plan.inputs) {
      const std::optional<ir::ValueId> value = match.outer_value(input.value);
      if (!value) refuse_constant();
      input.value = *value;
    }
    return plan;
  }

  void add_unit(UnitPlan plan) {
    RegionUnit unit;
    unit.node = node_;
    unit.plan = std::move(plan);
    for (const UnitActivation& input : unit.plan.inputs) {
      if (!index_.contains(input.value.index)) refuse_constant();
      unit.inputs.push_back(index_of(input.value));
      add_reader(input, &result_.values[unit.inputs.back()]);
    }
    unit.output = result_.values.size();
    RegionValue& output = add_value(node().results[0]);
    write(unit.plan.output, &output);
    if (!unit.plan.compile) output.storage = result_.values[unit.inputs[0]].storage;
    result_.units.push_back(std::move(unit));
  }

  void write(const UnitActivation& output, RegionValue* value) const {
    value->layout.h = output.h, value->layout.w = output.w, value->layout.channels = output.channels;
    value->is_unsigned = output.is_unsigned;
    value->is_int32 = output.is_int32;
    value->first = value->last = node_;
    check_bytes(*value);
  }

  void add_reader(const UnitActivation& input, RegionValue* value) {
    ActivationLayout& layout = value->layout;
    if (value->param && !is_read_.contains(value->id.index)) {
      layout.h = input.h, layout.w = input.w, layout.channels = input.channels;
      value->is_unsigned = input.is_unsigned;
    }
    is_read_[value->id.index] = true;
    value->last = node_;
    if (layout.h != input.h || layout.w != input.w || layout.channels != input.channels ||
        value->is_unsigned != input.is_unsigned || value->is_int32) {
      refuse("vta.region.layout",
             cat("it reads '", value->name, "' as ", input.h, " x ", input.w, " x ", input.channels,
                 ", on the device it is stored as ", layout.h, " x ", layout.w, " x ", layout.channels),
             target::kNothingToChange);
    }
    const Border& needed = input.needed;
    if (needed.top + needed.left + needed.bottom + needed.right == 0) return;
    widen(&layout, needed.top, needed.left, needed.bottom, needed.right);
    add_border_value(input.border_value, value);
    check_bytes(*value);
  }

  // ---- renames: so far storage is the value that the first of them renames, which comes before all others

  void settle_renames() {
    for (RegionValue& value : result_.values) {
      if (is_renamed(value)) share_border(value, &result_.values[value.storage]);
    }
    for (RegionValue& value : result_.values) {
      if (is_renamed(value)) take_border(&value);
    }
    move_storage();
  }
  bool is_renamed(const RegionValue& value) const { return !(result_.values[value.storage].id == value.id); }

  void share_border(const RegionValue& value, RegionValue* root) {
    node_ = value.first;
    root->last = std::max(root->last, value.last);
    widen(&root->layout, value.layout.top, value.layout.left, value.layout.bottom, value.layout.right);
    add_border_value(value.border_value, root);
    check_bytes(*root);
  }

  void take_border(RegionValue* value) {
    node_ = value->first;
    const RegionValue& root = result_.values[value->storage];
    const ActivationLayout &from = root.layout, &to = value->layout;
    const bool is_same = from.h == to.h && from.w == to.w && from.channels == to.channels;
    if (!is_same && root.has_border()) {
      refuse("vta.region.layout",
             cat("it makes ", to.h, " x ", to.w, " x ", to.channels, " of ", from.h, " x ", from.w, " x ",
                 from.channels, ", around which there is a border for a reader that pads"),
             target::kNothingToChange);
    }
    widen(&value->layout, from.top, from.left, from.bottom, from.right);
    value->border_value = root.border_value;
  }

  // One buffer has one name outside.
  void move_storage() {
    std::vector<size_t> owner(result_.values.size());  // by the value that is renamed
    for (size_t v = 0; v < owner.size(); ++v) owner[v] = v;
    for (size_t v = 0; v < owner.size(); ++v) {
      const RegionValue& value = result_.values[v];
      const RegionValue& known = result_.values[owner[value.storage]];
      if (value.storage == v || !value.output) continue;
      if (known.param || known.output) {
        node_ = value.first;
        refuse("vta.region.rename",
               cat("'", value.name, "' and '", known.name,
                   "' are the same bytes on the device, outside of the region they are two tensors"),
               target::kNothingToChange);
      }
      owner[value.storage] = v;
    }
    for (RegionValue& value : result_.values) value.storage = owner[value.storage];
  }

  static void widen(ActivationLayout* layout, int64_t top, int64_t left, int64_t bottom, int64_t right) {
    layout->top = std::max(layout->top, top);
    layout->left = std::max(layout->left, left);
    layout->bottom = std::max(layout->bottom, bottom);
    layout->right = std::max(layout->right, right);
  }

  void add_border_value(std::optional<int8_t> border_value, RegionValue* value) const {
    if (border_value && value->border_value && *border_value != *value->border_value) {
      const int flip = value->is_unsigned ? 128 : 0;
      refuse("vta.region.border_value",
             cat("it pads '", value->name, "' with ", *border_value + flip, ", another reader with ",
                 *value->border_value + flip, "; a value has one border"),
             target::kNothingToChange);
    }
    if (border_value) value->border_value = border_value;
  }

  void check_bytes(const RegionValue& value) const {
    if (value.bytes() <= kMaxBufferBytes) return;
    refuse("vta.region.buffer",
           cat("'", value.name, "' takes ", value.bytes(), " bytes on the device, one buffer has ",
               kMaxBufferBytes),
           "use a smaller input");
  }

  const ir::Module& module_;
  const ir::Function& region_;
  const std::vector<target::PatternRow> table_;
  uint32_t node_ = 0;
  RegionPlan result_;
  std::unordered_map<uint32_t, size_t> index_;  // of values
  std::unordered_map<uint32_t, bool> is_read_;
};

}  // namespace

RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region) {
  return Planner(config, module, region).run();
}

namespace {

// As the public runtime writes them: a LOAD of nothing, into a memory of the module's.
Instruction no_op(Memory memory) {
  Instruction instruction;
  instruction.opcode = Opcode::kLoad;
  instruction.memory = memory;
  return instruction;
}

bool is_load(const Instruction& instruction) { return module_of(instruction) == Module::kLoad; }
bool has_loads(const Part& part) { return std::ranges::any_of(part.unit.stream.instructions, is_load); }

}  // namespace

void StreamJoiner::add(std::span<const Part> parts) {
  const bool is_first = stream_.instructions.empty();
  const auto loading = static_cast<size_t>(std::ranges::find_if(parts, has_loads) - parts.begin());
  for (size_t p = 0; p < parts.size(); ++p) {
    const bool waits = !is_first || p > 0;
    add_part(parts[p], waits, !is_first && p == 0 && loading < parts.size(), !is_first && p == loading);
  }
}

void StreamJoiner::add_part(const Part& part, bool waits_for_stores, bool gives_to_loads,
                            bool waits_for_token) {
  const Stream& from = part.unit.stream;
  const std::span<const Instruction> code(from.instructions.data(),
                                          from.instructions.size() - 1);  // without FINISH
  std::vector<uint32_t> region(code.size(), UINT32_MAX);
  for (const BlobRelocation& relocation : from.relocations)
    region[relocation.instruction] = relocation.region;
  const auto is_weight_load = [&](size_t i) {
    return is_load(code[i]) && !code[i].pop_next && region[i] != UINT32_MAX &&
           part.unit.regions[region[i]].kind == UnitRegion::Kind::kCarried;
  };

  std::vector<Instruction>& out = stream_.instructions;
  for (const Label& label : from.labels) {
    if (label.instruction == 0) stream_.labels.push_back({static_cast<uint32_t>(out.size()), label.name});
  }
  if (waits_for_stores) {
    Instruction barrier = no_op(Memory::kUop);
    barrier.pop_next = true;
    barrier.push_prev = gives_to_loads;
    out.push_back(barrier);
  }
  bool weights_wait = waits_for_token && last_gemm_ && !out[*last_gemm_].push_prev;
  const bool weights_go_ahead = weights_wait;
  size_t label = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    Instruction instruction = code[i];
    if (waits_for_token && is_load(instruction)) {
      if (weights_go_ahead && is_weight_load(i)) {
        if (weights_wait) out[*last_gemm_].push_prev = instruction.pop_next = true;
        weights_wait = false;
      } else {
        // An instruction takes one token of a queue.
        if (instruction.pop_next) out.push_back(no_op(Memory::kInp));
        (instruction.pop_next ? out.back() : instruction).pop_next = true;
        waits_for_token = false;
        last_gemm_.reset();
      }
    }
    while (label < from.labels.size() && from.labels[label].instruction < i) ++label;
    if (i > 0 && label < from.labels.size() && from.labels[label].instruction == i)
      stream_.labels.push_back({static_cast<uint32_t>(out.size()), from.labels[label].name});
    if (region[i] != UINT32_MAX) {
      const RegionPlace& place = part.places[region[i]];
      instruction.dram_base += static_cast<uint32_t>(place.offset / element_bytes(instruction.memory));
      stream_.relocations.push_back({static_cast<uint32_t>(out.size()), place.region});
    }
    if (instruction.opcode == Opcode::kGemm && !instruction.reset) last_gemm_ = out.size();
    out.push_back(instruction);
  }
}

Stream StreamJoiner::finish() {
  stream_.instructions.emplace_back().pop_next = true;  // FINISH
  return std::move(stream_);
}

}  // namespace qplan::vta::compiler
