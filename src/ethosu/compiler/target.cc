// Ethos-U55 and U65 as targets of the packer: what they take, their options, and what their units have in
// common.
#include "src/ethosu/compiler/target.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>

#include "src/ethosu/compiler/region.h"
#include "src/ethosu/isa/stream.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
namespace {

// The first one that takes a node wins.
constexpr Row kRows[] = {
    {"qplan.qconv2d", "", conv2d_constraints, read_layer_unit},
    {"qplan.qdepthwise", "", depthwise_constraints, read_layer_unit},
    {"qplan.qdense", "", dense_constraints, read_layer_unit},
    {"qplan.qconv2d_transpose", "over the input with zeros between its elements",
     conv2d_transpose_constraints, read_layer_unit},
    {"qplan.qadd", "", add_constraints, read_add_unit},
    {"qplan.qmax_pool2d", "", max_pool2d_constraints, read_max_pool_unit},
    {"qplan.qavg_pool2d", "", avg_pool2d_constraints, read_average_pool_unit},
    {"qplan.qmean", "", mean_constraints, read_mean_unit},
    {"qplan.qclip", "as an average of one cell", clip_constraints, read_clip_unit},
    {"qplan.qreshape", "", reshape_constraints, read_reshape_unit},
    {"qplan.qresize_nearest2x", "", resize_nearest_constraints, read_resize_nearest_unit},
    {"qnn.subtract", "Difference of two activations", subtract_constraints, read_add_unit},
    {"qnn.mul", "Product of two activations", mul_constraints, read_mul_unit},
    {"maximum", "Larger one of two activations", extremum_constraints, read_extremum_unit},
    {"minimum", "Smaller one of two activations", extremum_constraints, read_extremum_unit},
    {"qnn.requantize", "Rescaled activation, as an average of one cell", requantize_constraints,
     read_requantize_unit},
    {"qnn.lookup", "Function of one 8-bit value, by a table in SHRAM", lookup_constraints, read_lookup_unit},
    {"concatenate", "Inputs written where they are in the output", concatenate_constraints,
     read_concatenate_unit},
    {"split", "Outputs read where they are in the input", split_constraints, read_split_unit},
    {"strided_slice", "Output read where it is in the input", slice_constraints, read_slice_unit},
    {"take", "Rows, columns or channels by position, copied where a step leads from one to the next",
     take_constraints, read_take_unit},
    {"nn.pad", "Padding that no convolution takes: the input is copied, the border is its value",
     pad_constraints, read_pad_unit},
    {"transpose", "Copied with other strides", transpose_constraints, read_transpose_unit},
    {"qnn.softmax", "In fixed point, as 35 kernels or more", softmax_constraints, read_softmax_unit},
};

pattern::Pattern pattern_of(const Row& row) {
  for (const target::Composite& composite : target::composites()) {
    if (composite.name == row.name) return composite.make();
  }
  const pattern::Pattern node = pattern::op(row.name);
  if (row.name == "qnn.mul") return node.as("product");
  if (row.name == "qnn.softmax") return node.as("softmax");
  if (row.name == "qnn.subtract") return node.as("sum");
  if (row.name == "qnn.requantize") return node.as("requantize");
  return node;
}

std::string summary_of(const Row& row) {
  for (const target::Composite& composite : target::composites()) {
    if (composite.name == row.name) return target::summary(composite, row.note);
  }
  return std::string(row.note);
}

// The cycles of a unit alone, which reads its inputs from memory and writes its outputs there.
uint64_t unit_cycles(const Config& config, UnitReader read, const Candidate& candidate) {
  try {
    const Unit unit = read(candidate);
    if (!unit.emit || unit.parts != Unit::Parts::kNone) return 0;
    const ir::Function& function = candidate.function();
    std::vector<FeatureMap> inputs, outputs, scratch;
    const auto map_of = [](const ir::TensorType& type) {
      FeatureMap map = map_of_type(type);
      map.region = Placement::kScratch;
      return map;
    };
    for (const ir::ValueId value : unit.inputs) inputs.push_back(map_of(function.type(value)));
    for (const ir::ValueId value : candidate.root().results) outputs.push_back(map_of(function.type(value)));
    for (const ir::TensorType& type : unit.scratch) scratch.push_back(map_of(type));
    ConstantData constants;
    StreamWriter stream(config);
    const auto add_copy = [&](FeatureMap* outer, bool is_input) {
      const FeatureMap outside = *outer;
      outer->is_signed = true;
      add_kernel({config, inputs, outputs, constants, stream, true}, unit.name,
                 is_input ? sign_copy_kernel(outside, *outer) : sign_copy_kernel(*outer, outside));
    };
    if (unit.reads_as_int8) add_copy(&inputs[0], true);
    if (unit.writes_as_int8) add_copy(&outputs[0], false);
    unit.emit({config, inputs, outputs, constants, stream, true, 0, scratch});
    return stream.cycles();
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return 0;
  }
}

constexpr uint64_t kMaxSram = uint64_t{1} << 30;

// "384K", "2M", "65536"
uint64_t read_sram(std::string_view name, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const uint64_t factor = unit.empty() ? 1 : unit == "K" ? 1024 : unit == "M" ? 1 << 20 : 0;
  if (error != std::errc() || factor == 0 || value == 0 || value > kMaxSram / factor)
    target::fail_target(
        cat("sram '", text, "' of '", name, "' is not a number of bytes, expected one like 384K or 2M"));
  return value * factor;
}

template <uint32_t kIndex>
target::Target make(const target::TargetOptions& options, const std::optional<target::MemorySizes>&) {
  const Config& config = kConfigs[kIndex];
  uint64_t sram = 0;
  std::string sram_text = "none";
  for (const auto& [key, value] : options) {
    if (key != "sram")
      target::fail_target(
          cat("option '", key, "' of '", config.name, "' is not known; known: clock, priority, sram"));
    sram = read_sram(config.name, value);
    sram_text = value;
  }
  target::Target target;
  target.name = config.name;
  target.options = cat("sram=", sram_text);
  target.costs.clock_khz = config.clock_khz;
  target.costs.dma_bytes_per_cycle = config.bytes_per_cycle;
  target.costs.macs_per_cycle = config.macs;
  target.table = pattern_table(config);
  target.compile = [&config, sram](const ir::Module& module, const ir::Function& region) {
    return compile_region(config, sram, module, region);
  };
  target.no_row_text = "has no exact sequence on this target";
  target.no_row_hint = target::kNothingToChange;
  return target;
}

std::string page() {
  const std::vector<target::PatternRow> table = pattern_table(kConfigs[0]);
  return cat(
      "## ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256, ethos-u65-256, ethos-u65-512\n"
      "Arm's Ethos-U55 and U65 ([ethosu.md](ethosu.md)). Options: `sram=` (bytes of fast memory for "
      "activations and copies of weights, "
      "like `384K`), `priority=`, `clock=`. All configurations take the same operators. Operators that no "
      "pattern "
      "mentions are refused as `<target>.op.<operator>`.\n\n",
      target::rows_text(table, "", table));
}
std::string no_page() { return ""; }

}  // namespace

std::span<const Row> rows() { return kRows; }

std::vector<target::PatternRow> pattern_table(const Config& config) {
  std::vector<target::PatternRow> table;
  for (const Row& row : kRows) {
    table.push_back({std::string(row.name), summary_of(row), pattern_of(row), row.constraints(),
                     [&config, read = row.read](const Candidate& candidate, const target::DeviceCosts&) {
                       return unit_cycles(config, read, candidate);
                     }});
  }
  table.push_back(program_row(config));  // has no unit
  return table;
}

std::span<const target::TargetKind> target_kinds() {
  static const target::TargetKind kinds[] = {
      {kConfigs[0].name, {}, make<0>, page},    {kConfigs[1].name, {}, make<1>, no_page},
      {kConfigs[2].name, {}, make<2>, no_page}, {kConfigs[3].name, {}, make<3>, no_page},
      {kConfigs[4].name, {}, make<4>, no_page}, {kConfigs[5].name, {}, make<5>, no_page}};
  return kinds;
}

// ---- units

namespace {

constexpr size_t kAlignment = 16;
// Multiplier and shift that leave a sum as it is.
constexpr Scale kCopy = {0x80000001u, 31};

template <typename T>
T scalar(const Candidate& c, const ir::Node& node, size_t operand) {
  const ir::ConstantRef& constant = c.function().value(node.operands[operand]).constant;
  if (constant == nullptr || constant->as<T>().size() != 1)
    refuse_unit(node.name, cat("operand ", operand, " is not one constant"));
  return constant->as<T>()[0];
}

}  // namespace

std::optional<Image> image_of(const ir::TensorType& type) {
  Image image;
  const size_t rank = type.shape.size();
  int64_t* const extents[] = {&image.d, &image.w, &image.h};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = type.shape[rank - 1 - i];
    if (i < 3) {
      *extents[i] = extent;
    } else if (extent != 1) {
      return std::nullopt;
    }
  }
  return image;
}

FeatureMap map_of_type(const ir::TensorType& type) {
  const Image image = image_of(type).value_or(Image{});
  FeatureMap map;
  map.h = static_cast<uint32_t>(image.h), map.w = static_cast<uint32_t>(image.w);
  map.d = static_cast<uint32_t>(image.d);
  map.is_signed = type.dtype != ir::kUint8;
  map.bits = static_cast<uint32_t>(type.dtype.bits);
  set_dense(&map);
  return map;
}

FeatureMap view_of(const FeatureMap& whole, const View& view, const FeatureMap& like) {
  FeatureMap part = whole;
  part.h = like.h, part.w = like.w, part.d = like.d;
  part.width0 = part.w, part.height0 = part.height1 = part.h;
  part.base[0] += view.begin[0] * whole.stride_y + view.begin[1] * whole.stride_x +
                  uint64_t{view.begin[2]} * whole.element_bytes();
  part.stride_y = whole.stride_y * view.step[0];
  part.stride_x = whole.stride_x * view.step[1];
  return part;
}

size_t image_axis(int64_t axis, size_t rank) {
  const auto positive = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  return positive + 3 - rank;
}

ByteRange ConstantData::add(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> padded(bytes.begin(), bytes.end());
  padded.resize((padded.size() + kAlignment - 1) / kAlignment * kAlignment);
  const auto [at, is_new] = known_.try_emplace(padded, bytes_.size());
  if (is_new) bytes_.insert(bytes_.end(), padded.begin(), padded.end());
  return {kRegion, at->second, padded.size()};
}

void refuse_unit(const std::string& name, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("ethosu: '", name, "': ", reason));
}

void set_dense(FeatureMap* map) {
  const uint64_t element = map->element_bytes();
  map->width0 = map->w, map->height0 = map->height1 = map->h;
  map->stride_x = element * map->d;
  map->stride_y = map->stride_x * map->w;
  map->stride_c = element;
}

void set_block(const UnitContext& context, const std::string& name, Kernel* kernel) {
  const uint32_t rows = context.block_rows == 0 ? kernel->ofm.h : std::min(context.block_rows, kernel->ofm.h);
  const uint32_t begin = (kernel->ofm.h - rows) / 2;
  Kernel k = rows == kernel->ofm.h ? *kernel : kernel_of_rows(*kernel, {begin, begin + rows}, 0, 0, 0);
  if (!choose_block(context.config, &k)) refuse_unit(name, "no block of it fits the device's SHRAM");
  kernel->block_h = k.block_h, kernel->block_w = k.block_w, kernel->block_d = k.block_d;
  kernel->is_part_kernel_first = k.is_part_kernel_first;
  std::copy_n(k.weights, 2, kernel->weights);
}

void add_kernel(const UnitContext& context, const std::string& name, Kernel kernel) {
  kernel.cores = context.config.cores;
  set_block(context, name, &kernel);
  context.stream.add(kernel);
}

Kernel copy_kernel(const FeatureMap& from, const FeatureMap& to) {
  Kernel k;
  k.kind = KernelKind::kPool;
  k.pool = PoolMode::kAverage;
  k.ifm = from, k.ofm = to;
  k.ifm.zero_point = k.ofm.zero_point = 0;
  k.has_scale = true;
  k.ofm_scale = kCopy;
  k.min = to.is_signed ? -128 : 0;
  k.max = to.is_signed ? 127 : 255;
  return k;
}

Kernel sign_copy_kernel(const FeatureMap& from, const FeatureMap& to) {
  Kernel k = copy_kernel(from, to);
  (to.is_signed ? k.ifm : k.ofm).zero_point = kSignOffset;
  return k;
}

Scale scale_of(const QuantizedMultiplier& multiplier) {
  // TFLite's result is the zero point, whatever the sum is.
  if (multiplier.multiplier == 0 || multiplier.shift < -31) return {0, 16};
  return {static_cast<uint32_t>(multiplier.multiplier), static_cast<uint32_t>(31 - multiplier.shift)};
}

Scale reduced_scale_of(const QuantizedMultiplier& multiplier) {
  const Scale whole = scale_of(multiplier);
  if (whole.multiplier == 0) return whole;
  return {std::min((whole.multiplier + (1u << 15)) >> 16, 0x7fffu), whole.shift - 16};
}

float scale_operand(const Candidate& c, const ir::Node& node, size_t operand) {
  return scalar<float>(c, node, operand);
}
int32_t zero_point_operand(const Candidate& c, const ir::Node& node, size_t operand) {
  return scalar<int32_t>(c, node, operand);
}

layer::Clamp clamp_of(const Candidate& c) {
  const ir::DType dtype = c.function().type(c.root().results[0]).dtype;
  const ir::Node* clip = c.node("clip");
  return clip != nullptr ? layer::clip_clamp(*clip, dtype) : layer::full_clamp(dtype);
}

// ---- blocks

namespace {

constexpr uint32_t kMaxBlockH = 32, kMaxBlockW = 64, kMaxBlockD = 128;

// Bytes of input and weights that the device reads.
uint64_t fetched_bytes(const Config& config, const Kernel& k) {
  const IfmBlock block = ifm_block(config, k);
  const uint64_t across = uint64_t{ceil_div(k.ofm.h, k.block_h)} * ceil_div(k.ofm.w, k.block_w);
  const uint64_t deep = k.kind == KernelKind::kConv ? ceil_div(k.ofm.d, k.block_d) : 1;
  const uint64_t ifm = across * deep * block.h * block.w * k.ifm.d * k.ifm.element_bytes();
  const uint64_t inputs = k.kind == KernelKind::kConv ? k.ifm.d : 1;
  const uint64_t weights = k.is_convolution() ? inputs * k.taps_h() * k.taps_w() * k.ofm.d * across : 0;
  return ifm + weights;
}

// What the codes of a core's weights may take: a byte each, and two bits for the zeros that the device's
// order has beside them.
uint64_t estimated_weight_bytes(const Config& config, const Kernel& k) {
  const uint64_t taps = uint64_t{k.taps_h()} * k.taps_w();
  const uint32_t inputs = k.kind == KernelKind::kDepthwise ? 1 : k.ifm.d;
  const uint64_t weights = taps * inputs * ceil_div(k.ofm.d, k.cores);
  uint64_t ordered = uint64_t{round_up(ceil_div(k.ofm.d, k.cores), config.unit_d)};
  if (k.kind == KernelKind::kDepthwise) {
    ordered *= (taps + 3) / 4 * 4;
  } else if (k.is_part_kernel_first) {
    const uint64_t group = k.ifm.bits == 16 ? 2 : 4;
    ordered *= (taps + group - 1) / group * group * round_up(inputs, kIfmUnitDepth);
  } else {
    ordered *= taps * round_up(inputs, k.ifm.bits == 16 ? 16 : kIfmStepDepth);
  }
  return weights + (ordered - weights) / 8;
}

// is_ordered: depth and weight order stay.
bool choose(const Config& config, bool is_ordered, Kernel* kernel) {
  Kernel best;
  bool is_found = false;
  std::tuple<uint64_t, uint64_t, uint32_t> least = {UINT64_MAX, UINT64_MAX, UINT32_MAX};
  const Memories memories = default_memories(config);
  Kernel k = *kernel;
  const uint32_t end_h = std::min(kMaxBlockH, round_up(k.ofm.h, config.unit_h));
  const uint32_t end_w = std::min(kMaxBlockW, round_up(k.ofm.w, config.unit_w));
  const uint32_t whole_d = round_up(k.ofm.d, config.unit_d);
  const auto try_order = [&](bool part_kernel) {
    k.is_part_kernel_first = part_kernel;
    if (!shram_use(config, k).fits) return;
    for (uint32_t core = 0; k.is_convolution() && !is_ordered && core < k.cores; ++core)
      k.weights[core].bytes = estimated_weight_bytes(config, k);
    const std::tuple<uint64_t, uint64_t, uint32_t> cost = {operation_cost(config, memories, k).cycles(),
                                                           fetched_bytes(config, k), k.blocks()};
    if (cost >= least) return;
    least = cost, best = k, is_found = true;
  };
  const auto try_block = [&] {
    try_order(false);
    if (k.kind == KernelKind::kConv) try_order(true);
  };
  for (k.block_h = config.unit_h; k.block_h <= end_h; k.block_h += config.unit_h) {
    for (k.block_w = config.unit_w; k.block_w <= end_w; k.block_w += config.unit_w) {
      if (is_ordered) {
        try_order(kernel->is_part_kernel_first);
        continue;
      }
      // Parts of the depth are multiples of 16.
      for (k.block_d = 16; k.block_d < whole_d && k.block_d <= kMaxBlockD; k.block_d += 16) try_block();
      if (whole_d > kMaxBlockD) continue;
      k.block_d = whole_d;
      try_block();
    }
  }
  if (is_found) *kernel = best;
  return is_found;
}

}  // namespace

bool choose_block(const Config& config, Kernel* kernel) { return choose(config, false, kernel); }

bool choose_block_extent(const Config& config, Kernel* kernel) { return choose(config, true, kernel); }

}  // namespace qplan::ethosu::compiler
