// Softmax along the channels: the fixed-point arithmetic of kernels/softmax/softmax.h, one kernel for each of
// its steps. An exponential is an entry of a table; 1 / (1 + a) is that of kernels/numeric/fixed_point.h
// (tests/ethosu/compiler/softmax_test.cc).
#include <array>

#include "kernels/numeric/fixed_point.h"
#include "src/ethosu/compiler/target.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::ethosu::compiler {
namespace {

// Each exponential adds up to 2^19 to a sum that stays below 2^31.
constexpr int64_t kMaxChannels = 4095;
constexpr uint32_t kSumShift = 12;
constexpr uint32_t kTable = 16;  // the activation that looks up the first table
constexpr Scale kOne = {1, 0};
// A product of 32-bit operands: of this the device applies the shift alone.
constexpr Scale kHighHalf = {1u << 30, 31};
constexpr Scale kHalf = {1, 1};

enum Scratch : size_t {
  kMaximum,
  kExponentials,
  kProducts,
  kSum,
  kZeros,
  kShift,
  kQuotient,
  kRest,
  kNumScratch
};

FeatureMap wide(FeatureMap map) {
  map.zero_point = 0;
  return map;
}

// The kernels of one softmax.
class Emitter {
 public:
  Emitter(const std::string& name, const std::vector<uint8_t>& table, const UnitContext& context)
      : name_(name), table_(table), context_(context) {}

  void run() const {
    maxima();
    exponentials();
    shift_right(at(kExponentials), constant(kSumShift), at(kProducts));
    sums();
    // Normalised to [2^31, 2^32) the sum is 1 + a in Q1.31, of which a remains.
    unary(ElementwiseMode::kClz, at(kSum), at(kZeros));
    difference_from(12 + 31 - 8, at(kZeros), at(kShift));
    binary(ElementwiseMode::kSub, at(kZeros), constant(1), at(kZeros), kOne);
    shift_left(at(kSum), at(kZeros), at(kSum));
    binary(ElementwiseMode::kSub, at(kSum), constant(1 << 30), at(kSum), kOne);
    shift_left(at(kSum), constant(1), at(kSum));
    reciprocals();
    binary(ElementwiseMode::kMul, at(kExponentials), at(kQuotient), at(kProducts), kHighHalf);
    FeatureMap output = context_.outputs[0];
    output.zero_point = output.is_signed ? -128 : 0;
    shift_right(at(kProducts), at(kShift), output);
  }

 private:
  FeatureMap at(Scratch scratch) const { return wide(context_.scratch[scratch]); }

  FeatureMap constant(int32_t value) const {
    std::array<uint8_t, 4> bytes{};
    for (size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<uint8_t>(static_cast<uint32_t>(value) >> (8 * b));
    FeatureMap map;
    map.region = ConstantData::kRegion;
    map.base[0] = context_.constants.add(bytes).begin;
    map.is_signed = true;
    map.bits = 32;
    set_dense(&map);
    return map;
  }

  // The largest channel of each position: windows over rows of channels.
  void maxima() const {
    const FeatureMap& input = context_.inputs[0];
    const bool is_dense = input.stride_y == input.stride_x * input.w;
    const uint32_t images = is_dense ? 1 : input.h;
    for (uint32_t i = 0; i < images; ++i) {
      Kernel k;
      k.kind = KernelKind::kPool;
      k.pool = PoolMode::kMax;
      k.ifm = input, k.ofm = context_.scratch[kMaximum];
      k.ofm.base[0] += i * k.ofm.stride_y;
      k.ifm.base[0] += i * k.ifm.stride_y;
      k.ifm.h = k.ofm.h = input.h / images * input.w;
      k.ifm.w = k.window_w = input.d, k.ofm.w = 1;
      k.ifm.d = k.ofm.d = 1;
      for (FeatureMap* const map : {&k.ifm, &k.ofm}) {
        map->width0 = map->w, map->height0 = map->height1 = map->h;
        map->stride_y = map->stride_x, map->stride_x = map->element_bytes();
      }
      k.min = input.is_signed ? -128 : 0, k.max = input.is_signed ? 127 : 255;
      add_kernel(context_, name_, k);
    }
  }

  void exponentials() const {
    Transfer transfer;
    transfer.from = context_.constants.add(table_);
    transfer.to_shram = true;
    transfer.to = {0, table_address(context_.config), table_.size()};
    context_.stream.add(transfer);
    Kernel k = elementwise(ElementwiseMode::kSub, context_.inputs[0], context_.scratch[kMaximum],
                           context_.scratch[kExponentials], kOne);
    k.ifm.zero_point = k.ifm2.zero_point = 0;
    k.opa = k.opb = kOne;
    // Differences are from -255 to 0.
    k.ofm.zero_point = 127;
    k.activation = kTable;
    k.clip = 3;
    k.min = -128, k.max = 127;
    add_kernel(context_, name_, k);
  }

  void sums() const {
    Kernel k;
    k.kind = KernelKind::kPool;
    k.pool = PoolMode::kReduceSum;
    k.ifm = at(kProducts), k.ofm = at(kSum);
    k.has_scale = true;
    k.ofm_scale = kOne;
    add_kernel(context_, name_, k);
  }

  // 1 / (1 + a) of the a at kSum, in Q0.31.
  void reciprocals() const {
    constexpr int32_t k48Over17 = 1515870810, kMinus32Over17 = -1010580540, kOneInQ29 = 1 << 29;
    constexpr int kIterations = 3;
    // The half of a + 1, of which x is the quotient.
    binary(ElementwiseMode::kAdd, at(kSum), constant(INT32_MAX), at(kSum), kHalf);
    binary(ElementwiseMode::kMul, at(kSum), constant(kMinus32Over17), at(kQuotient), kHighHalf);
    binary(ElementwiseMode::kAdd, at(kQuotient), constant(k48Over17), at(kQuotient), kOne);
    for (int i = 0; i < kIterations; ++i) {
      binary(ElementwiseMode::kMul, at(kQuotient), at(kSum), at(kRest), kHighHalf);
      difference_from(kOneInQ29, at(kRest), at(kRest));
      binary(ElementwiseMode::kMul, at(kQuotient), at(kRest), at(kRest), kHighHalf);
      binary(ElementwiseMode::kMul, at(kRest), constant(4), at(kRest), kOne);
      binary(ElementwiseMode::kAdd, at(kQuotient), at(kRest), at(kQuotient), kOne);
    }
    // Twice x, of which 2^30 would be 2^31: that is 2^31 - 1. Arm's compiler multiplies by 2, which is
    // another result where the device does not saturate. x has 1 leading zero there, else 2 or 3, which have
    // 31 and 30.
    unary(ElementwiseMode::kClz, at(kQuotient), at(kRest));
    unary(ElementwiseMode::kClz, at(kRest), at(kRest));
    binary(ElementwiseMode::kSub, at(kRest), constant(30), at(kRest), kOne);
    binary(ElementwiseMode::kSub, at(kQuotient), at(kRest), at(kRest), kOne);
    binary(ElementwiseMode::kAdd, at(kQuotient), at(kRest), at(kQuotient), kOne);
  }

  Kernel elementwise(ElementwiseMode mode, const FeatureMap& a, const FeatureMap& b, const FeatureMap& out,
                     std::optional<Scale> scale) const {
    Kernel k;
    k.kind = KernelKind::kElementwise;
    k.elementwise = mode;
    k.ifm = a, k.ifm2 = b, k.ofm = out;
    k.has_ifm2 = true;
    k.broadcast_h = b.h < out.h, k.broadcast_w = b.w < out.w, k.broadcast_c = b.d < out.d;
    k.has_scale = scale.has_value();
    if (scale) k.ofm_scale = *scale;
    k.min = out.is_signed ? -128 : 0, k.max = out.is_signed ? 127 : 255;
    return k;
  }
  void binary(ElementwiseMode mode, const FeatureMap& a, const FeatureMap& b, const FeatureMap& out,
              const Scale& scale) const {
    add_kernel(context_, name_, elementwise(mode, a, b, out, scale));
  }
  void difference_from(int32_t value, const FeatureMap& map, const FeatureMap& out) const {
    Kernel k = elementwise(ElementwiseMode::kSub, map, constant(value), out, kOne);
    k.ifm2_is_first = true;
    add_kernel(context_, name_, k);
  }
  void shift_left(const FeatureMap& map, const FeatureMap& by, const FeatureMap& out) const {
    add_kernel(context_, name_, elementwise(ElementwiseMode::kShl, map, by, out, std::nullopt));
  }
  // Half up: what is shifted is not negative.
  void shift_right(const FeatureMap& map, const FeatureMap& by, const FeatureMap& out) const {
    Kernel k = elementwise(ElementwiseMode::kShr, map, by, out, std::nullopt);
    k.rounding = Rounding::kNatural;
    add_kernel(context_, name_, k);
  }
  void unary(ElementwiseMode mode, const FeatureMap& map, const FeatureMap& out) const {
    Kernel k = elementwise(mode, map, map, out, std::nullopt);
    k.has_ifm2 = false;
    add_kernel(context_, name_, k);
  }

  const std::string& name_;
  const std::vector<uint8_t>& table_;
  const UnitContext& context_;
};

std::optional<layer::SoftmaxScaling> scaling_of(const Candidate& c) {
  const ir::Node& node = *c.node("softmax");
  return layer::softmax_scaling(static_cast<double>(static_cast<float>(op::attr_float(node, "beta"))) *
                                static_cast<double>(scale_operand(c, node, 1)));
}

}  // namespace

Unit read_softmax_unit(const Candidate& c) {
  const ir::Node& node = *c.node("softmax");
  const layer::SoftmaxScaling scaling = *scaling_of(c);
  // exp of the differences from -255 to 0, in Q0.31.
  std::vector<uint8_t> table;
  for (int32_t difference = -255; difference <= 0; ++difference) {
    const int32_t exponential =
        difference < scaling.diff_min
            ? 0
            : fixed_exp_negative<5>(
                  doubling_high_mul(wrap_shift_left(difference, scaling.left_shift), scaling.multiplier));
    for (uint32_t b = 0; b < 4; ++b)
      table.push_back(static_cast<uint8_t>(static_cast<uint32_t>(exponential) >> (8 * b)));
  }
  const ir::TensorType& type = c.function().type(node.results[0]);
  const Image image = *image_of(type);
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  const ir::Shape whole = {image.h, image.w, image.d}, rows = {image.h, image.w, 1};
  unit.scratch.assign(kNumScratch, {ir::kInt32, rows});
  unit.scratch[kMaximum].dtype = type.dtype;
  unit.scratch[kExponentials].shape = unit.scratch[kProducts].shape = whole;
  unit.emit = [table, name = node.name](const UnitContext& context) { Emitter(name, table, context).run(); };
  return unit;
}

Rows softmax_constraints() {
  const std::string prefix = "ethosu.softmax.";
  Rows rows = activation_rows(prefix, "softmax", 1);
  append(&rows, quantization_rows(prefix, "softmax", 1, 5));
  rows.push_back(
      {prefix + "axis",
       cat("along the last axis, of at most ", kMaxChannels, " elements; at most ", kMaxExtent, " positions"),
       kNothingToChange, [](const Candidate& c) -> std::string {
         const ir::Node& node = *c.node("softmax");
         const ir::TensorType& type = c.function().type(node.results[0]);
         const auto rank = static_cast<int64_t>(type.shape.size());
         if (rank == 0) return "no axis";
         const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), type.shape.size());
         if (axis == rank - 1 && type.shape.back() <= kMaxChannels &&
             type.num_elements() / type.shape.back() <= kMaxExtent)
           return "";
         return cat("along axis ", axis, " of ", type);
       }});
  rows.push_back(
      {prefix + "output",
       "an output scale of 1/256 and the least value as zero point; an input scale times beta above "
       "2^-26",
       kNothingToChange, [](const Candidate& c) -> std::string {
         const ir::Node& node = *c.node("softmax");
         const ir::DType dtype = c.function().type(node.results[0]).dtype;
         if (!are_scalars(c, node, 1, 5) || !layer::is_8_bit(dtype)) return "";
         if (scale_operand(c, node, 3) != 1.0f / 256.0f || zero_point_operand(c, node, 4) != dtype.min())
           return cat("an output scale of ", scale_operand(c, node, 3), " and zero point ",
                      zero_point_operand(c, node, 4));
         return scaling_of(c) ? "" : "an input scale that TFLite refuses";
       }});
  return rows;
}

}  // namespace qplan::ethosu::compiler
