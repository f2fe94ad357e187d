#include <algorithm>
#include <functional>
#include <unordered_map>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

// One axis or several, fallbacks too; an axis that the operator does not have is left.
void move_axis(const ir::Node& node, const std::string& name, ir::Attrs* attrs) {
  const auto moved = [](int64_t axis) { return kAxisInNhwc[static_cast<size_t>(axis)]; };
  const ir::AttrValue& value = op::attr(node, name);
  if (const auto* one = std::get_if<int64_t>(&value)) {
    if (*one >= -4 && *one < 4) attrs->set(name, moved(op::normalized_axis(*one, 4)));
  } else if (const auto* several = std::get_if<ir::Ints>(&value)) {
    ir::Ints axes;
    for (const int64_t axis : op::normalized_axes(*several, 4)) axes.push_back(moved(axis));
    std::ranges::sort(axes);
    attrs->set(name, axes);
  }
}

}  // namespace

std::vector<size_t> layout_operands(const ir::Node& node) {
  return node.op != nullptr && node.op->follows_layout ? op::data_operands(node) : std::vector<size_t>();
}

ir::Attrs attrs_in_nhwc(const ir::Node& node) {
  ir::Attrs attrs = node.attrs;
  for (const op::AttrDef& def : node.op->attrs) {
    if (def.role == op::AttrRole::kAxis || def.role == op::AttrRole::kScaleAxis) {
      move_axis(node, def.name, &attrs);
    } else if (def.role == op::AttrRole::kPerAxis) {
      const std::vector<ir::Ints>& entries = op::attr_int_lists(node, def.name);
      std::vector<ir::Ints> moved;
      for (const int64_t axis : kToNhwc) moved.push_back(entries[static_cast<size_t>(axis)]);
      attrs.set(def.name, moved);
    }
  }
  return attrs;
}

// Activations become NHWC and weights OHWI, whatever the source wrote. One walk in node order: beside the
// value itself a value of four axes may have a twin, the same elements with the channels last. Operators that
// work on channels are given twins and make twins; operators that treat all elements alike follow their
// operands; everybody else goes on reading the value itself, which is a transpose of the twin and disappears
// where nobody does. So transposes stay only where data enters, leaves, or meets an operator that depends on
// the order.

namespace {

class LayoutConverter {
 public:
  LayoutConverter(Rebuild& r, const ir::Function& function, PassContext& context)
      : r_(r), context_(context), wanting_(function.num_values(), 0) {
    for (size_t i = function.nodes().size(); i-- > 0;) find_wanted(PreNode(function, i));
  }

  bool visit(PreNode node) {
    if (node.op() == nullptr) return false;
    if (op::attr_with(node.op(), op::AttrRole::kWeightLayout) != nullptr) return convolution(node);
    if (op::attr_with(node.op(), op::AttrRole::kLayout) != nullptr) return windowed(node);
    if (node.is("transpose")) return transpose(node);
    if (is_reduction(node)) return reduction(node);
    // The transpose goes after this node; qdq_to_integer would move a qnn.dequantize after the transpose
    // again.
    if (node.is("qnn.dequantize")) return false;
    if (is_softmax_of_rows(node)) return false;
    const std::vector<size_t> data = layout_operands(node.node());
    return !data.empty() && follow(node, data);
  }

 private:
  static bool is_reduction(PreNode node) {
    return node.op()->kind == op::OpKind::kReduction && node.op()->follows_layout;
  }
  // Along the last axis, which the kernel needs.
  bool is_softmax_of_rows(PreNode node) const {
    return node.is("qnn.softmax") && rank(node.operand(0)) == 4 &&
           op::normalized_axis(op::attr_int(node.node(), "axis"), 4) == 3;
  }
  // What the operator itself says of the order of its data's axes.
  static const std::string* layout(PreNode node) {
    const op::AttrDef* attr = op::attr_with(node.op(), op::AttrRole::kLayout);
    return attr != nullptr ? &op::attr_string(node.node(), attr->name) : nullptr;
  }

  // Users before what they use: a value that is read with its channels last and in no other way is made so
  // from the start, back to where the data enters or becomes 8 bits.
  void find_wanted(PreNode node) {
    if (node.op() == nullptr || becomes_8_bits(node)) return;
    const std::string* named = layout(node);
    if (named != nullptr && *named == "NCHW") {
      ++wanting_[node.operand(0).id.index];
      return;
    }
    // A reduction's result is smaller than its data: that is what to transpose.
    if (!is_wanted(node.result()) || is_reduction(node)) return;
    for (const size_t i : layout_operands(node.node())) ++wanting_[node.operand(i).id.index];
  }
  // One byte an element is cheaper to transpose than four, and a layer stays one with its requantisation.
  bool becomes_8_bits(PreNode node) const {
    return node.is("qnn.quantize") ||
           (node.is("qnn.requantize") && r_.pre().type(node.operand(0)).dtype == ir::kInt32);
  }
  bool is_wanted(PreValue value) const {
    return rank(value) == 4 && wanting_[value.id.index] != 0 &&
           wanting_[value.id.index] == r_.pre().num_uses(value);
  }

  size_t rank(PreValue value) const { return r_.pre().type(value).shape.size(); }
  bool has_twin(PreValue value) const { return twins_.contains(value.id.index); }

  PostValue transposed(PostValue value, const ir::Ints& axes, const std::string& name) {
    return r_.post().call("transpose", {value}, {{"axes", axes}}, name);
  }

  // The value with its channels last.
  PostValue twin(PreValue value, const std::string& name) {
    const auto known = twins_.find(value.id.index);
    if (known != twins_.end()) return known->second;
    const PostValue made = transposed(r_[value], kToNhwc, name);
    twins_.emplace(value.id.index, made);
    return made;
  }

  // An operand of a broadcasting operator whose result has its channels last.
  PostValue broadcast_twin(PreValue value, const std::string& name) {
    const ir::Shape& shape = r_.pre().type(value).shape;
    if (shape.size() == 4) return twin(value, name);
    if (r_.pre().type(value).num_elements() == 1) return r_[value];
    ir::Shape whole(4, 1);
    std::ranges::copy(shape, whole.end() - static_cast<std::ptrdiff_t>(shape.size()));
    return transposed(r_.post().call("reshape", {r_[value]}, {{"newshape", whole}}, name), kToNhwc, name);
  }

  // The node's results are the channels-last ones given.
  void define_twins(PreNode node, const std::vector<PostValue>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const PreValue value = node.result(i);
      twins_.insert_or_assign(value.id.index, results[i]);
      r_.replace(value, transposed(results[i], kToNchw, node.name()));
    }
  }

  bool convolution(PreNode conv) {
    const std::string& data_layout = op::attr_string(conv.node(), "data_layout");
    const std::string& kernel_layout = op::attr_string(conv.node(), "kernel_layout");
    if (data_layout == "NHWC" && kernel_layout == "OHWI") return false;
    std::vector<PostValue> operands = r_.operands(conv);
    ir::Attrs attrs = conv.attrs();
    if (kernel_layout != "OHWI") {
      const op::WeightLayout w = op::weight_layout(kernel_layout);
      const ir::Ints axes{static_cast<int64_t>(w.o), static_cast<int64_t>(w.h), static_cast<int64_t>(w.w),
                          static_cast<int64_t>(w.i)};
      operands[1] = transposed(operands[1], axes, conv.name());
      attrs.set("kernel_layout", std::string("OHWI"));
    }
    context_.fired("convert_layout", conv.name(),
                   data_layout + " and " + kernel_layout + " are now NHWC and OHWI");
    if (data_layout == "NHWC") {
      r_.replace(conv.result(), r_.post().call(conv.op()->name, operands, std::move(attrs), conv.name()));
      return true;
    }
    operands[0] = twin(conv.operand(0), conv.name());
    attrs.set("data_layout", std::string("NHWC"));
    define_twins(conv, {r_.post().call(conv.op()->name, operands, std::move(attrs), conv.name())});
    return true;
  }

  // Pools and resizing: attribute `layout`, the data is the first operand.
  bool windowed(PreNode node) {
    if (op::attr_string(node.node(), "layout") != "NCHW" || rank(node.operand(0)) != 4) return false;
    std::vector<PostValue> operands = r_.operands(node);
    operands[0] = twin(node.operand(0), node.name());
    ir::Attrs attrs = node.attrs();
    attrs.set("layout", std::string("NHWC"));
    context_.fired("convert_layout", node.name(), "NCHW is now NHWC");
    define_twins(node, {r_.post().call(node.op()->name, operands, std::move(attrs), node.name())});
    return true;
  }

  bool transpose(PreNode node) {
    const ir::Ints& axes = op::attr_ints(node.node(), "axes");
    const PreValue data = node.operand(0);
    if (axes == kToNhwc && has_twin(data)) {
      context_.fired("convert_layout", node.name(),
                     "its operand is there with channels last already, dropped");
      r_.replace(node.result(), twin(data, node.name()));
      return true;
    }
    // What reads the result may as well read what it was made of.
    if (axes == kToNchw) twins_.emplace(node.result().id.index, r_[data]);
    return false;
  }

  // At least one of the operands, and as many as have none. Not fewer: to NHWC thrice is the identity, so
  // that an operator of one value in all three orders would be turned for ever.
  bool mostly_twins(PreNode node, const std::vector<size_t>& data) const {
    size_t twins = 0, others = 0;
    for (const size_t i : data) {
      const PreValue value = node.operand(i);
      if (rank(value) != 4 || r_.pre().constant(value) != nullptr) continue;
      ++(has_twin(value) ? twins : others);
    }
    return twins > 0 && twins >= others;
  }

  // The operands `data` have the order of the results. Where one of them has a twin, the results are twins.
  bool follow(PreNode node, const std::vector<size_t>& data) {
    if (rank(node.result()) != 4) return false;
    // What is taken at positions of several axes, or of none, has other axes than its data.
    if (node.op()->kind == op::OpKind::kMovement && rank(node.operand(data[0])) != 4) return false;
    const bool wanted = is_wanted(node.result()) && !becomes_8_bits(node);
    if (!wanted && !mostly_twins(node, data)) return false;
    std::vector<PostValue> operands = r_.operands(node);
    for (const size_t i : data) operands[i] = broadcast_twin(node.operand(i), node.name());
    finish(node, operands, attrs_in_nhwc(node.node()));
    return true;
  }

  // Without the reduced axes what is left of NCHW and of NHWC must come in the same order, and so must the
  // reduced floats: each step of their chain rounds.
  bool reduction(PreNode node) {
    if (!has_twin(node.operand(0))) return false;
    const bool keepdims = op::attr_bool(node.node(), "keepdims");
    const ir::Ints axes = op::normalized_axes(op::attr_ints(node.node(), "axis"), 4);
    const auto reduced = [&](int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); };
    if (!keepdims && !reduced(1) && !(reduced(2) && reduced(3))) return false;
    const ir::TensorType& data = r_.pre().type(node.operand(0));
    const auto several = [&](int64_t axis) {
      return reduced(axis) && data.shape[static_cast<size_t>(axis)] > 1;
    };
    if (data.dtype.is_float() && several(1) && (several(2) || several(3))) return false;
    std::vector<PostValue> operands = r_.operands(node);
    operands[0] = twin(node.operand(0), node.name());
    ir::Attrs attrs = attrs_in_nhwc(node.node());
    if (keepdims) {
      finish(node, operands, std::move(attrs));
    } else {
      r_.replace(node.result(), r_.post().call(node.op()->name, operands, std::move(attrs), node.name()));
      context_.fired("convert_layout", node.name(), "follows its operand to NHWC");
    }
    return true;
  }

  void finish(PreNode node, const std::vector<PostValue>& operands, ir::Attrs attrs) {
    context_.fired("convert_layout", node.name(), "follows its operand to NHWC");
    define_twins(node, r_.post().call_all(node.op()->name, operands, std::move(attrs), node.name()));
  }

  Rebuild& r_;
  PassContext& context_;
  std::vector<uint32_t> wanting_;  // by value of the old function: reads that want channels last
  std::unordered_map<uint32_t, PostValue> twins_;  // by value of the old function
};

}  // namespace

std::unique_ptr<ir::Function> run_convert_layout(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  std::optional<LayoutConverter> converter;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!converter) converter.emplace(r, pre, context);
    return converter->visit(node);
  });
}

// A quantised softmax is along the last axis: its kernels have the values of one beside each other. Each of
// them is computed by itself, so an order in which they come changes no bit.
namespace {

Result transposed_softmax(const pattern::RewriteContext& c, std::string* why) {
  const PreNode softmax = c.root;
  const auto rank = static_cast<int64_t>(c.pre().type(softmax.operand(0)).shape.size());
  const int64_t axis = op::normalized_axis(op::attr_int(softmax.node(), "axis"), static_cast<size_t>(rank));
  if (axis == rank - 1) {
    *why = "it is along the last axis";
    return std::nullopt;
  }
  ir::Ints there, back;  // the axis at the end; from there to its place
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) there.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  there.push_back(axis);
  *why = cat("along axis ", axis, ", between transposes that make it the last one");
  const auto transpose = [&](PostValue value, const ir::Ints& axes) {
    return c.post().call("transpose", {value}, {{"axes", axes}}, softmax.name());
  };
  std::vector<PostValue> operands = c.r.operands(softmax);
  operands[0] = transpose(operands[0], there);
  ir::Attrs attrs = softmax.attrs();
  attrs.set("axis", rank - 1);
  return transpose(c.post().call("qnn.softmax", operands, std::move(attrs), softmax.name()), back);
}

}  // namespace

std::span<const pattern::Rewrite> softmax_of_rows_rewrites() {
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "softmax_of_rows", .pattern = pattern::op("qnn.softmax"), .build = transposed_softmax}};
  return rows;
}

std::unique_ptr<ir::Function> run_softmax_of_rows(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  return run_rewrites(softmax_of_rows_rewrites(), pre, context);
}

}  // namespace qplan::passes
