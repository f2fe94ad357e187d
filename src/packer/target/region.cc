#include "src/packer/target/region.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/packer/ir/cat.h"

namespace qplan::target {
namespace {

class RegionChecker {
 public:
  RegionChecker(const Target& target, const ir::Function& function, const CompiledRegion& region)
      : target_(target),
        function_(function),
        region_(region),
        inputs_(function.params().size(), false),
        outputs_(function.outputs().size(), false) {}

  void run() {
    if (region_.blob.empty()) fail("its program is empty");
    for (const RegionSlot& slot : region_.slots) check_slot(slot);
    check_all(inputs_, "parameter");
    check_all(outputs_, "result");
  }

 private:
  void check_slot(const RegionSlot& slot) {
    const std::string what = cat("slot ", slot.slot);
    if (!slots_.insert(slot.slot).second) fail(cat(what, " is there twice"));
    const uint32_t alignment = slot.alignment;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > format::kMaxAlignment) {
      fail(cat(what, " wants alignment ", alignment, ", expected a power of two up to ",
               format::kMaxAlignment));
    }
    if (slot.arrangement.size == 0) fail(cat(what, " has no bytes"));
    if (slot.use == format::NpuUse_SCRATCH) return;
    const bool is_input = slot.use == format::NpuUse_INPUT;
    std::vector<bool>& bound = is_input ? inputs_ : outputs_;
    const char* kind = is_input ? "parameter" : "result";
    if (slot.index >= bound.size()) fail(cat(what, " carries ", kind, " ", slot.index, " of ", bound.size()));
    if (bound[slot.index]) fail(cat(kind, " ", slot.index, " has two slots"));
    bound[slot.index] = true;
    const ir::ValueId value = is_input ? function_.params()[slot.index] : function_.outputs()[slot.index];
    const ir::TensorType& type = function_.type(value);
    if (slot.arrangement.strides.size() != type.shape.size()) {
      fail(cat(what, " has ", slot.arrangement.strides.size(), " strides for a tensor of ", type.shape.size(),
               " axes"));
    }
    const std::optional<uint64_t> end = end_of_elements(slot.arrangement, type);
    if (!end || *end > slot.arrangement.size) {
      fail(cat(what, ": elements reach beyond its ", slot.arrangement.size, " bytes"));
    }
  }

  void check_all(const std::vector<bool>& bound, const char* kind) const {
    for (size_t i = 0; i < bound.size(); ++i) {
      if (!bound[i]) fail(cat(kind, " ", i, " has no slot"));
    }
  }

  [[noreturn]] void fail(const std::string& text) const {
    throw PackError(QPLAN_INTERNAL, cat("target '", target_.name, "': compiled '", function_.name(),
                                        "': ", text, "; this is a defect of the target's compiler"));
  }

  const Target& target_;
  const ir::Function& function_;
  const CompiledRegion& region_;
  std::vector<bool> inputs_, outputs_;  // which have a slot
  std::set<uint32_t> slots_;
};

}  // namespace

void check_region(const Target& target, const ir::Function& function, const CompiledRegion& region) {
  RegionChecker(target, function, region).run();
}

bool NodeAttempts::attempt(uint32_t node, const std::function<void()>& run) {
  try {
    run();
    return true;
  } catch (const RegionRefused& refusal) {
    refused_.insert(refused_.end(), refusal.nodes().begin(), refusal.nodes().end());
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    refused_.push_back({node, {id_, error.what(), hint_}});
  }
  return false;
}

void NodeAttempts::check() {
  if (!refused_.empty()) throw RegionRefused(std::move(refused_));
}

MatchedNode match_node(std::string_view target, std::span<const PatternRow> table, const ir::Module& module,
                       const ir::Function& region, uint32_t n) {
  const ir::Node& node = region.nodes()[n];
  const ir::Function* const function = node.op != nullptr ? &region : module.find(node.callee);
  std::string name;
  if (node.op != nullptr) {
    name = node.op->name;
  } else {
    const ir::AttrValue* composite = function == nullptr ? nullptr : function->attrs().find("Composite");
    if (composite == nullptr)
      throw PackError(QPLAN_INTERNAL, cat(target, ": '", node.callee, "' is no composite of the module"));
    name = std::get<std::string>(*composite);
  }
  const auto row = std::ranges::find(table, name, &PatternRow::name);
  if (row == table.end())
    throw RegionRefused(
        n, {cat(target, ".region.unit"), cat("there is no compiler for ", name), kNothingToChange});
  pattern::Pre pre(*function);
  const ir::ValueId root = node.op != nullptr ? node.results[0] : function->outputs()[0];
  std::optional<pattern::Matches> matches = pattern::match(row->pattern, pre, pattern::PreValue{root});
  if (!matches) throw PackError(QPLAN_INTERNAL, cat(target, ": '", function->name(), "' is no ", name));
  return {static_cast<size_t>(row - table.begin()), node, *function, std::move(pre), *std::move(matches)};
}

std::optional<ir::ValueId> MatchedNode::outer_value(ir::ValueId value) const {
  if (node.op != nullptr) return value;
  const auto param = std::ranges::find(function.params(), value);
  if (param == function.params().end()) return std::nullopt;
  return node.operands[static_cast<size_t>(param - function.params().begin())];
}

std::optional<uint64_t> end_of_elements(const Arrangement& arrangement, const ir::TensorType& type) {
  uint64_t end = arrangement.origin;
  const auto add = [&end](uint64_t count, uint64_t stride) {
    uint64_t bytes = 0;
    return checked_mul(count, stride, &bytes) && checked_add(end, bytes, &end);
  };
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    const uint32_t block = axis + 1 == type.shape.size() ? arrangement.block : 0;
    uint64_t reach = 0;
    if (!format::axis_reach(type.shape[axis], arrangement.strides[axis], block, arrangement.block_stride,
                            &reach) ||
        !add(1, reach)) {
      return std::nullopt;
    }
  }
  if (!add(type.dtype.bits / 8u - 1, arrangement.byte_stride) || !checked_add(end, uint64_t{1}, &end)) {
    return std::nullopt;
  }
  return end;
}

bool may_stay(const Arrangement& output, const Arrangement& input, const ir::TensorType& type) {
  const auto places = [](const Arrangement& a) {
    return std::tie(a.strides, a.origin, a.byte_stride, a.size, a.flip, a.block, a.block_stride);
  };
  if (places(output) != places(input)) return false;
  const bool has_others = output.size != static_cast<uint64_t>(type.size_bytes());
  return !has_others || input.takes_any_fill || (output.leaves_fill && output.fill == input.fill);
}

Arrangement packed_arrangement(const ir::TensorType& type) {
  Arrangement result;
  result.size = static_cast<uint64_t>(type.size_bytes());
  result.strides.resize(type.shape.size());
  uint64_t stride = type.dtype.bits / 8u;
  for (size_t axis = type.shape.size(); axis-- > 0;) {
    result.strides[axis] = stride;
    stride *= static_cast<uint64_t>(type.shape[axis]);
  }
  return result;
}

bool Arrangement::is_packed(const ir::TensorType& type) const {
  const Arrangement packed = packed_arrangement(type);
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (type.shape[axis] != 1 && strides[axis] != packed.strides[axis]) return false;
  }
  const bool has_planes = type.dtype.bits > 8 && byte_stride != 1;
  return flip == 0 && origin == 0 && size == packed.size && !has_planes && block == 0;
}

}  // namespace qplan::target
