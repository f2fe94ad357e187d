// Activations in one 8-bit dtype, whichever the source chose: uint8 q with zero point z and int8 q - 128 with
// zero point z - 128 are the same real. The dtype of the network is activation_dtype(), or int8 where kernels
// multiply signed bytes; inputs and outputs of the function keep theirs, and so does what can only have one
// dtype with them.
//
// Values fall into groups that can only change together (operands and result of an addition); between groups
// stand operators that read one dtype and write the other at no cost (convolutions, requantisations, tables).
// So a group changes without a new step anywhere. A group keeps its dtype where an operator's bits depend on
// it (rewrite_pass.h). Requantisations between int8 and uint8 inside the function disappear with their
// reason.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

// The groups of a function's 8-bit values. Constants belong to none: each reader may have its own.
class Groups {
 public:
  // wanted: the dtype of groups that need not keep theirs.
  Groups(const Pre& pre, ir::DType wanted, const PassContext& context)
      : pre_(pre),
        function_(pre.function()),
        wanted_(wanted),
        rounded_(activation_dtype(pre.function())),
        contract_is_chosen_(context.contract_is_chosen),
        floats_stay_(context.floats_stay),
        parent_(function_.num_values()),
        size_(function_.num_values(), 1),
        kept_(function_.num_values()) {
    std::iota(parent_.begin(), parent_.end(), 0u);
    for (size_t i = 0; i < function_.nodes().size(); ++i) join(PreNode(function_, i));
    for (size_t i = 0; i < function_.nodes().size(); ++i) keep_where_needed(PreNode(function_, i));
    for (const ir::ValueId param : function_.params()) keep({param});
    for (const ir::ValueId output : function_.outputs()) keep({output});
    for (size_t i = 0; i < function_.nodes().size(); ++i) round_as_wanted(PreNode(function_, i));
    for (size_t i = 0; i < function_.nodes().size(); ++i)
      join_over_sign_requantization(PreNode(function_, i));
  }

  // The dtype that the value gets.
  ir::DType dtype(PreValue value) const {
    return can_change(value) ? kept_[root(value)].value_or(wanted_) : pre_.type(value).dtype;
  }

 private:
  bool can_change(PreValue value) const {
    return is_8_bit(pre_.type(value).dtype) && pre_.constant(value) == nullptr;
  }

  uint32_t root(PreValue value) const {
    uint32_t at = value.id.index;
    while (parent_[at] != at) at = parent_[at];
    return at;
  }

  // The smaller group below the root of the larger one, so that paths stay short.
  void merge(PreValue a, PreValue b) {
    uint32_t to = root(a), from = root(b);
    if (from == to) return;
    if (size_[to] < size_[from]) std::swap(to, from);
    if (!kept_[to]) kept_[to] = kept_[from];
    parent_[from] = to;
    size_[to] += size_[from];
  }

  void keep(PreValue value) {
    if (can_change(value)) kept_[root(value)] = pre_.type(value).dtype;
  }

  void keep_all(PreNode node) {
    for (size_t i = 0; i < node.num_operands(); ++i) keep(node.operand(i));
    for (size_t i = 0; i < node.num_results(); ++i) keep(node.result(i));
  }

  // What can only have one dtype.
  void join(PreNode node) {
    if (!may_change_signedness(node.op()) || !has_one_dtype(*node.op())) return;
    std::optional<PreValue> first;
    const auto add = [&](PreValue value) {
      if (!can_change(value)) return;
      if (first) merge(*first, value);
      first = value;
    };
    for (const size_t i : op::data_operands(node.node())) add(node.operand(i));
    for (size_t i = 0; i < node.num_results(); ++i) add(node.result(i));
  }

  void keep_where_needed(PreNode node) {
    if (!may_change_signedness(node.op()) || !contract_has_zero_points(node)) return keep_all(node);
    const std::vector<size_t> data = op::data_operands(node.node());
    for (size_t i = 0; i < node.num_operands(); ++i) {
      if (std::ranges::find(data, i) == data.end()) keep(node.operand(i));
    }
    // What a rewrite makes of the float operators beside it may depend on the dtype: first come the rewrites.
    if (!floats_stay_) {
      if (node.is("qnn.dequantize") && is_read_by_nodes(node.result())) keep(node.operand(0));
      if (node.is("qnn.quantize") && pre_.producer(node.operand(0))) keep(node.result());
    }
    if (node.is("clip") && keeps_nothing(node)) keep_all(node);
    if (!contract_is_chosen_ && rounds_by_signedness(pre_, node) != nullptr) keep_all(node);
  }

  // Under a chosen contract the rounding is that of the network's dtype, whatever dtype would save a step
  // next to it, on every target.
  void round_as_wanted(PreNode node) {
    if (!contract_is_chosen_ || rounds_by_signedness(pre_, node) == nullptr) return;
    const PreValue value = node.operand(0);
    if (can_change(value) && !kept_[root(value)]) kept_[root(value)] = rounded_;
  }

  // Bounds beyond the dtype: left to whoever executes them.
  bool keeps_nothing(PreNode clip) const {
    const ir::DType dtype = pre_.type(clip.result()).dtype;
    return is_8_bit(dtype) && (op::attr_float(clip.node(), "a_min") > static_cast<double>(dtype.max()) ||
                               op::attr_float(clip.node(), "a_max") < static_cast<double>(dtype.min()));
  }

  bool is_read_by_nodes(PreValue value) {
    if (read_by_nodes_.empty()) {
      read_by_nodes_.resize(function_.num_values());
      for (const ir::Node& node : function_.nodes()) {
        for (const ir::ValueId operand : node.operands) read_by_nodes_[operand.index] = true;
      }
    }
    return read_by_nodes_[value.id.index];
  }

  // One dtype on both sides, and nothing is left to do; where both sides keep theirs, the step stays. A
  // requantisation that changes nothing is what became of one and is not dropped yet.
  void join_over_sign_requantization(PreNode node) {
    if (!keeps_reals(pre_, node)) return;
    const PreValue data = node.operand(0), result = node.result();
    if (!can_change(data)) return;
    const auto &a = kept_[root(data)], &b = kept_[root(result)];
    if (!a || !b || *a == *b) merge(data, result);
  }

  const Pre& pre_;
  const ir::Function& function_;
  const ir::DType wanted_, rounded_;
  const bool contract_is_chosen_;
  const bool floats_stay_;
  std::vector<uint32_t> parent_, size_;         // by value; sizes are those of groups, by root
  std::vector<std::optional<ir::DType>> kept_;  // by root: the dtype that the group must have
  std::vector<bool> read_by_nodes_;             // by value; made when it is first needed
};

class SignednessChange {
 public:
  SignednessChange(const ir::Function& pre, PassContext& context)
      : r_(pre),
        context_(context),
        wanted_(context.activation_zero_point == ActivationZeroPoint::kDtypeMiddle ? ir::kInt8
                                                                                   : activation_dtype(pre)),
        groups_(r_.pre(), wanted_, context),
        changed_(pre.num_values()) {}

  std::unique_ptr<ir::Function> run() {
    const ir::Function& function = r_.pre().function();
    bool any = false;
    for (size_t i = 0; i < function.nodes().size(); ++i) {
      const PreNode node(function, i);
      if (concerns(node)) {
        rewrite(node);
        any = true;
      } else {
        r_.copy(node);
      }
    }
    return any ? r_.finish() : nullptr;
  }

 private:
  // By how much the integers of a value move.
  int32_t offset(PreValue value) const {
    const ir::DType own = r_.pre().type(value).dtype;
    if (!is_8_bit(own) || r_.pre().constant(value) != nullptr) return 0;
    return static_cast<int32_t>(groups_.dtype(value).min() - own.min());
  }

  bool concerns(PreNode node) const {
    for (size_t i = 0; i < node.num_operands(); ++i) {
      if (offset(node.operand(i)) != 0) return true;
    }
    for (size_t i = 0; i < node.num_results(); ++i) {
      if (offset(node.result(i)) != 0) return true;
    }
    return false;
  }

  // By how much all data and results of an operator with one dtype move.
  int32_t common_offset(PreNode node, const std::vector<size_t>& data) const {
    for (const size_t i : data) {
      if (const int32_t moved = offset(node.operand(i))) return moved;
    }
    return offset(node.result());
  }

  PostValue mapped(PreValue value) {
    const std::optional<PostValue>& known = changed_[value.id.index];
    return known ? *known : r_[value];
  }

  PostValue moved(PreValue zero_point, int32_t offset) {
    return r_.post().constant_value(moved_zero_points(*r_.pre().constant(zero_point), offset));
  }

  void rewrite(PreNode node) {
    const op::OpDef& op = *node.op();
    const std::vector<size_t> data = op::data_operands(node.node());
    const int32_t common = has_one_dtype(op) ? common_offset(node, data) : 0;
    const int32_t result_offset = offset(node.result());
    std::vector<PostValue> operands;
    for (size_t i = 0; i < node.num_operands(); ++i) operands.push_back(mapped(node.operand(i)));
    const auto move_zero_point = [&](size_t tensor, int32_t by) {
      const std::optional<size_t> zero_point = op::zero_point_of(op, tensor);
      if (by != 0 && zero_point) operands[*zero_point] = moved(node.operand(*zero_point), by);
    };
    for (const size_t i : data) {
      const PreValue value = node.operand(i);
      const ir::ConstantRef constant = r_.pre().constant(value);
      if (constant != nullptr && common != 0 && is_8_bit(constant->type().dtype)) {
        operands[i] = r_.post().constant_value(other_signedness(*constant), r_.pre().name(value));
      }
      move_zero_point(i, constant != nullptr ? common : offset(value));
    }
    move_zero_point(op::kResult, result_offset);
    if (const auto value = op::operand_with(op, op::OperandRole::kDataValue)) {
      operands[*value] = moved_value(node.operand(*value), common);
    }
    if (const auto table = op::operand_with(op, op::OperandRole::kTable)) {
      operands[*table] = moved_table(node, node.operand(*table), result_offset != 0);
    }
    ir::Attrs attrs = node.attrs();
    move_attributes(node, has_one_dtype(op) ? common : offset(node.operand(0)), result_offset, &attrs);
    define(node, r_.post().call_all(node.op()->name, operands, std::move(attrs), node.name()));
    const char* const rounding = rounds_by_signedness(r_.pre(), node);
    context_.fired("unify_signedness", node.name(),
                   rounding == nullptr ? cat("exact: activations are ", wanted_)
                                       : cat("activations are ", wanted_, ": ", rounding));
  }

  void move_attributes(PreNode node, int32_t data_offset, int32_t result_offset, ir::Attrs* attrs) {
    for (const op::AttrDef& def : node.op()->attrs) {
      if (def.role == op::AttrRole::kDtype && result_offset != 0) {
        attrs->set(def.name, ir::to_string(groups_.dtype(node.result())));
      }
      if (def.role != op::AttrRole::kDataValue || !node.attrs().has(def.name)) continue;
      if (def.kind == op::AttrKind::kInt) {
        attrs->set(def.name, op::attr_int(node.node(), def.name) + data_offset);
      } else {  // a bound, which may be beyond the dtype
        const ir::DType dtype = r_.pre().type(node.operand(0)).dtype;
        const double bound = std::clamp(op::attr_float(node.node(), def.name),
                                        static_cast<double>(dtype.min()), static_cast<double>(dtype.max()));
        attrs->set(def.name, bound + data_offset);
      }
    }
  }

  PostValue moved_value(PreValue constant, int32_t by) {
    const double value = *scalar_value(*r_.pre().constant(constant));
    return r_.post().scalar(static_cast<int32_t>(value) + by);
  }

  // The table is indexed by the byte of the data.
  PostValue moved_table(PreNode lookup, PreValue constant, bool changes_entries) {
    const ir::Constant& old = *r_.pre().constant(constant);
    std::vector<uint8_t> bytes(old.bytes().begin(), old.bytes().end());
    if (offset(lookup.operand(0)) != 0) std::rotate(bytes.begin(), bytes.begin() + 128, bytes.end());
    auto table = std::make_shared<const ir::Constant>(old.type(), std::move(bytes));
    return r_.post().constant_value(changes_entries ? other_signedness(*table) : table,
                                    r_.pre().name(constant));
  }

  void define(PreNode node, const std::vector<PostValue>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const PreValue value = node.result(i);
      if (offset(value) == 0) {
        r_.replace(value, results[i]);
      } else {
        changed_[value.id.index] = results[i];
      }
    }
  }

  Rebuild r_;
  PassContext& context_;
  const ir::DType wanted_;
  const Groups groups_;
  std::vector<std::optional<PostValue>> changed_;  // by old value: what stands for one of the other dtype
};

}  // namespace

std::unique_ptr<ir::Function> run_unify_signedness(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return SignednessChange(pre, context).run();
}

}  // namespace qplan::passes
