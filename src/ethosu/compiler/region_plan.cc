#include <algorithm>
#include <map>
#include <unordered_map>

#include "src/ethosu/compiler/region.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
namespace {

class Planner {
 public:
  Planner(const Config& config, const ir::Module& module, const ir::Function& region)
      : module_(module), region_(region), table_(pattern_table(config)) {}

  RegionPlan run() {
    for (uint32_t p = 0; p < region_.params().size(); ++p) add_value(region_.params()[p]).param = p;
    target::NodeAttempts attempts("ethosu.region.unit", kNothingToChange);
    for (node_ = 0; node_ < region_.nodes().size(); ++node_) {
      attempts.attempt(node_, [&] { add_unit(read_node()); });
      // Values of a refused node are known, so that the next ones are looked at.
      for (const ir::ValueId result : region_.nodes()[node_].results) {
        if (!index_.contains(result.index)) add_value(result);
      }
    }
    attempts.check();
    for (uint32_t o = 0; o < region_.outputs().size(); ++o) {
      RegionValue& value = result_.values[index_of(region_.outputs()[o])];
      if (value.is_border())
        throw PackError(QPLAN_INTERNAL, cat("ethosu: output ", o, " of region '", region_.name(),
                                            "' is a parameter, or an output already"));
      value.output = o;
    }
    share_storage();
    return std::move(result_);
  }

 private:
  const ir::Node& node() const { return region_.nodes()[node_]; }
  [[noreturn]] void refuse_constant() const {
    throw target::RegionRefused(
        node_, {"ethosu.region.constant", "it reads a constant where the device reads an activation",
                kNothingToChange});
  }

  RegionValue& add_value(ir::ValueId id) {
    index_[id.index] = result_.values.size();
    RegionValue& value = result_.values.emplace_back();
    value.id = id;
    value.name = region_.value(id).name;
    value.type = region_.type(id);
    value.whole = index_[id.index];
    value.first = value.last = node_;
    return value;
  }
  size_t index_of(ir::ValueId id) const {
    const auto found = index_.find(id.index);
    if (found == index_.end()) refuse_constant();
    return found->second;
  }

  // With inputs of the region's function.
  Unit read_node() const {
    const target::MatchedNode match = target::match_node("ethosu", table_, module_, region_, node_);
    Unit unit = rows()[match.row].read(match.candidate());
    for (ir::ValueId& input : unit.inputs) {
      const std::optional<ir::ValueId> value = match.outer_value(input);
      if (!value) refuse_constant();
      input = *value;
    }
    return unit;
  }

  // A value with the elements of `like` as int8, in scratch: of the unit at node_ alone.
  size_t add_signed(size_t like) {
    ir::TensorType type = result_.values[like].type;
    type.dtype = ir::kInt8;
    return add_scratch(result_.values[like].name, std::move(type));
  }
  size_t add_scratch(std::string name, ir::TensorType type) {
    const size_t added = result_.values.size();
    RegionValue value;
    value.id = ir::ValueId{UINT32_MAX - 1 - static_cast<uint32_t>(added)};  // of no value of the function
    value.name = std::move(name);
    value.type = std::move(type);
    value.whole = added;
    value.first = value.last = node_;
    result_.values.push_back(std::move(value));
    return added;
  }

  void add_sign_copy(const std::string& name, size_t from, size_t to) {
    RegionUnit copy;
    copy.node = node_;
    copy.inputs = {from}, copy.outputs = {to};
    copy.unit.name = name;
    copy.unit.emit = [name](const UnitContext& context) {
      add_kernel(context, name, sign_copy_kernel(context.inputs[0], context.outputs[0]));
    };
    result_.units.push_back(std::move(copy));
  }

  void add_unit(Unit unit) {
    RegionUnit added;
    added.node = node_;
    for (const ir::ValueId input : unit.inputs) {
      added.inputs.push_back(index_of(input));
      result_.values[added.inputs.back()].last = node_;
    }
    for (const ir::ValueId result : node().results) {
      added.outputs.push_back(result_.values.size());
      add_value(result);
    }
    const std::string name = unit.name;
    if (unit.reads_as_int8) {
      const size_t from = added.inputs[0];
      add_sign_copy(name, from, added.inputs[0] = add_signed(from));
    }
    const size_t output = added.outputs[0];
    const bool writes_as_int8 = unit.writes_as_int8;
    if (writes_as_int8) added.outputs[0] = add_signed(output);
    const size_t written = added.outputs[0];
    for (const ir::TensorType& type : unit.scratch) added.scratch.push_back(add_scratch(name, type));
    added.unit = std::move(unit);
    result_.units.push_back(std::move(added));
    if (writes_as_int8) add_sign_copy(name, written, output);
  }

  // ---- values that are parts or other shapes of others

  void share_storage() {
    for (RegionUnit& unit : result_.units) {
      if (!unit.unit.emit) rename(&unit);
    }
    for (const RegionUnit& unit : result_.units) {
      if (unit.unit.parts == Unit::Parts::kInputs) {
        store_parts(unit.outputs[0], unit.inputs, unit.unit.axis);
      } else if (unit.unit.parts == Unit::Parts::kOutputs) {
        store_parts(unit.inputs[0], unit.outputs, unit.unit.axis);
      } else if (unit.unit.parts == Unit::Parts::kView) {
        store_view(unit.inputs[0], unit.outputs[0], unit.unit.view);
      }
    }
    for (RegionValue& value : result_.values) {
      RegionValue& root = result_.values[root_of(value)];
      root.first = std::min(root.first, value.first), root.last = std::max(root.last, value.last);
    }
  }

  size_t root_of(const RegionValue& value) const {
    const RegionValue* at = &value;
    while (!(result_.values[at->whole].id == at->id)) at = &result_.values[at->whole];
    return at->whole;
  }

  // Outside of the region two tensors have bytes of their own: then the reshape copies.
  void rename(RegionUnit* unit) {
    const size_t from = unit->inputs[0], to = unit->outputs[0];
    const size_t root = root_of(result_.values[from]);
    if (result_.values[root].is_border() && result_.values[to].is_border()) return;
    unit->is_renamed = true;
    // The one that is known outside, or else the first, has the bytes.
    if (result_.values[to].is_border()) {
      result_.values[root].whole = to;
    } else {
      result_.values[to].whole = root;
    }
    is_shared_[from] = is_shared_[to] = is_shared_[root] = true;
  }

  void store_parts(size_t whole, const std::vector<size_t>& parts, size_t axis) {
    View view;
    for (const size_t p : parts) {
      const Image image = *image_of(result_.values[p].type);
      const int64_t extents[] = {image.h, image.w, image.d};
      if (std::ranges::count(parts, p) == 1) store_view(whole, p, view);
      view.begin[axis] += static_cast<uint32_t>(extents[axis]);
    }
  }

  void store_view(size_t whole, size_t p, const View& view) {
    RegionValue& part = result_.values[p];
    if (part.is_border() || part.whole != p || is_shared_.contains(p)) return;
    part.whole = whole;
    part.view = view;
    is_shared_[p] = true;
  }

  const ir::Module& module_;
  const ir::Function& region_;
  const std::vector<target::PatternRow> table_;
  uint32_t node_ = 0;
  RegionPlan result_;
  std::unordered_map<uint32_t, size_t> index_;  // of values
  std::unordered_map<size_t, bool> is_shared_;
};

}  // namespace

uint64_t waiting_bytes(const ir::Module& module, const ir::Function& region, Waiting waiting) {
  const ir::Function* const main = module.find("main");
  const ir::AttrValue* const target = region.attrs().find("Compiler");
  if (main == nullptr || target == nullptr) return 0;
  struct Use {
    size_t first = 0, last = 0;  // nodes that make and read the value; a parameter is there before node 1
    bool is_own = false, is_of_target = false;
  };
  std::map<uint32_t, Use> uses;
  for (const ir::ValueId param : main->params()) uses[param.index] = {};
  size_t begin = SIZE_MAX, end = 0, call = 0;  // of the region's inputs and outputs
  for (size_t n = 1; n <= main->nodes().size(); ++n) {
    const ir::Node& node = main->nodes()[n - 1];
    const ir::Function* const callee = node.op == nullptr ? module.find(node.callee) : nullptr;
    const ir::AttrValue* const compiler = callee == nullptr ? nullptr : callee->attrs().find("Compiler");
    if (callee == &region) call = n;
    const auto mark = [&](Use& use) {
      use.last = n;
      use.is_own |= callee == &region, use.is_of_target |= compiler != nullptr && *compiler == *target;
    };
    for (const ir::ValueId result : node.results) mark(uses[result.index] = {n, n});
    for (const ir::ValueId operand : node.operands) {
      if (const auto use = uses.find(operand.index); use != uses.end()) mark(use->second);
    }
  }
  // Inputs and outputs of the network stay.
  for (const ir::ValueId param : main->params()) uses[param.index].last = SIZE_MAX;
  for (const ir::ValueId output : main->outputs()) {
    if (const auto use = uses.find(output.index); use != uses.end()) use->second.last = SIZE_MAX;
  }
  for (const auto& [value, use] : uses) {
    if (use.is_own) begin = std::min(begin, use.first), end = std::max(end, use.last);
  }
  if (waiting == Waiting::kWhileItRuns) begin = end = call;
  uint64_t bytes = 0;
  for (const auto& [value, use] : uses) {
    if (use.is_of_target && !use.is_own && use.first <= end && begin <= use.last)
      bytes += plan_aligned(static_cast<uint64_t>(main->type(ir::ValueId{value}).size_bytes()));
  }
  return bytes;
}

RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region) {
  return Planner(config, module, region).run();
}

}  // namespace qplan::ethosu::compiler
