#include "src/ethosu/isa/architecture.h"

#include "src/base/text.h"

namespace qplan::ethosu {

// Clocks: those at which Arm's compiler estimates, 500 MHz (U55) and 1 GHz (U65).
const Config kConfigs[kNumConfigs] = {
    {"ethos-u55-32", false, 32, 1, 1, 1, 4, 16, 0x00001005, 2, 4, 4, 4, 500000, 8, {8, 16, 48, 24, 16}},
    {"ethos-u55-64", false, 64, 1, 1, 1, 8, 16, 0x00001006, 2, 4, 4, 8, 500000, 8, {4, 8, 24, 12, 8}},
    {"ethos-u55-128", false, 128, 1, 1, 2, 8, 24, 0x00001807, 4, 8, 8, 12, 500000, 8, {2, 4, 12, 6, 4}},
    {"ethos-u55-256", false, 256, 1, 2, 2, 8, 48, 0x00003008, 8, 16, 16, 20, 500000, 8, {1, 2, 6, 3, 2}},
    {"ethos-u65-256", true, 256, 1, 2, 2, 8, 48, 0x10003008, 8, 16, 16, 20, 1000000, 16, {1, 2, 6, 3, 2}},
    {"ethos-u65-512", true, 512, 2, 2, 2, 8, 48, 0x10006009, 8, 16, 16, 20, 1000000, 16, {1, 2, 6, 3, 2}},
};

const Config* find_config(const char* name) {
  for (const Config& config : kConfigs) {
    const char* a = config.name;
    const char* b = name;
    while (*a != '\0' && *a == *b) ++a, ++b;
    if (*a == *b) return &config;
  }
  return nullptr;
}

const Config* find_config_word(uint32_t config_word) {
  for (const Config& config : kConfigs) {
    if (config.config_word == config_word) return &config;
  }
  return nullptr;
}

uint64_t config_hash(const Config& config) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](uint32_t value) {
    for (uint32_t b = 0; b < 4; ++b) {
      hash ^= value >> (8 * b) & 0xff;
      hash *= 0x100000001b3;
    }
  };
  add(config.config_word);
  const uint32_t values[] = {
      config.macs,  config.cores,       config.unit_h,        config.unit_w,        config.unit_d,
      config.banks, config.ifm_granule, config.ifm32_granule, config.acc32_granule, config.acc40_granule};
  for (const uint32_t value : values) add(value);
  return hash;
}

// ---- words of a command stream

namespace {

struct Name {
  uint16_t code;
  const char* name;
};

constexpr Name kNames0[] = {
    {kOpStop, "OP_STOP"},
    {kOpIrq, "OP_IRQ"},
    {kOpConv, "OP_CONV"},
    {kOpDepthwise, "OP_DEPTHWISE"},
    {kOpPool, "OP_POOL"},
    {kOpElementwise, "OP_ELEMENTWISE"},
    {kOpDmaStart, "OP_DMA_START"},
    {kOpDmaWait, "OP_DMA_WAIT"},
    {kOpKernelWait, "OP_KERNEL_WAIT"},
    {kIfmPadTop, "IFM_PAD_TOP"},
    {kIfmPadLeft, "IFM_PAD_LEFT"},
    {kIfmPadRight, "IFM_PAD_RIGHT"},
    {kIfmPadBottom, "IFM_PAD_BOTTOM"},
    {kIfmDepthM1, "IFM_DEPTH_M1"},
    {kIfmPrecision, "IFM_PRECISION"},
    {kIfmUpscale, "IFM_UPSCALE"},
    {kIfmZeroPoint, "IFM_ZERO_POINT"},
    {kIfmWidth0M1, "IFM_WIDTH0_M1"},
    {kIfmHeight0M1, "IFM_HEIGHT0_M1"},
    {kIfmHeight1M1, "IFM_HEIGHT1_M1"},
    {kIfmIbEnd, "IFM_IB_END"},
    {kIfmRegion, "IFM_REGION"},
    {kOfmWidthM1, "OFM_WIDTH_M1"},
    {kOfmHeightM1, "OFM_HEIGHT_M1"},
    {kOfmDepthM1, "OFM_DEPTH_M1"},
    {kOfmPrecision, "OFM_PRECISION"},
    {kOfmBlkWidthM1, "OFM_BLK_WIDTH_M1"},
    {kOfmBlkHeightM1, "OFM_BLK_HEIGHT_M1"},
    {kOfmBlkDepthM1, "OFM_BLK_DEPTH_M1"},
    {kOfmZeroPoint, "OFM_ZERO_POINT"},
    {kOfmWidth0M1, "OFM_WIDTH0_M1"},
    {kOfmHeight0M1, "OFM_HEIGHT0_M1"},
    {kOfmHeight1M1, "OFM_HEIGHT1_M1"},
    {kOfmRegion, "OFM_REGION"},
    {kKernelWidthM1, "KERNEL_WIDTH_M1"},
    {kKernelHeightM1, "KERNEL_HEIGHT_M1"},
    {kKernelStride, "KERNEL_STRIDE"},
    {kParallelMode, "PARALLEL_MODE"},
    {kAccFormat, "ACC_FORMAT"},
    {kActivation, "ACTIVATION"},
    {kActivationMin, "ACTIVATION_MIN"},
    {kActivationMax, "ACTIVATION_MAX"},
    {kWeightRegion, "WEIGHT_REGION"},
    {kScaleRegion, "SCALE_REGION"},
    {kAbStart, "AB_START"},
    {kBlockdep, "BLOCKDEP"},
    {kDma0SrcRegion, "DMA0_SRC_REGION"},
    {kDma0DstRegion, "DMA0_DST_REGION"},
    {kIfm2Broadcast, "IFM2_BROADCAST"},
    {kIfm2Scalar, "IFM2_SCALAR"},
    {kIfm2Precision, "IFM2_PRECISION"},
    {kIfm2ZeroPoint, "IFM2_ZERO_POINT"},
    {kIfm2Width0M1, "IFM2_WIDTH0_M1"},
    {kIfm2Height0M1, "IFM2_HEIGHT0_M1"},
    {kIfm2Height1M1, "IFM2_HEIGHT1_M1"},
    {kIfm2IbStart, "IFM2_IB_START"},
    {kIfm2Region, "IFM2_REGION"},
};
constexpr Name kNames1[] = {
    {kIfmBase0, "IFM_BASE0"},         {kIfmBase0 + 1, "IFM_BASE1"},     {kIfmBase0 + 2, "IFM_BASE2"},
    {kIfmBase0 + 3, "IFM_BASE3"},     {kIfmStrideX, "IFM_STRIDE_X"},    {kIfmStrideY, "IFM_STRIDE_Y"},
    {kIfmStrideC, "IFM_STRIDE_C"},    {kOfmBase0, "OFM_BASE0"},         {kOfmBase0 + 1, "OFM_BASE1"},
    {kOfmBase0 + 2, "OFM_BASE2"},     {kOfmBase0 + 3, "OFM_BASE3"},     {kOfmStrideX, "OFM_STRIDE_X"},
    {kOfmStrideY, "OFM_STRIDE_Y"},    {kOfmStrideC, "OFM_STRIDE_C"},    {kWeightBase, "WEIGHT_BASE"},
    {kWeightLength, "WEIGHT_LENGTH"}, {kScaleBase, "SCALE_BASE"},       {kScaleLength, "SCALE_LENGTH"},
    {kOfmScale, "OFM_SCALE"},         {kOpaScale, "OPA_SCALE"},         {kOpbScale, "OPB_SCALE"},
    {kDma0Src, "DMA0_SRC"},           {kDma0Dst, "DMA0_DST"},           {kDma0Len, "DMA0_LEN"},
    {kIfm2Base0, "IFM2_BASE0"},       {kIfm2Base0 + 1, "IFM2_BASE1"},   {kIfm2Base0 + 2, "IFM2_BASE2"},
    {kIfm2Base0 + 3, "IFM2_BASE3"},   {kIfm2StrideX, "IFM2_STRIDE_X"},  {kIfm2StrideY, "IFM2_STRIDE_Y"},
    {kIfm2StrideC, "IFM2_STRIDE_C"},  {kWeight1Base, "WEIGHT1_BASE"},   {kWeight1Length, "WEIGHT1_LENGTH"},
    {kScale1Base, "SCALE1_BASE"},     {kScale1Length, "SCALE1_LENGTH"},
};

constexpr uint32_t kKindPayload = 1u << 14;

}  // namespace

Problem decode(const uint32_t* words, uint32_t num_words, uint32_t* at, Command* command) {
  *command = {};
  if (*at >= num_words) return {"the stream ends without OP_STOP", *at, num_words};
  const uint32_t word = words[*at];
  command->code = static_cast<uint16_t>(word & 0x3ff);
  command->parameter = static_cast<uint16_t>(word >> 16);
  const uint32_t kind = word >> 14 & 3;
  if (kind > 1 || (word >> 10 & 15) != 0) return {"a word of an unknown kind", word, 0};
  command->has_payload = kind == 1;
  *at += 1;
  if (command->has_payload) {
    if (*at >= num_words) return {"the stream ends within a command", *at, num_words};
    command->payload = words[*at];
    *at += 1;
  }
  if (command_name(*command) == nullptr) return {"a command that the device does not know", word, 0};
  return {};
}

uint32_t encode(const Command& command, uint32_t* words) {
  words[0] = command.code | uint32_t{command.parameter} << 16 | (command.has_payload ? kKindPayload : 0);
  if (!command.has_payload) return 1;
  words[1] = command.payload;
  return 2;
}

const char* command_name(const Command& command) {
  const Name* const names = command.has_payload ? kNames1 : kNames0;
  const uint32_t count =
      static_cast<uint32_t>(command.has_payload ? sizeof(kNames1) : sizeof(kNames0)) / sizeof(Name);
  for (uint32_t i = 0; i < count; ++i) {
    if (names[i].code == command.code) return names[i].name;
  }
  return nullptr;
}

const char* pool_name(PoolMode mode) {
  constexpr const char* kPools[] = {"max", "average", "reduce_sum"};
  return static_cast<uint32_t>(mode) < 3 ? kPools[static_cast<uint32_t>(mode)] : "?";
}

const char* elementwise_name(ElementwiseMode mode) {
  constexpr const char* kModes[] = {"mul", "add", "sub", "min", "max", "lrelu", "abs", "clz", "shr", "shl"};
  return static_cast<uint32_t>(mode) < 10 ? kModes[static_cast<uint32_t>(mode)] : "?";
}

void disassemble(const Command& command, char* to) {
  LineWriter line(to, kDisassemblyBytes);
  const char* const name = command_name(command);
  line << (name == nullptr ? "?" : name);
  line.pad_to(20);
  if (!command.has_payload) {
    switch (command.code) {
      case kOpPool:
        line << pool_name(static_cast<PoolMode>(command.parameter));
        break;
      case kOpElementwise:
        line << elementwise_name(static_cast<ElementwiseMode>(command.parameter));
        break;
      case kIfmPrecision:
      case kIfm2Precision:
      case kOfmPrecision:
      case kKernelStride:
      case kActivation:
      case kIfm2Broadcast:
      case kDma0SrcRegion:
      case kDma0DstRegion:
      case kOpStop:
        line.hexadecimal(command.parameter);
        break;
      default:
        line << uint64_t{command.parameter};
    }
    return;
  }
  if (command.code == kOfmScale || command.code == kOpaScale || command.code == kOpbScale) {
    line << uint64_t{command.payload} << " shift " << uint64_t{command.parameter};
    return;
  }
  line.hexadecimal(command.address());
}

// ---- the driver payload

namespace {

enum Action : uint32_t { kActionConfig = 1, kActionStream = 2, kActionNop = 5 };
constexpr uint32_t kRelease = 0x10;  // parameter of CONFIG

}  // namespace

Problem read_payload(const uint8_t* bytes, uint64_t size, Payload* payload) {
  *payload = {};
  if (size < 4 || size % 4 != 0) return {"a payload is a multiple of 4 bytes", static_cast<int64_t>(size), 4};
  if (load_word(bytes) != kPayloadMagic)
    return {"a payload begins with 'COP1'", load_word(bytes), kPayloadMagic};
  for (uint64_t at = 4; at < size;) {
    const uint32_t action = load_word(bytes + at);
    at += 4;
    switch (action & 0xff) {
      case kActionConfig:
        if (size - at < 8) return {"a payload ends within CONFIG", static_cast<int64_t>(size - at), 8};
        payload->config_word = load_word(bytes + at);
        payload->architecture = load_word(bytes + at + 4);
        payload->has_config = true;
        at += 8;
        break;
      case kActionNop:
        break;
      case kActionStream: {
        const uint32_t words = (action >> 8 & 0xff) << 16 | action >> 16;
        if (payload->stream != nullptr) return {"a payload has one command stream", 2, 1};
        if (at % kPayloadAlignment != 0)
          return {"a command stream is aligned to 16 bytes", static_cast<int64_t>(at), kPayloadAlignment};
        if (words == 0 || words > (size - at) / 4)
          return {"a command stream ends after its payload", words, static_cast<int64_t>((size - at) / 4)};
        payload->stream = bytes + at;
        payload->stream_words = words;
        at += uint64_t{words} * 4;
        break;
      }
      default:
        return {"a payload has an unknown driver action", action & 0xff, 0};
    }
  }
  if (!payload->has_config) return {"a payload has no CONFIG", 0, 0};
  if (payload->stream == nullptr) return {"a payload has no command stream", 0, 0};
  if (!is_known_architecture(payload->architecture))
    return {"a payload is made for another architecture", payload->architecture, kArchitecture};
  return {};
}

uint64_t payload_bytes(uint32_t stream_words) { return kStreamOffset + uint64_t{stream_words} * 4; }

void write_payload_header(const Config& config, uint32_t stream_words, uint8_t* to) {
  store_word(kPayloadMagic, to);
  store_word(kActionConfig | kRelease << 16, to + 4);
  store_word(config.config_word, to + 8);
  store_word(kArchitecture, to + 12);
  for (uint32_t at = 16; at < kStreamOffset - 4; at += 4) store_word(kActionNop, to + at);
  store_word(kActionStream | (stream_words >> 16) << 8 | (stream_words & 0xffff) << 16,
             to + kStreamOffset - 4);
}

}  // namespace qplan::ethosu
