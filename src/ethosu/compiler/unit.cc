#include <algorithm>
#include <tuple>

#include "src/ethosu/compiler/region.h"
#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
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
