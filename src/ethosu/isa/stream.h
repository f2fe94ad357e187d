// The operations of a command stream, kernels and transfers: how registers state them, what they take of the
// memory on the chip and of time, and what a stream as a whole must keep so that they follow each other
// safely.
#ifndef QPLAN_SRC_ETHOSU_ISA_STREAM_H_
#define QPLAN_SRC_ETHOSU_ISA_STREAM_H_

#include <stdint.h>

#include "src/ethosu/isa/architecture.h"

namespace qplan::ethosu {

// ---- what the registers say when an operation starts: a kernel or a transfer as a struct

// Registers as SET commands left them. They keep their values between operations; nothing relies on the
// values after a reset.
class Registers {
 public:
  void set(const Command& command);
  bool is_set(Cmd0 code) const { return (set0_[code / 32] >> code % 32 & 1) != 0; }
  bool is_set(Cmd1 code) const { return (set1_[code / 32] >> code % 32 & 1) != 0; }
  uint32_t get(Cmd0 code) const { return values0_[code]; }
  int32_t get_signed(Cmd0 code) const { return static_cast<int16_t>(values0_[code]); }
  uint64_t address(Cmd1 code) const { return values1_[code] | uint64_t{high1_[code] & 0xffu} << 32; }
  uint32_t payload(Cmd1 code) const { return values1_[code]; }
  uint32_t parameter(Cmd1 code) const { return high1_[code]; }

 private:
  uint16_t values0_[kNumCmd0] = {};
  uint32_t values1_[kNumCmd1] = {};
  uint16_t high1_[kNumCmd1] = {};
  uint32_t set0_[kNumCmd0 / 32] = {};
  uint32_t set1_[kNumCmd1 / 32] = {};
};

// A feature map in a region. Addresses are offsets into the region.
struct FeatureMap {
  uint32_t h = 1, w = 1, d = 1;
  uint32_t region = 0;
  bool is_signed = false;
  bool is_nhcwb16 = false;
  uint32_t bits = 8;
  int32_t zero_point = 0;
  // Tiles: columns of the left ones, rows of the upper left and the upper right one.
  uint32_t width0 = 1, height0 = 1, height1 = 1;
  uint64_t base[4] = {};
  uint64_t stride_x = 0, stride_y = 0, stride_c = 0;

  uint32_t element_bytes() const { return bits / 8; }
  uint64_t elements() const { return uint64_t{h} * w * d; }
  uint64_t address(uint32_t y, uint32_t x, uint32_t c) const {
    uint32_t tile = 0, top = height0;
    if (x >= width0) x -= width0, tile = 1, top = height1;
    if (y >= top) y -= top, tile += 2;
    const uint64_t row = base[tile] + y * stride_y;
    if (!is_nhcwb16) return row + x * stride_x + uint64_t{c} * element_bytes();
    return row + c / 16 * stride_c + (uint64_t{16} * x + c % 16) * element_bytes();
  }
};

struct ByteRange {
  uint32_t region = 0;
  uint64_t begin = 0, bytes = 0;
};
// Bounds of the bytes of a feature map's tiles; returns how many there are (at most 4). Bytes between rows
// that another map uses lie within them.
uint32_t tile_ranges(const FeatureMap& map, ByteRange ranges[4]);

enum class KernelKind : uint8_t { kConv, kDepthwise, kPool, kElementwise };
enum class Rounding : uint8_t { kDouble = 0, kTruncate = 1, kNatural = 2 };
enum class Upscale : uint8_t { kNone = 0, kNearest = 1, kZeros = 2 };

struct Scale {
  uint32_t multiplier = 1;
  uint32_t shift = 0;
};

struct Kernel {
  KernelKind kind = KernelKind::kConv;
  PoolMode pool = PoolMode::kMax;
  ElementwiseMode elementwise = ElementwiseMode::kAdd;
  FeatureMap ifm, ifm2, ofm;

  // ---- the window: all but elementwise kernels
  uint32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  uint32_t window_h = 1, window_w = 1;  // dilated
  uint32_t stride_y = 1, stride_x = 1;
  uint32_t dilation_y = 1, dilation_x = 1;
  Upscale upscale = Upscale::kNone;
  bool is_part_kernel_first = false;

  // ---- weights and scales, of each core
  uint32_t cores = 1;
  ByteRange weights[2], scales[2];

  // ---- elementwise
  bool has_ifm2 = false, has_scalar = false, ifm2_is_first = false;
  bool broadcast_h = false, broadcast_w = false, broadcast_c = false;
  int32_t scalar = 0;
  uint32_t scale_mode = 0;  // 0: both operands, 1: the first, 2: the second is scaled
  Scale opa, opb;

  // ---- output
  bool has_scale = false;  // OFM_SCALE
  Scale ofm_scale;
  Rounding rounding = Rounding::kDouble;
  bool is_acc40 = false;
  uint32_t activation = 0, clip = 0;
  int32_t min = 0, max = 0;

  // ---- blocks and SHRAM
  uint32_t block_h = 1, block_w = 1, block_d = 1;
  uint32_t ib_end = 0, ab_start = 0, ifm2_ib_start = 0;
  uint32_t blockdep = 0;

  bool uses_table() const { return activation >= 16; }
  uint32_t table() const { return activation - 16; }
  bool is_convolution() const { return kind == KernelKind::kConv || kind == KernelKind::kDepthwise; }
  // Taps along an axis: the window is dilated.
  uint32_t taps_h() const { return (window_h - 1) / dilation_y + 1; }
  uint32_t taps_w() const { return (window_w - 1) / dilation_x + 1; }
  uint32_t blocks() const {
    return ceil_div(ofm.h, block_h) * ceil_div(ofm.w, block_w) * ceil_div(ofm.d, block_d);
  }
};

// The kernel that an operation starts, with the limits of the architecture checked.
[[nodiscard]] Problem read_kernel(const Config& config, const Registers& registers, const Command& operation,
                                  Kernel* kernel);

struct Transfer {
  ByteRange from;
  bool to_shram = false;
  ByteRange to;  // to_shram: an address of SHRAM
};
[[nodiscard]] Problem read_transfer(const Config& config, const Registers& registers, Transfer* transfer);

// ---- what operations take (cost.cc). Cycles are estimates, from a model of kernels, transfers and memories,
// and of how they overlap. The model agrees with the estimates of Arm's compiler, not with measurements of
// silicon.

// ---- blocks and SHRAM: how much of the memory on the chip a kernel needs for its block

// Rows, columns and channels of the input that a block of the output needs at a time.
struct IfmBlock {
  uint32_t h = 1, w = 1, d = 1;
  uint64_t elements() const { return uint64_t{h} * w * d; }
};
IfmBlock ifm_block(const Config& config, const Kernel& kernel);

struct ShramUse {
  uint32_t ifm_banks = 0, acc_banks = 0;
  uint32_t top = 0;  // the first bank that the kernel leaves alone
  // The registers' values; fits: they do not overlap.
  uint32_t ib_end = 0, ab_start = 0, ifm2_ib_start = 0;
  bool fits = false;
};
// kernel: everything but its SHRAM registers.
ShramUse shram_use(const Config& config, const Kernel& kernel);
// That the kernel's registers are those values.
[[nodiscard]] Problem check_shram(const Config& config, const Kernel& kernel);

// The accumulators that a kernel uses: 40 bits for scaled 16-bit input.
bool needs_acc40(const Kernel& kernel);

// ---- work

// Elements that a kernel reads for its outputs, each as often as it is read, and bytes of its weights; at
// most UINT64_MAX.
uint64_t kernel_elements(const Kernel& kernel);
// Multiply-accumulates of a convolution; 0 for other kernels.
uint64_t kernel_macs(const Kernel& kernel);

// ---- lower bounds, for memories that keep up with the device. Blobs declare their sum, which loaders
// compare: no release may count more.
uint64_t kernel_cycles(const Config& config, const Kernel& kernel);
uint64_t transfer_cycles(const Config& config, uint64_t bytes);

// ---- with the memories that the regions are in
enum class MemoryClass : uint8_t { kSram = 0, kDram = 1, kFlash = 2 };
constexpr uint32_t kNumMemoryClasses = 3;
struct Memories {
  MemoryClass of[kMaxRegions];
};
// Constants (region 0) in flash, on a U65 in DRAM; everything else in SRAM.
Memories default_memories(const Config& config);

struct OperationCost {
  uint64_t compute = 0;                     // of the device, which waits for parts of blocks
  uint64_t access[kNumMemoryClasses] = {};  // in which a memory is busy

  // All of it overlaps.
  uint64_t cycles() const;
  // DRAM and flash are at the interface that the device has for slow memory.
  uint64_t slow_cycles() const {
    return access[static_cast<uint32_t>(MemoryClass::kDram)] +
           access[static_cast<uint32_t>(MemoryClass::kFlash)];
  }
};
OperationCost operation_cost(const Config& config, const Memories& memories, const Kernel& kernel);
OperationCost operation_cost(const Config& config, const Memories& memories, const Transfer& transfer);

// When operations start and end: one queue of kernels, one of transfers, a reader that waits, and the slow
// memory, which serves operations in the order of the stream.
class TimeLine {
 public:
  explicit TimeLine(const Config& config) : max_dmas_(max_unfinished_dmas(config)) {}
  void start_kernel(uint64_t cycles, uint64_t slow_cycles = 0) {
    start(&kernels_, kMaxUnfinishedKernels, cycles, slow_cycles);
  }
  void start_transfer(uint64_t cycles, uint64_t slow_cycles = 0) {
    start(&transfers_, max_dmas_, cycles, slow_cycles);
  }
  void start_kernel(const OperationCost& cost) { start_kernel(cost.cycles(), cost.slow_cycles()); }
  void start_transfer(const OperationCost& cost) { start_transfer(cost.cycles(), cost.slow_cycles()); }
  // Until at most n are unfinished.
  void wait_kernels(uint32_t n) { wait(kernels_, n); }
  void wait_transfers(uint32_t n) { wait(transfers_, n); }
  // When the last operation ends.
  uint64_t cycles() const {
    const uint64_t k = kernels_.ends[0], t = transfers_.ends[0];
    const uint64_t last = k > t ? k : t;
    return last > now_ ? last : now_;
  }

 private:
  // Ends of the last operations, the last one first.
  struct Queue {
    uint64_t ends[4] = {};
  };
  void wait(const Queue& queue, uint32_t n) {
    if (n < 4 && queue.ends[n] > now_) now_ = queue.ends[n];
  }
  void start(Queue* queue, uint32_t at_most, uint64_t cycles, uint64_t slow_cycles) {
    wait(*queue, at_most - 1);
    const uint64_t begin = queue->ends[0] > now_ ? queue->ends[0] : now_;
    uint64_t end = begin + cycles;
    if (slow_cycles > 0) {
      slow_end_ = (slow_end_ > begin ? slow_end_ : begin) + slow_cycles;
      if (slow_end_ > end) end = slow_end_;
    }
    for (uint32_t i = 3; i > 0; --i) queue->ends[i] = queue->ends[i - 1];
    queue->ends[0] = end;
  }

  uint32_t max_dmas_;
  Queue kernels_, transfers_;
  uint64_t now_ = 0, slow_end_ = 0;
};

// ---- what operations read and write, and which of them may be unfinished at a time, from which the waits
// follow that a stream needs (stream.cc)

bool overlap(const ByteRange& a, const ByteRange& b);

// The tables in SHRAM count as a region of their own.
constexpr uint32_t kTables = kMaxRegions;

// Bounds of the bytes of an operation.
struct Access {
  static constexpr uint32_t kMaxRanges = 14;
  ByteRange reads[kMaxRanges], writes[kMaxRanges];
  uint32_t num_reads = 0, num_writes = 0;

  void read(const ByteRange& range) { reads[num_reads++] = range; }
  void write(const ByteRange& range) { writes[num_writes++] = range; }
};
Access access_of(const Config& config, const Kernel& kernel);
// A transfer to SHRAM is one to its tables.
Access access_of(const Config& config, const Transfer& transfer);

// The kernels and transfers that were started and may be unfinished, the last ones first.
class Unfinished {
 public:
  explicit Unfinished(const Config& config) : max_transfers_(max_unfinished_dmas(config)) {}

  uint32_t kernels() const { return kernels_.count; }
  uint32_t transfers() const { return transfers_.count; }
  // How many may still be unfinished when an operation starts that uses these bytes: OP_KERNEL_WAIT and
  // OP_DMA_WAIT take this number.
  uint32_t kernels_beside(const Access& transfer) const { return beside(kernels_, transfer); }
  uint32_t transfers_beside(const Access& kernel) const { return beside(transfers_, kernel); }
  void wait_kernels(uint32_t n) { kernels_.count = least(kernels_.count, n); }
  void wait_transfers(uint32_t n) { transfers_.count = least(transfers_.count, n); }
  // Where as many are unfinished as may be, the oldest one ends first.
  void start_kernel(const Access& access) { push(&kernels_, kMaxUnfinishedKernels, access); }
  void start_transfer(const Access& access) { push(&transfers_, max_transfers_, access); }

 private:
  struct Queue {
    Access operations[kMaxUnfinishedKernels];
    uint32_t count = 0;
  };
  static uint32_t beside(const Queue& queue, const Access& access);
  static void push(Queue* queue, uint32_t room, const Access& access);

  uint32_t max_transfers_;
  Queue kernels_, transfers_;
};

// ---- how early a kernel may start while blocks of the kernel before it are unwritten

constexpr uint32_t kMaxBlockdep = 3;

// The largest BLOCKDEP that is proved safe for `kernel` right after `previous`, by comparing ranges of bytes.
// With it, job j of the kernel may start while the last BLOCKDEP - j blocks of `previous` are unwritten, so
// nothing that blocks 0 to j read may be in them: job j belongs to one of these blocks. Returns 0 where
// nothing is proved: for a kernel that writes what `previous` reads or writes, for maps of several tiles, for
// tables.
uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel);

// ---- what a stream does and how long it takes, looked at without running it: packers check their own
// streams with it, and drivers those they are given

// What a stream's operations take, by the cost model.
struct StreamWork {
  uint64_t total_cycles = 0;  // of all operations one after the other
  uint64_t macs = 0;
  // Elements that kernels read for their outputs, each as often as it is read, and bytes of weights and
  // transfers. What the device reads many of at a time costs a simulator each time; at most UINT64_MAX.
  uint64_t elements = 0;
};

struct RegionLimits {
  uint64_t bytes[kMaxRegions] = {};
  bool is_writable[kMaxRegions] = {};
};

// Is told the ranges of memory that operations write, in the stream's order. They are bounds: bytes between
// the rows of a feature map lie within them.
struct WriteObserver {
  void (*wrote)(void* context, const ByteRange& range);
  void* context;
};

// Every operation uses registers that the stream set, keeps the limits of the architecture, fits SHRAM and
// stays inside of its regions; transfers and kernels that touch the same bytes wait for each other; OP_STOP
// is the last word. *word: where it is wrong. Not looked at: whether the weights decode, and BLOCKDEP.
// writes: who is told of every write, or null.
[[nodiscard]] Problem check_stream(const Config& config, const Payload& payload, const RegionLimits& limits,
                                   uint32_t* word, StreamWork* work, const WriteObserver* writes = nullptr);

// What a stream takes by the cost model, from its first operation to the last, with transfers beside kernels.
struct StreamCycles {
  uint64_t compute = 0;  // where no memory were busy
  uint64_t cycles = 0;
};
// The stream is one that check_stream takes; anything else ends the count.
StreamCycles stream_cycles(const Config& config, const Memories& memories, const Payload& payload);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_STREAM_H_
