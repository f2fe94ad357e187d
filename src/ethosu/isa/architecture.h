// Arm's Ethos-U55 and U65 as a command stream sees them: the sizes of each configuration, the words of a
// stream, and the driver payload ("COP1") around it. Shared by packer, simulator and drivers; needs neither
// heap nor the standard library.
#ifndef QPLAN_SRC_ETHOSU_ISA_ARCHITECTURE_H_
#define QPLAN_SRC_ETHOSU_ISA_ARCHITECTURE_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan::ethosu {

constexpr uint32_t kBankBytes = 1024;
constexpr uint32_t kReservedBanks = 2;  // at the start of SHRAM
constexpr uint32_t kTableBanks = 2;     // at its end, where a kernel uses a table
constexpr uint32_t kIfmUnitDepth = 8;
constexpr uint32_t kMaxRegions = 8;
// Input channels of one step of a convolution.
constexpr uint32_t kIfmStepDepth = 32;

struct Config {
  const char* name;  // "ethos-u55-128"
  bool is_u65;
  uint32_t macs;
  uint32_t cores;
  // The unit in which a core makes the output feature map (OFM).
  uint32_t unit_h, unit_w, unit_d;
  uint32_t banks;        // of SHRAM, of one core
  uint32_t config_word;  // of the CONFIG action
  // Banks of the input and of accumulators come in multiples of these.
  uint32_t ifm_granule, ifm32_granule, acc32_granule, acc40_granule;
  uint32_t clock_khz;
  uint32_t bytes_per_cycle;  // of the memory interface
  // Cycles of an output element, in eighths: {maximum, convolution and average, addition, product or int40,
  // clamp}.
  uint32_t output_eighths[5];
};

constexpr uint32_t kNumConfigs = 6;
extern const Config kConfigs[kNumConfigs];
// nullptr for other names.
const Config* find_config(const char* name);
const Config* find_config_word(uint32_t config_word);
// A number for all that a command stream depends on.
uint64_t config_hash(const Config& config);

// U55: 32-bit addresses, U65: 40.
constexpr uint32_t address_bits(const Config& config) { return config.is_u65 ? 40 : 32; }
constexpr uint32_t max_unfinished_dmas(const Config& config) { return config.is_u65 ? 2 : 1; }
constexpr uint32_t kMaxUnfinishedKernels = 2;
// Where tables are in SHRAM.
constexpr uint32_t table_address(const Config& config) { return (config.banks - kTableBanks) * kBankBytes; }

constexpr uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr uint32_t ceil_div(uint32_t value, uint32_t by) { return (value + by - 1) / by; }
constexpr uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
constexpr uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

// ---- words of a command stream: codes, and how a command is read and written

// Commands of one word: code, and a parameter of 16 bits.
enum Cmd0 : uint16_t {
  kOpStop = 0x000,
  kOpIrq = 0x001,
  kOpConv = 0x002,
  kOpDepthwise = 0x003,
  kOpPool = 0x005,
  kOpElementwise = 0x006,
  kOpDmaStart = 0x010,
  kOpDmaWait = 0x011,
  kOpKernelWait = 0x012,
  kIfmPadTop = 0x100,
  kIfmPadLeft = 0x101,
  kIfmPadRight = 0x102,
  kIfmPadBottom = 0x103,
  kIfmDepthM1 = 0x104,
  kIfmPrecision = 0x105,
  kIfmUpscale = 0x107,
  kIfmZeroPoint = 0x109,
  kIfmWidth0M1 = 0x10A,
  kIfmHeight0M1 = 0x10B,
  kIfmHeight1M1 = 0x10C,
  kIfmIbEnd = 0x10D,
  kIfmRegion = 0x10F,
  kOfmWidthM1 = 0x111,
  kOfmHeightM1 = 0x112,
  kOfmDepthM1 = 0x113,
  kOfmPrecision = 0x114,
  kOfmBlkWidthM1 = 0x115,
  kOfmBlkHeightM1 = 0x116,
  kOfmBlkDepthM1 = 0x117,
  kOfmZeroPoint = 0x118,
  kOfmWidth0M1 = 0x11A,
  kOfmHeight0M1 = 0x11B,
  kOfmHeight1M1 = 0x11C,
  kOfmRegion = 0x11F,
  kKernelWidthM1 = 0x120,
  kKernelHeightM1 = 0x121,
  kKernelStride = 0x122,
  kParallelMode = 0x123,
  kAccFormat = 0x124,
  kActivation = 0x125,
  kActivationMin = 0x126,
  kActivationMax = 0x127,
  kWeightRegion = 0x128,
  kScaleRegion = 0x129,
  kAbStart = 0x12D,
  kBlockdep = 0x12F,
  kDma0SrcRegion = 0x130,
  kDma0DstRegion = 0x131,
  kIfm2Broadcast = 0x180,
  kIfm2Scalar = 0x181,
  kIfm2Precision = 0x185,
  kIfm2ZeroPoint = 0x189,
  kIfm2Width0M1 = 0x18A,
  kIfm2Height0M1 = 0x18B,
  kIfm2Height1M1 = 0x18C,
  kIfm2IbStart = 0x18D,
  kIfm2Region = 0x18F,
};
// Commands of two words: the second is the payload.
enum Cmd1 : uint16_t {
  kIfmBase0 = 0x00,
  kIfmStrideX = 0x04,
  kIfmStrideY = 0x05,
  kIfmStrideC = 0x06,
  kOfmBase0 = 0x10,
  kOfmStrideX = 0x14,
  kOfmStrideY = 0x15,
  kOfmStrideC = 0x16,
  kWeightBase = 0x20,
  kWeightLength = 0x21,
  kScaleBase = 0x22,
  kScaleLength = 0x23,
  kOfmScale = 0x24,
  kOpaScale = 0x25,
  kOpbScale = 0x26,
  kDma0Src = 0x30,
  kDma0Dst = 0x31,
  kDma0Len = 0x32,
  kIfm2Base0 = 0x80,
  kIfm2StrideX = 0x84,
  kIfm2StrideY = 0x85,
  kIfm2StrideC = 0x86,
  kWeight1Base = 0x90,
  kWeight1Length = 0x91,
  kScale1Base = 0x92,
  kScale1Length = 0x93,
};
constexpr uint32_t kNumCmd0 = 0x200;
constexpr uint32_t kNumCmd1 = 0x100;

enum class PoolMode : uint8_t { kMax = 0, kAverage = 1, kReduceSum = 2 };
enum class ElementwiseMode : uint8_t {
  kMul = 0,
  kAdd = 1,
  kSub = 2,
  kMin = 3,
  kMax = 4,
  kLrelu = 5,
  kAbs = 6,
  kClz = 7,
  kShr = 8,
  kShl = 9
};
constexpr bool is_unary(ElementwiseMode mode) {
  return mode == ElementwiseMode::kLrelu || mode == ElementwiseMode::kAbs || mode == ElementwiseMode::kClz;
}

// Something that breaks a rule: constant text, and numbers where they tell something.
struct Problem {
  const char* text = nullptr;
  int64_t found = 0, limit = 0;
  explicit operator bool() const { return text != nullptr; }
};

struct Command {
  uint16_t code = 0;
  bool has_payload = false;
  uint16_t parameter = 0;
  uint32_t payload = 0;

  bool is_operation() const { return !has_payload && code < 0x100; }
  bool starts_kernel() const {
    return !has_payload &&
           (code == kOpConv || code == kOpDepthwise || code == kOpPool || code == kOpElementwise);
  }
  // An address or a stride: 32 bits of payload and 8 of the parameter.
  uint64_t address() const { return payload | uint64_t{parameter & 0xffu} << 32; }
};

// Reads the command at words[*at] and moves *at past it.
[[nodiscard]] Problem decode(const uint32_t* words, uint32_t num_words, uint32_t* at, Command* command);
// Writes one or two words and returns how many.
uint32_t encode(const Command& command, uint32_t* words);

// "OP_CONV", "IFM_BASE0"; nullptr for codes that the architecture does not have.
const char* command_name(const Command& command);
const char* pool_name(PoolMode mode);
const char* elementwise_name(ElementwiseMode mode);

constexpr uint32_t kDisassemblyBytes = 96;
// One line of text, NUL-terminated, at most kDisassemblyBytes with the NUL.
void disassemble(const Command& command, char* to);

// ---- the driver payload: what Arm's driver gets, and what it checks

constexpr uint32_t kPayloadMagic = 0x31504F43;  // "COP1"
constexpr uint32_t kArchitecture = 0x10060000;  // 1.0.6
constexpr uint32_t kPayloadAlignment = 16;
constexpr uint32_t kStreamOffset = 32;                // of the payloads written here
constexpr uint32_t kMaxStreamBytes = (1u << 24) - 4;  // the stream is smaller than 16 MiB
constexpr uint32_t kMaxStreamWords = kMaxStreamBytes / 4;

// A payload that was read. stream points into the caller's bytes, which may have any alignment.
struct Payload {
  uint32_t config_word = 0;
  uint32_t architecture = 0;
  bool has_config = false;
  const uint8_t* stream = nullptr;
  uint32_t stream_words = 0;
};

// Whether devices with kArchitecture run it: the same major number, and no later minor one.
constexpr bool is_known_architecture(uint32_t architecture) {
  return architecture >> 28 == kArchitecture >> 28 &&
         (architecture >> 20 & 0xff) <= (kArchitecture >> 20 & 0xff);
}

// The checks of Arm's driver, without those of the device's own registers.
[[nodiscard]] Problem read_payload(const uint8_t* bytes, uint64_t size, Payload* payload);
// Bytes of a payload with a stream of so many words, and its first kStreamOffset bytes.
uint64_t payload_bytes(uint32_t stream_words);
void write_payload_header(const Config& config, uint32_t stream_words, uint8_t* to);

constexpr uint32_t load_word(const uint8_t* at) {
  return at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}
constexpr void store_word(uint32_t word, uint8_t* at) {
  for (uint32_t b = 0; b < 4; ++b) at[b] = static_cast<uint8_t>(word >> (8 * b));
}

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_ARCHITECTURE_H_
