#include "src/packer/target/target.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/target/profile.h"

namespace qplan::target {
namespace {

// More is counted as this, so that sums and prices stay within 64 bits.
constexpr int64_t kMaxMacs = int64_t{1} << 50;

uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Without a layout of its own: in and out by DMA, and multiply-accumulates at the device's rate.
uint64_t operator_cycles(const Candidate& candidate, const DeviceCosts& costs) {
  const ir::Function& function = candidate.function();
  const ir::Node& node = candidate.root();
  uint64_t dma = 0;
  for (const ir::ValueId value : node.operands) {
    dma += dma_cycles(costs, static_cast<uint64_t>(function.type(value).size_bytes()));
  }
  for (const ir::ValueId value : node.results) {
    dma += dma_cycles(costs, static_cast<uint64_t>(function.type(value).size_bytes()));
  }
  return std::max(dma, ceil_div(node_macs(function, node), costs.macs_per_cycle));
}

}  // namespace

void append(std::vector<Constraint>* constraints, std::vector<Constraint> more) {
  constraints->insert(constraints->end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
}

const ir::Node* Candidate::node(std::string_view name) const {
  const auto value = matches.find(name);
  return value ? function().producer(value->id) : nullptr;
}

std::string Candidate::reader_besides_requantize() const {
  const ir::ValueId result = root().results[0];
  const std::span<const ir::Node> all = function().nodes();
  // Up to the last reader: in canonical order it is next to the layer.
  auto left = static_cast<int64_t>(pre.num_uses(pattern::PreValue{result}));
  left -= std::ranges::count(function().outputs(), result);
  for (size_t n = nodes().back() + 1; left > 0 && n < all.size(); ++n) {
    const int64_t uses = std::ranges::count(all[n].operands, result);
    left -= uses;
    if (uses == 0) continue;
    const std::string& reader = all[n].op == nullptr ? all[n].callee : all[n].op->name;
    if (reader != "qnn.requantize") return reader;
  }
  return "";
}

const layer::QuantizedLayer& Candidate::layer() const {
  if (read_layer == nullptr) {
    read_layer = std::make_shared<const layer::QuantizedLayer>(layer::read_layer(
        {&function(), node("pad"), node("product"), node("bias_add"), node("requantize"), node("clip")}));
  }
  return *read_layer;
}

std::vector<Reason> PatternRow::check(const Candidate& candidate) const {
  if (!judge) return reasons_against<Candidate>(constraints, candidate);
  const std::vector<std::string> texts = judge(candidate);
  std::vector<Reason> reasons;
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Constraint& constraint = constraints[i];
    if (!texts.at(i).empty()) reasons.push_back({constraint.id, texts[i], constraint.hint});
  }
  return reasons;
}

bool PatternRow::is_operator() const { return op::find_op(name) != nullptr; }

std::vector<const Target*> by_priority(std::span<const Target> targets) {
  std::vector<const Target*> order;
  for (const Target& target : targets) order.push_back(&target);
  std::ranges::stable_sort(order, std::greater(), [](const Target* target) { return target->priority; });
  return order;
}

Target operators_target(std::string name, const std::vector<std::string>& operators) {
  Target target;
  target.name = std::move(name);
  for (const std::string& op : operators) {
    target.table.push_back({op, "as it is", pattern::op(op), {}, operator_cycles});
  }
  return target;
}

uint64_t node_macs(const ir::Function& function, const ir::Node& node) {
  const bool is_transposed = node.op != nullptr && node.op->name == "qnn.conv2d_transpose";
  if (!is_transposed && !op::is_product(node.op)) return 0;
  const ir::TensorType& weight = function.type(node.operands[1]);
  // An output takes the products of a window. Transposed, an input adds its products to a window (OHWI).
  const int64_t window =
      weight.num_elements() / weight.shape[is_transposed ? 3 : op::weight_output_axis(node)];
  const ir::TensorType& windows = function.type(is_transposed ? node.operands[0] : node.results[0]);
  int64_t macs = 0;
  const bool fits = checked_mul(windows.num_elements(), window, &macs);
  return static_cast<uint64_t>(fits ? std::min(macs, kMaxMacs) : kMaxMacs);
}

uint64_t device_ns(const DeviceCosts& costs, uint64_t cycles) {
  return mul_div(cycles, 1'000'000, costs.clock_khz);
}
uint64_t device_pj(const DeviceCosts& costs, uint64_t macs, uint64_t bytes) {
  return mul_div(macs, costs.fj_per_mac, 1000) + mul_div(bytes, costs.fj_per_byte, 1000);
}
uint64_t dma_cycles(const DeviceCosts& costs, uint64_t bytes) {
  return costs.dma_latency_cycles + ceil_div(bytes, costs.dma_bytes_per_cycle);
}

namespace {

using pattern::any;
using pattern::constant;
using pattern::op;
using pattern::Pattern;

bool is_depthwise(const pattern::Pre& pre, pattern::PreValue value) {
  const auto conv = pre.producer(value);
  const op::DataLayout layout = op::data_layout(op::attr_string(conv->node(), "data_layout"));
  const int64_t groups = op::attr_int(conv->node(), "groups");
  return groups > 1 && groups == pre.type(conv->operand(0)).shape[layout.c];
}

// That there is no other operator counts as a condition that held: what fails after it is the nearer miss.
Pattern anything(const char* name) {
  return any().where("of any kind", [](const pattern::Pre&, pattern::PreValue) { return true; }).as(name);
}
Pattern addition() { return op("qnn.add", {any().as("lhs"), any().as("rhs")}).as("sum"); }
Pattern pool(const char* name) { return op(name, {any().as("data")}).as("pool"); }

const Composite kComposites[] = {
    {"qplan.qconv2d", "Convolution", "nn.pad? -> qnn.conv2d -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(convolution(Convolution::kOthers))); }},
    {"qplan.qdepthwise", "Depthwise convolution",
     "nn.pad? -> qnn.conv2d with as many groups as channels -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(convolution(Convolution::kDepthwise))); }},
    {"qplan.qdense", "Fully connected layer", "qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(dense())); }},
    {"qplan.qconv2d_transpose", "Transposed convolution",
     "qnn.conv2d_transpose -> nn.bias_add? -> qnn.requantize -> clip?", true,
     [] { return requantized(with_bias(transposed_convolution())); }},
    {"qplan.qresize_nearest2x", "Twice the height and width, of the nearest elements",
     "take -> take of constant positions", false,
     [] {
       return op("take", {op("take", {any().as("data"), constant()}).one_use().as("inner"), constant()});
     }},
    {"qplan.qadd", "Addition of two activations", "qnn.add -> clip?", true,
     [] { return with_clip(addition()); }},
    {"qplan.qmax_pool2d", "Maximum over a window", "nn.max_pool2d -> clip?", true,
     [] { return with_clip(pool("nn.max_pool2d")); }},
    {"qplan.qavg_pool2d", "Average over a window", "qnn.avg_pool2d -> clip?", true,
     [] { return with_clip(pool("qnn.avg_pool2d")); }},
    {"qplan.qmean", "Average over height and width, rescaled", "qnn.mean", true,
     [] { return op("qnn.mean", {any().as("data")}).as("mean"); }},
    {"qplan.qclip", "Clamp", "clip", true, [] { return op("clip", {any().as("data")}).as("clip"); }},
    {"qplan.qreshape", "Another shape of the same bytes, without an instruction", "reshape", true,
     [] { return op("reshape", {any().as("data")}).as("plain"); }},
    {"qplan.qmul", "Product of two activations", "qnn.mul -> clip?", true,
     [] {
       return with_clip(op("qnn.mul", {any().as("lhs"), any().as("rhs")}).as("plain"));
     }},
    {"qplan.qmaximum", "Larger of two activations", "maximum", true,
     [] {
       return op("maximum", {any().as("lhs"), any().as("rhs")}).as("plain");
     }},
    {"qplan.qminimum", "Smaller of two activations", "minimum", true,
     [] {
       return op("minimum", {any().as("lhs"), any().as("rhs")}).as("plain");
     }},
    {"qplan.qlookup", "Function of one 8-bit value, by a table", "qnn.lookup", true,
     [] {
       return op("qnn.lookup", {any().as("data"), constant()}).as("plain");
     }},
    {"qplan.qpad", "Border around height and width", "nn.pad", true,
     [] {
       return op("nn.pad", {any().as("data"), constant()}).as("plain");
     }},
    {"qplan.qconcat", "Two activations along the channels", "concatenate", true,
     [] { return op("concatenate").as("plain"); }},
    {"qplan.qsoftmax", "Softmax of rows", "qnn.softmax", true,
     [] { return op("qnn.softmax", {any().as("data")}).as("plain"); }},
    {"qplan.qresize_nearest", "Another height and width, of the nearest elements",
     "take -> take? of constant positions", true,
     [] {
       const Pattern data =
           op("take", {any().as("data"), constant()}).one_use().as("inner") | anything("data");
       return op("take", {data, constant()}).as("plain");
     }},
    {"qplan.qresize_bilinear", "Another height and width, interpolated", "image.resize2d", true,
     [] { return op("image.resize2d", {any().as("data")}).as("plain"); }},
    {"qplan.qconcat_n", "Two to eight activations along any axis", "concatenate", true,
     [] { return op("concatenate").as("general"); }},
    {"qplan.qadd_broadcast", "Addition of activations or constants whose shapes broadcast",
     "qnn.add -> clip?", true,
     [] {
       return with_clip(op("qnn.add", {any().as("lhs"), any().as("rhs")}).as("general"));
     }},
    {"qplan.qmul_broadcast", "Product of activations or constants whose shapes broadcast", "qnn.mul -> clip?",
     true,
     [] {
       return with_clip(op("qnn.mul", {any().as("lhs"), any().as("rhs")}).as("general"));
     }},
    {"qplan.qconv2d_acc32",
     "Convolution whose int32 results leave the device, where they cannot be requantised there",
     "nn.pad? -> qnn.conv2d -> nn.bias_add?", true,
     [] { return with_bias(convolution(Convolution::kOthers)); }},
    {"qplan.qdepthwise_acc32", "Depthwise convolution whose int32 results leave the device",
     "nn.pad? -> qnn.conv2d with as many groups as channels -> nn.bias_add?", true,
     [] { return with_bias(convolution(Convolution::kDepthwise)); }},
    {"qplan.qdense_acc32", "Fully connected layer whose int32 results leave the device",
     "qnn.dense -> nn.bias_add?", true, [] { return with_bias(dense()); }},
    {"qplan.qconv2d_transpose_acc32", "Transposed convolution whose int32 results leave the device",
     "qnn.conv2d_transpose -> nn.bias_add?", true, [] { return with_bias(transposed_convolution()); }},
};

}  // namespace

Pattern with_clip(const Pattern& inner) { return op("clip", {inner.one_use()}).as("clip") | inner; }

Pattern with_bias(const Pattern& product) {
  return op("nn.bias_add", {product.one_use(), constant().as("bias")}).as("bias_add") | product;
}

Pattern requantized(const Pattern& accumulator) {
  return with_clip(op("qnn.requantize", {accumulator.one_use()}).as("requantize"));
}

Pattern convolution(Convolution kind) {
  const Pattern data = op("nn.pad", {any().as("data"), constant()}).one_use().as("pad") | anything("data");
  const Pattern conv = op("qnn.conv2d", {data, constant().as("weight")}).as("product");
  if (kind == Convolution::kAny) return conv;
  const bool depthwise = kind == Convolution::kDepthwise;
  return conv.where(depthwise ? "with as many groups as channels" : "with fewer groups than channels",
                    [depthwise](const pattern::Pre& pre, pattern::PreValue value) {
                      return is_depthwise(pre, value) == depthwise;
                    });
}

Pattern transposed_convolution() {
  return op("qnn.conv2d_transpose", {any().as("data"), constant().as("weight")}).as("product");
}

Pattern dense() { return op("qnn.dense", {any().as("data"), constant().as("weight")}).as("product"); }

std::span<const Composite> composites() { return kComposites; }

const Composite& composite(std::string_view name) {
  const auto* const found = std::ranges::find(kComposites, name, &Composite::name);
  if (found == std::end(kComposites))
    throw PackError(QPLAN_INTERNAL, cat("there is no composite '", name, "'"));
  return *found;
}

std::string summary(const Composite& composite, std::string_view note) {
  return cat(composite.what, note.empty() ? "" : ", ", note, ": ", composite.operators);
}

namespace {

CpuWork convolution_work(const ir::Function& function, const ir::Node& node) {
  const op::AttrDef* attr = op::attr_with(node.op, op::AttrRole::kLayout);
  if (attr == nullptr) return CpuWork::kConvolution;  // a fully connected layer
  const op::DataLayout layout = op::data_layout(op::attr_string(node, attr->name));
  const int64_t channels = function.type(node.operands[0]).shape[layout.c];
  const int64_t groups = op::attr_int(node, "groups");
  if (groups > 1 && groups == channels) return CpuWork::kDepthwise;
  return is_narrow(static_cast<uint64_t>(channels)) ? CpuWork::kNarrowConvolution : CpuWork::kConvolution;
}

}  // namespace

CpuWork cpu_work(const ir::Function& function, const ir::Node& node) {
  if (node.op == nullptr) return CpuWork::kArithmetic;
  const CpuWork work = op::work_of(node.op);
  if (work == CpuWork::kConvolution) return convolution_work(function, node);
  // For 8 bits it is a table of 256 entries.
  if (node.op->name == "qnn.requantize") {
    const bool is_byte =
        function.type(node.operands[0]).size_bytes() == function.type(node.operands[0]).num_elements();
    return is_byte ? CpuWork::kTable : work;
  }
  return work;
}

}  // namespace qplan::target
