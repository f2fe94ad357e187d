// What the packer knows of an operator, one OpDef each: passes, layout, quantisation of inputs and outputs,
// type deduction, the text form and cost estimates read it from here and keep no lists of names. ops.def
// lists all operators; a definition is in the file of its family (elementwise.cc, movement.cc,
// product.cc, reduce.cc, quantized.cc). README.md describes operands, attributes and meaning of each in
// words.
#ifndef QPLAN_SRC_PACKER_OP_OP_DEF_H_
#define QPLAN_SRC_PACKER_OP_OP_DEF_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::op {

// ---- attributes ----

// kFloat takes integers too; kIntOrInts is an integer or a list of integers, with different meanings.
enum class AttrKind { kBool, kInt, kFloat, kString, kInts, kIntLists, kIntOrInts };

// What an attribute says, for whoever changes layouts, dtypes or contracts without knowing the operator.
enum class AttrRole : uint8_t {
  kNone,
  kAxis,          // an axis of the data, or a list of axes, where no axis means all
  kScaleAxis,     // the axis of the data that scales and zero points vary along; means nothing where all are
                  // scalars
  kPerAxis,       // one entry per axis of the data
  kLayout,        // the order of axes of the data and the results: "NCHW", "NHWC"
  kWeightLayout,  // the order of axes of the weights
  kWindow,        // height and width of the window
  kDtype,         // the results' dtype
  kContract,      // the numeric contract
  kRounding,      // a choice of rounding that the contract leaves open
  kDataValue,     // a value, or a bound, in the integers of the data
};

struct AttrDef {
  std::string name;
  AttrKind kind;
  std::optional<ir::AttrValue> fallback = std::nullopt;  // nullopt: required, or
  bool optional = false;  // may be absent: look with Attrs::find, attr*() refuse it
  AttrRole role = AttrRole::kNone;
};

// ---- operands ----

enum class OperandRole : uint8_t {
  kData,        // what the network computes
  kWeight,      // what a product multiplies the data with
  kPerChannel,  // one value per index of the axis with AttrRole::kAxis: bias, mean, ...
  kScale,       // float32 scale of tensor `of`
  kZeroPoint,   // int32 zero point of tensor `of`
  kDataValue,   // a value in the integers of the data: that of padding
  kTable,       // 256 results, indexed by the byte of the data
  kIndices,     // positions in the data
};

inline constexpr size_t kResult = SIZE_MAX;  // OperandDef::of: the result; else the index of an operand

struct OperandDef {
  std::string name;
  OperandRole role = OperandRole::kData;
  size_t of = kResult;                            // kScale, kZeroPoint: the tensor that they quantise
  std::optional<ir::DType> dtype = std::nullopt;  // the only dtype that it may have
  bool positive = false;                          // its values must be positive: a variance
  bool may_be_attr = false;                       // older Relay writes it as an attribute of this name
};

// ---- what is computed ----

// How an element of the results depends on elements of the data: the kinds that TVM's fusion distinguishes.
enum class OpKind : uint8_t {
  kElementwise,  // on the element at the same place
  kBroadcast,    // on those of several operands at the same place, where extents of 1 are repeated
  kMovement,     // it is an element of the data, or a constant: TVM's injective kind
  kReduction,    // on a window of the data, or on whole axes
  kProduct,      // on sums of products of data and weights: TVM's complex-out-fusable kind
  kOpaque,       // on anything
};

// Which elements a kMovement's results have.
enum class Movement : uint8_t {
  kNone,     // no movement
  kReshape,  // all of the data's, in their order
  kPermute,  // all of the data's
  kSelect,   // some of the data's; several results together may have all
  kJoin,     // all of all operands'
  kPad,      // all of the data's, and a constant around them
};

// What the integers of 8-bit data and results stand for.
enum class Quantization : uint8_t {
  kNone,      // for themselves
  kOperands,  // for reals, by scales and zero points among the operands, or by a table
  kShared,  // for reals in one quantisation of data and results, which the operator need not know: it chooses
            // or interpolates among integers. Results of a dtype of their own (bool, indices) are not
            // quantised.
};

// By which of a processor's rates the time is estimated (target/profile.h).
enum class Work : uint8_t {
  kConvolution,  // also fully connected layers
  kDepthwise,
  kArithmetic,  // add, subtract, mul, and what has no kind of its own
  kTable,       // sigmoid, lookup, clip, requantize of 8 bits
  kPool,        // also mean
  kSoftmax,
  kConvert,  // quantize, dequantize, requantize of 32 bits, argmax
  kMove,     // reshape, transpose, pad, concatenate, split
  kResize,
  kNarrowConvolution,  // a convolution of at most four input channels, as first layers are
};
inline constexpr size_t kNumWorks = 10;

// ---- Relay's spelling ----

// The IR's form of an attribute as Relay writes it.
struct RelayAttr {
  enum class Kind : uint8_t { kKeep, kDrop, kRefuse } kind = Kind::kKeep;
  std::string name;     // kKeep: under this name
  ir::AttrValue value;  // and with this value
  std::string reason;   // kRefuse
};

// An attribute of Relay's that the IR does not have.
struct RelayAttrDef {
  std::string name;
  std::vector<std::string> ignored = {};  // values that say what is done anyway; "*" is any value
  RelayAttr (*read)(const std::string& value) = nullptr;  // instead, for values that mean something
  bool is_required = false;                               // what its absence means the IR cannot say
};

// Another operator of Relay's that is this one.
struct RelayName {
  std::string name;
  std::vector<RelayAttrDef> attrs;
};

// The value of attribute `out_dtype` that Relay leaves to the first operand, until that is known.
inline constexpr std::string_view kOperandDtype = "as operand 0";

// ---- the operator ----

// What inference sees: operand types, constant operands' contents, the node's attributes (attr*() fill in
// fallbacks).
struct InferInput {
  const ir::Function& function;
  const ir::Node& node;

  const ir::TensorType& type(size_t operand) const { return function.type(node.operands.at(operand)); }
};

// What is known of shapes while types are deduced; null: not yet.
struct KnownShapes {
  const ir::Shape* data = nullptr;
  const ir::Shape* result = nullptr;
};

struct OpDef {
  std::string name;                  // "qnn.conv2d"
  std::vector<OperandDef> operands;  // in order
  bool variadic = false;  // any number (>= 1) of operands, written as one tuple: concatenate((%a, %b), …)
  std::vector<AttrDef> attrs = {};  // printed in this order, only where they differ from the fallback

  OpKind kind = OpKind::kOpaque;
  Movement movement = Movement::kNone;
  Quantization quantization = Quantization::kNone;
  bool keeps_shape = false;  // the results have the first operand's shape
  bool keeps_dtype =
      false;  // operands with OperandRole::kData and no dtype of their own have one dtype, the results'
  std::optional<ir::DType> result_dtype = std::nullopt;  // the only dtype that the results may have
  bool converts = false;         // the results stand for the data's reals, in another dtype or quantisation
  bool contracts_agree = false;  // every numeric contract computes the same
  // Permuting the data's axes permutes the results' alike, where AttrRole::kAxis, kScaleAxis and kPerAxis
  // move along. Convolutions and windows have AttrRole::kLayout instead.
  bool follows_layout = false;
  std::string quantized_form = "";          // of a float operator: the operator on 8 bits
  std::optional<Work> work = std::nullopt;  // nullopt: that of the kind
  std::vector<RelayAttrDef> relay_attrs = {};
  std::vector<RelayName> relay_names = {};

  // Result types. Throws PackError with a text that begins after the node's name: "input channels 24 are not
  // ...".
  std::vector<ir::TensorType> (*infer)(const InferInput& input) = nullptr;
  // Host-only evaluation for operators without a kernel (shape arithmetic); null for the others.
  std::vector<ir::ConstantRef> (*evaluate)(const ir::Node& node,
                                           std::span<const ir::ConstantRef> operands) = nullptr;
  // The result at x, in double, of float operators with one operand; null for the others.
  double (*function)(const ir::Node& node, double x) = nullptr;
  // Attributes in the one way of writing that canonical form has; null: as they are. Types are inferred
  // already.
  void (*normalize)(const InferInput& input, ir::Attrs* attrs) = nullptr;
  // How many results the attributes ask for, before anything is checked; null: one.
  size_t (*num_results)(const ir::Node& node) = nullptr;
  // The shape of the weights, where attributes and other shapes leave one choice; null for the others.
  std::optional<ir::Shape> (*weight_shape)(const ir::Node& node, const KnownShapes& known) = nullptr;
  // Makes of a call as Relay means it the IR's: fills in attributes that Relay leaves to the operands' types,
  // takes away those that the IR does not have, and puts nodes before it. The node has an operand and is not
  // yet in the function; null: Relay means what the IR means.
  void (*complete)(ir::Function* function, ir::Node* node) = nullptr;
  // Attributes that the text has beside the node's, which tell `complete` that the IR's meaning is meant
  // where Relay's differs; null: none.
  ir::Attrs (*text_attrs)(const ir::Function& function, const ir::Node& node) = nullptr;
};

// The operator of that name; null when unknown.
const OpDef* find_op(std::string_view name);
// The same for names that this code itself writes; PackError (QPLAN_INTERNAL) when unknown.
const OpDef& get_op(std::string_view name);
std::span<const OpDef* const> all_ops();

// Checks operand count and attributes, then infers. Errors begin with operator and node name.
std::vector<ir::TensorType> infer_types(const ir::Function& function, const ir::Node& node);

// The attribute, or the fallback of the OpDef.
const ir::AttrValue& attr(const ir::Node& node, std::string_view name);
int64_t attr_int(const ir::Node& node, std::string_view name);
double attr_float(const ir::Node& node, std::string_view name);
bool attr_bool(const ir::Node& node, std::string_view name);
const std::string& attr_string(const ir::Node& node, std::string_view name);
const ir::Ints& attr_ints(const ir::Node& node, std::string_view name);
const std::vector<ir::Ints>& attr_int_lists(const ir::Node& node, std::string_view name);

// ---- questions ----
// Those about operators that several passes ask. Each is answered from the OpDef alone; where `op` is
// null (a call of a function), nothing holds.

// The attribute with the role; null if the operator has no such attribute.
const AttrDef* attr_with(const OpDef* op, AttrRole role);
inline bool has_contract(const OpDef* op) { return attr_with(op, AttrRole::kContract) != nullptr; }

// The first operand with the role.
std::optional<size_t> operand_with(const OpDef& op, OperandRole role);
// Scale and zero point of a tensor (an operand's index, or kResult); nullopt: the operator has none for it.
std::optional<size_t> scale_of(const OpDef& op, size_t tensor);
std::optional<size_t> zero_point_of(const OpDef& op, size_t tensor);
// The operands with OperandRole::kData; all of a variadic operator's.
std::vector<size_t> data_operands(const ir::Node& node);
size_t num_data_operands(const OpDef& op);  // as written: 1 for a variadic operator

// A convolution or fully connected layer, on floats or on 8 bits.
bool is_product(const OpDef* op);
bool is_quantized_product(const OpDef* op);
bool is_float_product(const OpDef* op);
// Between floats and their 8-bit form: qnn.quantize, qnn.dequantize.
bool is_float_border(const OpDef* op);
// It has an attribute for its results' dtype, and their scale and zero point among its operands:
// qnn.quantize, qnn.requantize.
bool chooses_dtype(const OpDef* op);
// A result of one tensor whose elements are some of its elements, chosen by place or by order: applying a
// monotone function to all elements before or after is the same. A kDataValue among the operands takes part.
bool chooses_elements(const OpDef* op);
// A result of two tensors whose elements are one or the other of theirs, by order: maximum, minimum. Applying
// a monotone function to both before, or to the result after, is the same.
bool chooses_between(const OpDef* op);
// A function of real numbers, one by one, that can be evaluated: chains of these are tables where the data
// has 8 bits.
bool is_real_function(const OpDef* op);
// Results on the same grid as the data: io's scale and zero point pass from one to the other.
bool passes_quantization(const OpDef* op);
// The rate by which the operator's time is estimated, whatever its attributes.
Work work_of(const OpDef* op);

// The name without its dialect: "conv2d" of "nn.conv2d".
std::string_view plain_name(const OpDef& op);
// The names of the operators that have the property, in the order of ops.def: for patterns.
std::vector<std::string> names_where(bool (*property)(const OpDef* op));

// Which scale of an accumulator is meant: a convolution's or fully connected layer's requantisation carries
// one, and the product of the layer's scales is another. Sources print or round the first one
// (docs/numerics.md, "Scales").

// Relative distance from `given` up to which it is the product, rounded.
inline constexpr double kScaleTolerance = 1e-5;

// Both positive. True: the product is meant.
inline bool means_product(double given, double product) {
  const double distance = given - product, tolerance = kScaleTolerance * given;
  return distance <= tolerance && -distance <= tolerance;
}

}  // namespace qplan::op

#endif  // QPLAN_SRC_PACKER_OP_OP_DEF_H_
