#include "src/packer/target/vta/region_plan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

#include "src/packer/ir/cat.h"
#include "src/packer/pattern/matcher.h"
#include "src/packer/target/region.h"
#include "src/packer/target/vta/vta.h"

namespace qplan::target::vta {
namespace {

class Planner {
 public:
  Planner(const Config& config, const ir::Module& module, const ir::Function& region)
      : config_(config), module_(module), region_(region), table_(pattern_table(config)) {}

  RegionPlan run() {
    for (uint32_t p = 0; p < region_.params().size(); ++p) add_value(region_.params()[p]).param = p;
    for (node_ = 0; node_ < region_.nodes().size(); ++node_) add_unit();
    for (uint32_t o = 0; o < region_.outputs().size(); ++o) {
      RegionValue& value = result_.values[index_of(region_.outputs()[o])];
      if (value.param || value.output)
        throw PackError(QPLAN_INTERNAL, cat("vta: output ", o, " of region '", region_.name(),
                                            "' is a parameter, or an output already"));
      value.output = o;
    }
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
           "nothing to change in the model");
  }

  RegionValue& add_value(ir::ValueId id) {
    index_[id.index] = result_.values.size();
    RegionValue& value = result_.values.emplace_back();
    value.id = id;
    value.name = region_.value(id).name;
    return value;
  }
  size_t index_of(ir::ValueId id) const {
    const auto it = index_.find(id.index);
    if (it == index_.end())
      throw PackError(QPLAN_INTERNAL,
                      cat("vta: region '", region_.name(), "' reads a constant as an activation"));
    return it->second;
  }

  // The node as its row matches it, in a composite's function or by itself.
  UnitPlan read(const ir::Function& function, const std::string& row_name, ir::ValueId root) const {
    const auto row = std::ranges::find(table_, row_name, &PatternRow::name);
    if (row == table_.end())
      refuse("vta.region.unit", cat("there is no compiler for ", row_name), "nothing to change in the model");
    const pattern::Pre pre(function);
    const auto matches = pattern::match(row->pattern, pre, pattern::PreValue{root});
    if (!matches) throw PackError(QPLAN_INTERNAL, cat("vta: '", function.name(), "' is no ", row_name));
    try {
      return read_unit(config_, row_name, Candidate{pre, *matches});
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      refuse("vta.region.unit", error.what(), "nothing to change in the model");
    }
  }

  void add_unit() {
    RegionUnit unit;
    unit.node = node_;
    std::vector<ir::ValueId> read_values;  // of the region's function
    if (node().op != nullptr) {
      unit.plan = read(region_, node().op->name, node().results[0]);
      for (const UnitActivation& input : unit.plan.inputs) read_values.push_back(input.value);
    } else {
      const ir::Function* composite = module_.find(node().callee);
      const ir::AttrValue* name = composite == nullptr ? nullptr : composite->attrs().find("Composite");
      if (name == nullptr)
        throw PackError(QPLAN_INTERNAL, cat("vta: '", node().callee, "' is no composite of the module"));
      unit.plan = read(*composite, std::get<std::string>(*name), composite->outputs()[0]);
      for (const UnitActivation& input : unit.plan.inputs) {
        const auto param = std::ranges::find(composite->params(), input.value);
        if (param == composite->params().end()) refuse_constant();
        read_values.push_back(node().operands[static_cast<size_t>(param - composite->params().begin())]);
      }
    }
    for (size_t i = 0; i < read_values.size(); ++i) {
      if (!index_.contains(read_values[i].index)) refuse_constant();
      unit.inputs.push_back(index_of(read_values[i]));
      add_reader(unit.plan.inputs[i], &result_.values[unit.inputs[i]]);
    }
    unit.output = result_.values.size();
    write(unit.plan.output, &add_value(node().results[0]));
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
                 ", on the device it lies as ", layout.h, " x ", layout.w, " x ", layout.channels),
             "nothing to change in the model");
    }
    const Border& needed = input.needed;
    if (needed.top + needed.left + needed.bottom + needed.right == 0) return;
    layout.top = std::max(layout.top, needed.top);
    layout.left = std::max(layout.left, needed.left);
    layout.bottom = std::max(layout.bottom, needed.bottom);
    layout.right = std::max(layout.right, needed.right);
    if (input.border_value && value->border_value && *input.border_value != *value->border_value) {
      const int flip = value->is_unsigned ? 128 : 0;
      refuse("vta.region.border_value",
             cat("it pads '", value->name, "' with ", *input.border_value + flip, ", another reader with ",
                 *value->border_value + flip, "; a value has one border"),
             "nothing to change in the model");
    }
    if (input.border_value) value->border_value = input.border_value;
    check_bytes(*value);
  }

  void check_bytes(const RegionValue& value) const {
    if (value.bytes() <= kMaxBufferBytes) return;
    refuse("vta.region.buffer",
           cat("'", value.name, "' takes ", value.bytes(), " bytes on the device, one buffer holds ",
               kMaxBufferBytes),
           "use a smaller input");
  }

  const Config& config_;
  const ir::Module& module_;
  const ir::Function& region_;
  const std::vector<PatternRow> table_;
  uint32_t node_ = 0;
  RegionPlan result_;
  std::unordered_map<uint32_t, size_t> index_;  // of values
  std::unordered_map<uint32_t, bool> is_read_;
};

}  // namespace

RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region) {
  return Planner(config, module, region).run();
}

}  // namespace qplan::target::vta
