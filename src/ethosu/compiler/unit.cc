#include "src/ethosu/compiler/unit.h"

#include <algorithm>

#include "src/ethosu/compiler/block_choice.h"
#include "src/ethosu/compiler/cascade.h"
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

}  // namespace qplan::ethosu::compiler
