#include "src/ethosu/isa/check_stream.h"

#include "src/ethosu/isa/blocks.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {
namespace {

// The tables in SHRAM count as a region of their own.
constexpr uint32_t kTables = kMaxRegions;
constexpr uint32_t kMaxRanges = 14;

// What an operation reads and writes: bounds of its bytes.
struct Access {
  ByteRange reads[kMaxRanges], writes[kMaxRanges];
  uint32_t num_reads = 0, num_writes = 0;

  void read(const ByteRange& range) { reads[num_reads++] = range; }
  void write(const ByteRange& range) { writes[num_writes++] = range; }
  void read_map(const FeatureMap& map) { num_reads += tile_ranges(map, reads + num_reads); }
};

bool overlap(const ByteRange& a, const ByteRange& b) {
  return a.region == b.region && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

bool any_overlap(const ByteRange* a, uint32_t num_a, const ByteRange* b, uint32_t num_b) {
  for (uint32_t i = 0; i < num_a; ++i) {
    for (uint32_t j = 0; j < num_b; ++j) {
      if (overlap(a[i], b[j])) return true;
    }
  }
  return false;
}

bool conflict(const Access& a, const Access& b) {
  return any_overlap(a.writes, a.num_writes, b.writes, b.num_writes) ||
         any_overlap(a.writes, a.num_writes, b.reads, b.num_reads) ||
         any_overlap(a.reads, a.num_reads, b.writes, b.num_writes);
}

Access access_of(const Config& config, const Kernel& kernel) {
  Access access;
  access.read_map(kernel.ifm);
  if (kernel.has_ifm2) access.read_map(kernel.ifm2);
  for (uint32_t core = 0; kernel.is_convolution() && core < kernel.cores; ++core) {
    access.read(kernel.weights[core]);
    access.read(kernel.scales[core]);
  }
  const ByteRange tables = {kTables, 0, kTableBanks * kBankBytes};
  if (kernel.uses_table()) {
    access.read(tables);
  } else if (config.banks == 16) {
    access.write(tables);
  }
  access.num_writes += tile_ranges(kernel.ofm, access.writes + access.num_writes);
  return access;
}

class Checker {
 public:
  Checker(const Config& config, const Payload& payload, const RegionLimits& limits,
          const WriteObserver* writes)
      : config_(config), payload_(payload), limits_(limits), writes_(writes), time_(config) {}

  Problem run(uint32_t* word, StreamWork* work) {
    for (uint32_t at = 0;;) {
      *word = at;
      if (at >= payload_.stream_words) return {"a stream ends without OP_STOP", 0, 0};
      uint32_t words[2] = {load_word(payload_.stream + uint64_t{at} * 4), 0};
      uint32_t count = 1;
      if (at + 1 < payload_.stream_words) {
        words[1] = load_word(payload_.stream + uint64_t{at + 1} * 4);
        count = 2;
      }
      uint32_t used = 0;
      Command command;
      if (const Problem p = decode(words, count, &used, &command)) return p;
      at += used;
      if (!command.is_operation()) {
        registers_.set(command);
        continue;
      }
      if (command.code == kOpStop) {
        if (at != payload_.stream_words) return {"words after OP_STOP", payload_.stream_words - at, 0};
        work_.cycles = time_.cycles();
        *work = work_;
        return {};
      }
      if (const Problem p = operation(command)) return p;
    }
  }

 private:
  Problem operation(const Command& command) {
    switch (command.code) {
      case kOpDmaWait:
        num_dmas_ = least(num_dmas_, command.parameter);
        time_.wait_transfers(command.parameter);
        return {};
      case kOpKernelWait:
        num_kernels_ = least(num_kernels_, command.parameter);
        time_.wait_kernels(command.parameter);
        return {};
      case kOpDmaStart:
        return transfer();
      case kOpIrq:
        return {"OP_IRQ is not used", 0, 0};
      default:
        return kernel(command);
    }
  }

  Problem check_ranges(const Access& access) const {
    for (uint32_t i = 0; i < access.num_reads + access.num_writes; ++i) {
      const bool is_write = i >= access.num_reads;
      const ByteRange& range = is_write ? access.writes[i - access.num_reads] : access.reads[i];
      if (range.region == kTables) continue;
      const uint64_t bytes = limits_.bytes[range.region];
      if (range.begin > bytes || range.bytes > bytes - range.begin)
        return {"an access is outside of its region", static_cast<int64_t>(range.begin + range.bytes),
                static_cast<int64_t>(bytes)};
      if (is_write && !limits_.is_writable[range.region])
        return {"a region that is read only is written", 0, 0};
    }
    return {};
  }

  // Elements of a map do not share bytes: strides of 0 would make work without end of a few bytes.
  Problem check_size(const FeatureMap& map) const {
    const uint64_t bytes = limits_.bytes[map.region];
    const uint64_t row = uint64_t{map.d} * map.element_bytes() * map.w;
    if (row > bytes || map.h > bytes / row)
      return {"a feature map has more elements than its region has bytes", map.h,
              static_cast<int64_t>(bytes)};
    return {};
  }

  void tell_writes(const Access& access) const {
    for (uint32_t i = 0; writes_ != nullptr && i < access.num_writes; ++i) {
      if (access.writes[i].region != kTables) writes_->wrote(writes_->context, access.writes[i]);
    }
  }

  Problem kernel(const Command& command) {
    Kernel kernel;
    if (const Problem p = read_kernel(config_, registers_, command, &kernel)) return p;
    if (const Problem p = check_size(kernel.ifm)) return p;
    if (const Problem p = check_size(kernel.ofm)) return p;
    if (kernel.has_ifm2) {
      if (const Problem p = check_size(kernel.ifm2)) return p;
    }
    if (const Problem p = check_shram(config_, kernel)) return p;
    const Access access = access_of(config_, kernel);
    if (const Problem p = check_ranges(access)) return p;
    for (uint32_t i = 0; i < num_dmas_; ++i) {
      if (conflict(access, dmas_[i])) return {"a kernel does not wait for a transfer", 0, 0};
    }
    tell_writes(access);
    const uint64_t cycles = kernel_cycles(config_, kernel);
    work_.total_cycles += cycles;
    work_.macs += kernel_macs(kernel);
    add_elements(kernel_elements(kernel));
    time_.start_kernel(cycles);
    push(kernels_, kMaxUnfinishedKernels, &num_kernels_, access);
    return {};
  }

  Problem transfer() {
    Transfer transfer;
    if (const Problem p = read_transfer(config_, registers_, &transfer)) return p;
    Access access;
    access.read(transfer.from);
    ByteRange to = transfer.to;
    if (transfer.to_shram) {
      const uint64_t begin = table_address(config_), bytes = kTableBanks * kBankBytes;
      if (to.begin < begin || to.begin - begin > bytes || to.bytes > bytes - (to.begin - begin))
        return {"a transfer to SHRAM is outside of its tables", static_cast<int64_t>(to.begin),
                static_cast<int64_t>(begin)};
      to = {kTables, to.begin - begin, to.bytes};
    }
    access.write(to);
    if (const Problem p = check_ranges(access)) return p;
    for (uint32_t i = 0; i < num_kernels_; ++i) {
      if (conflict(access, kernels_[i])) return {"a transfer does not wait for a kernel", 0, 0};
    }
    tell_writes(access);
    const uint64_t cycles = transfer_cycles(config_, transfer.from.bytes);
    work_.total_cycles += cycles;
    add_elements(transfer.from.bytes);
    time_.start_transfer(cycles);
    push(dmas_, max_unfinished_dmas(config_), &num_dmas_, access);
    return {};
  }

  void add_elements(uint64_t more) {
    if (__builtin_add_overflow(work_.elements, more, &work_.elements)) work_.elements = UINT64_MAX;
  }

  // The last one first; the oldest has ended where the queue is full.
  static void push(Access* queue, uint32_t room, uint32_t* count, const Access& access) {
    for (uint32_t i = least(*count, room - 1); i > 0; --i) queue[i] = queue[i - 1];
    queue[0] = access;
    *count = least(*count + 1, room);
  }

  const Config& config_;
  const Payload& payload_;
  const RegionLimits& limits_;
  const WriteObserver* const writes_;
  Registers registers_;
  Access kernels_[kMaxUnfinishedKernels], dmas_[2];
  uint32_t num_kernels_ = 0, num_dmas_ = 0;
  TimeLine time_;
  StreamWork work_;
};

}  // namespace

Problem check_stream(const Config& config, const Payload& payload, const RegionLimits& limits, uint32_t* word,
                     StreamWork* work, const WriteObserver* writes) {
  return Checker(config, payload, limits, writes).run(word, work);
}

}  // namespace qplan::ethosu
