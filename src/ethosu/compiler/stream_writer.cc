#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu::compiler {
namespace {

uint32_t precision_of(const FeatureMap& map, uint32_t size_bit) {
  const uint32_t size = map.bits == 32 ? 2 : map.bits == 16 ? 1 : 0;
  return (map.is_signed ? 1u : 0u) | size << size_bit | (map.is_nhcwb16 ? 1u : 0u) << 6;
}

// Codes of a map's registers, which IFM, OFM and IFM2 have in one order but for the zero point's.
constexpr uint16_t kWidth0 = 0x0A, kHeight0 = 0x0B, kHeight1 = 0x0C, kRegion = 0x0F;

}  // namespace

StreamWriter::StreamWriter(const Config& config, std::vector<Operation>* operations)
    : config_(config),
      memories_(default_memories(config)),
      added_(operations),
      unfinished_(config),
      time_(config) {
  if (config.cores > 1) set(kParallelMode, config.cores - 1);
}

void StreamWriter::write(const Command& command) {
  uint32_t words[2];
  const uint32_t count = encode(command, words);
  words_.insert(words_.end(), words, words + count);
}

void StreamWriter::set(Cmd0 code, uint32_t value) {
  const auto parameter = static_cast<uint16_t>(value);
  const auto [at, is_new] = values0_.try_emplace(code, parameter);
  if (!is_new && at->second == parameter) return;
  at->second = parameter;
  write({code, false, parameter, 0});
}

void StreamWriter::set(Cmd1 code, uint64_t value) {
  set_scale(code, {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32 & 0xff)});
}

void StreamWriter::set_scale(Cmd1 code, const Scale& scale) {
  const std::pair<uint16_t, uint32_t> value = {static_cast<uint16_t>(scale.shift), scale.multiplier};
  const auto [at, is_new] = values1_.try_emplace(code, value);
  if (!is_new && at->second == value) return;
  at->second = value;
  write({code, true, value.first, value.second});
}

void StreamWriter::set_map(const FeatureMap& map, Cmd0 zero_point, Cmd0 region, Cmd1 base) {
  const auto code = [&](uint16_t offset) { return static_cast<Cmd0>(region - kRegion + offset); };
  set(code(kRegion), map.region);
  set(zero_point, static_cast<uint32_t>(map.zero_point));
  set(code(kWidth0), map.width0 - 1);
  set(code(kHeight0), map.height0 - 1);
  set(code(kHeight1), map.height1 - 1);
  for (uint16_t tile = 0; tile < 4; ++tile) set(static_cast<Cmd1>(base + tile), map.base[tile]);
  set(static_cast<Cmd1>(base + 4), map.stride_x);
  set(static_cast<Cmd1>(base + 5), map.stride_y);
  set(static_cast<Cmd1>(base + 6), map.stride_c);
}

void StreamWriter::set_window(const Kernel& k) {
  set(kIfmPadTop, k.pad_top);
  set(kIfmPadLeft, k.pad_left);
  set(kIfmPadRight, k.pad_right);
  set(kIfmPadBottom, k.pad_bottom);
  set(kKernelWidthM1, k.window_w - 1);
  set(kKernelHeightM1, k.window_h - 1);
  set(kKernelStride, ((k.stride_x - 1) & 1) | ((k.stride_y - 1) & 1) << 1 |
                         (k.is_part_kernel_first ? 1u : 0u) << 2 | (k.dilation_x - 1) << 3 |
                         (k.dilation_y - 1) << 4 | (k.stride_x - 1) >> 1 << 6 | (k.stride_y - 1) >> 1 << 9);
}

void StreamWriter::set_weights(const Kernel& k) {
  set(kWeightRegion, k.weights[0].region);
  set(kScaleRegion, k.scales[0].region);
  for (uint32_t core = 0; core < k.cores; ++core) {
    const auto weight = static_cast<Cmd1>(core == 0 ? kWeightBase : kWeight1Base);
    const auto scale = static_cast<Cmd1>(core == 0 ? kScaleBase : kScale1Base);
    set(weight, k.weights[core].begin);
    set(static_cast<Cmd1>(weight + 1), k.weights[core].bytes);
    set(scale, k.scales[core].begin);
    set(static_cast<Cmd1>(scale + 1), k.scales[core].bytes);
  }
}

void StreamWriter::set_operands(const Kernel& k) {
  if (!is_unary(k.elementwise)) {
    set(kIfm2Broadcast, (k.broadcast_h ? 1u : 0u) | (k.broadcast_w ? 2u : 0u) | (k.broadcast_c ? 4u : 0u) |
                            (k.ifm2_is_first ? 1u : 0u) << 6 | (k.has_scalar ? 1u : 0u) << 7);
    set(kIfm2Precision, precision_of(k.ifm2, 2));
    if (k.has_scalar) {
      set(kIfm2Scalar, static_cast<uint32_t>(k.scalar));
      set(kIfm2ZeroPoint, static_cast<uint32_t>(k.ifm2.zero_point));
    } else {
      set_map(k.ifm2, kIfm2ZeroPoint, kIfm2Region, kIfm2Base0);
    }
  }
  if (k.elementwise != ElementwiseMode::kAdd && k.elementwise != ElementwiseMode::kSub) return;
  set_scale(kOpaScale, k.opa);
  set_scale(kOpbScale, {k.opb.multiplier, 0});
}

void StreamWriter::set_output(const Kernel& k) {
  set(kOfmWidthM1, k.ofm.w - 1);
  set(kOfmHeightM1, k.ofm.h - 1);
  set(kOfmDepthM1, k.ofm.d - 1);
  set_map(k.ofm, kOfmZeroPoint, kOfmRegion, kOfmBase0);
  set(kOfmPrecision,
      precision_of(k.ofm, 1) | (k.has_scale ? 1u : 0u) << 8 | static_cast<uint32_t>(k.rounding) << 14);
  if (k.has_scale) set_scale(kOfmScale, k.ofm_scale);
  set(kActivation, k.activation | k.clip << 12);
  set(kActivationMin, static_cast<uint32_t>(k.min));
  set(kActivationMax, static_cast<uint32_t>(k.max));
  set(kAccFormat, k.is_acc40 ? 1 : 0);
  set(kOfmBlkWidthM1, k.block_w - 1);
  set(kOfmBlkHeightM1, k.block_h - 1);
  set(kOfmBlkDepthM1, k.block_d - 1);
}

void StreamWriter::label(std::string name) {
  labels_.push_back({static_cast<uint32_t>(words_.size()), std::move(name)});
}

void StreamWriter::add(Kernel k) {
  if (added_ != nullptr) {
    added_->emplace_back(std::move(k));
    return;
  }
  const ShramUse use = shram_use(config_, k);
  set_map(k.ifm, kIfmZeroPoint, kIfmRegion, kIfmBase0);
  set(kIfmPrecision, precision_of(k.ifm, 2) | k.scale_mode << 8);
  set(kIfmDepthM1, k.ifm.d - 1);
  set(kIfmUpscale, static_cast<uint32_t>(k.upscale));
  if (k.kind == KernelKind::kElementwise) {
    set_operands(k);
  } else {
    set_window(k);
  }
  if (k.is_convolution()) set_weights(k);
  set_output(k);
  set(kIfmIbEnd, use.ib_end);
  set(kAbStart, use.ab_start);
  if (k.has_ifm2) set(kIfm2IbStart, use.ifm2_ib_start);
  k.cores = config_.cores;  // as the device reads it: all kernels run on all cores
  const Access access = access_of(config_, k);
  if (const uint32_t n = unfinished_.transfers_beside(access); n < unfinished_.transfers()) wait_transfers(n);
  unfinished_.start_kernel(access);
  set(kBlockdep, previous_ ? safe_blockdep(*previous_, k) : 0);
  previous_ = k;
  Command operation;
  switch (k.kind) {
    case KernelKind::kConv:
      operation.code = kOpConv;
      break;
    case KernelKind::kDepthwise:
      operation.code = kOpDepthwise;
      break;
    case KernelKind::kPool:
      operation.code = kOpPool;
      operation.parameter = static_cast<uint16_t>(k.pool);
      break;
    case KernelKind::kElementwise:
      operation.code = kOpElementwise;
      operation.parameter = static_cast<uint16_t>(k.elementwise);
      break;
  }
  write(operation);
  time_.start_kernel(operation_cost(config_, memories_, k));
  total_ += kernel_cycles(config_, k);
  ++kernels_;
}

void StreamWriter::add(const Transfer& transfer) {
  if (added_ != nullptr) {
    added_->emplace_back(transfer);
    return;
  }
  const Access access = access_of(config_, transfer);
  const uint32_t n = transfer.to_shram ? 0 : unfinished_.kernels_beside(access);
  if (transfer.to_shram || n < unfinished_.kernels()) wait_kernels(n);
  unfinished_.start_transfer(access);
  set(kDma0SrcRegion, transfer.from.region);
  set(kDma0Src, transfer.from.begin);
  // To SHRAM: of all cores, as Arm's compiler writes it.
  constexpr uint32_t kShram = 0x103;
  set(kDma0DstRegion, transfer.to_shram ? kShram : transfer.to.region);
  set(kDma0Dst, transfer.to.begin);
  set(kDma0Len, transfer.from.bytes);
  write({kOpDmaStart, false, 0, 0});
  time_.start_transfer(operation_cost(config_, memories_, transfer));
  total_ += transfer_cycles(config_, transfer.from.bytes);
  if (transfer.to_shram) wait_transfers(0);
}

void StreamWriter::wait_kernels(uint32_t unfinished) {
  write({kOpKernelWait, false, static_cast<uint16_t>(unfinished), 0});
  time_.wait_kernels(unfinished);
  unfinished_.wait_kernels(unfinished);
  if (unfinished == 0) previous_.reset();
}

void StreamWriter::wait_transfers(uint32_t unfinished) {
  write({kOpDmaWait, false, static_cast<uint16_t>(unfinished), 0});
  time_.wait_transfers(unfinished);
  unfinished_.wait_transfers(unfinished);
}

std::vector<uint32_t> StreamWriter::finish() {
  write({kOpStop, false, 0xffff, 0});
  return std::move(words_);
}

// ---- the blob

namespace {

constexpr size_t kBlobAlignment = 16;

template <typename T>
uint64_t append_items(std::vector<uint8_t>* blob, const T* items, size_t count) {
  blob->resize((blob->size() + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment);
  const uint64_t at = blob->size();
  const auto* const bytes = reinterpret_cast<const uint8_t*>(items);
  blob->insert(blob->end(), bytes, bytes + count * sizeof(T));
  return at;
}

}  // namespace

void state_memories(const Memories& memories, BlobParts* parts, std::vector<target::RegionSlot>* slots) {
  constexpr format::MemoryClass kClasses[] = {format::MemoryClass_SRAM, format::MemoryClass_DRAM,
                                              format::MemoryClass_FLASH};
  for (size_t r = 0; r < parts->regions.size(); ++r)
    parts->regions[r].memory_class = kClasses[static_cast<uint32_t>(memories.of[r])];
  std::vector<bool> is_bound(parts->regions.size(), false);
  for (target::RegionSlot& slot : *slots) {
    const uint32_t r = parts->slots[slot.slot].region;
    const bool is_whole = parts->regions[r].kind == static_cast<uint32_t>(RegionKind::kBound) && !is_bound[r];
    is_bound[r] = true;
    if (is_whole) slot.memory_class = static_cast<format::MemoryClass>(parts->regions[r].memory_class);
  }
}

std::vector<uint8_t> payload_of(const Config& config, std::span<const uint32_t> stream) {
  std::vector<uint8_t> payload(payload_bytes(static_cast<uint32_t>(stream.size())));
  write_payload_header(config, static_cast<uint32_t>(stream.size()), payload.data());
  for (size_t i = 0; i < stream.size(); ++i) store_word(stream[i], payload.data() + kStreamOffset + 4 * i);
  return payload;
}

std::vector<uint8_t> write_blob(const Config& config, const BlobParts& parts) {
  std::string text(1, '\0');
  std::vector<BlobLabel> labels;
  std::map<std::string, uint32_t> places;  // each name is kept once
  for (const Label& label : parts.labels) {
    const auto [place, is_new] = places.try_emplace(label.name, static_cast<uint32_t>(text.size()));
    labels.push_back({label.word, place->second});
    if (is_new) text.append(label.name.c_str(), label.name.size() + 1);
  }
  BlobHeader header = {};
  header.magic = kBlobMagic;
  header.major = kBlobMajor, header.minor = kBlobMinor;
  header.config_hash = config_hash(config);
  header.estimated_cycles = parts.cycles;
  header.num_regions = static_cast<uint32_t>(parts.regions.size());
  header.num_slots = static_cast<uint32_t>(parts.slots.size());
  header.num_labels = static_cast<uint32_t>(labels.size());
  header.text_bytes = static_cast<uint32_t>(text.size());
  header.payload_bytes = parts.payload.size();

  std::vector<uint8_t> blob(sizeof(header));
  const uint64_t regions_at = append_items(&blob, parts.regions.data(), parts.regions.size());
  append_items(&blob, parts.slots.data(), parts.slots.size());
  append_items(&blob, labels.data(), labels.size());
  append_items(&blob, text.data(), text.size());
  header.payload_offset = append_items(&blob, parts.payload.data(), parts.payload.size());
  const uint64_t constants_at = append_items(&blob, parts.constants.data(), parts.constants.size());
  for (size_t r = 0; r < parts.regions.size(); ++r) {
    BlobRegion region = parts.regions[r];
    if (region.kind != static_cast<uint32_t>(RegionKind::kConstants)) continue;
    region.data_offset = constants_at;
    std::memcpy(blob.data() + regions_at + r * sizeof(region), &region, sizeof(region));
  }
  header.total_bytes = blob.size();
  std::memcpy(blob.data(), &header, sizeof(header));
  header.checksum = blob_checksum(blob.data(), blob.size());
  std::memcpy(blob.data(), &header, sizeof(header));
  return blob;
}

}  // namespace qplan::ethosu::compiler
