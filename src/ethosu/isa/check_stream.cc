#include "src/ethosu/isa/check_stream.h"

#include "src/ethosu/isa/access.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {
namespace {

class Checker {
 public:
  Checker(const Config& config, const Payload& payload, const RegionLimits& limits,
          const WriteObserver* writes)
      : config_(config), payload_(payload), limits_(limits), writes_(writes), unfinished_(config) {}

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
        unfinished_.wait_transfers(command.parameter);
        return {};
      case kOpKernelWait:
        unfinished_.wait_kernels(command.parameter);
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
    if (unfinished_.transfers_beside(access) < unfinished_.transfers())
      return {"a kernel does not wait for a transfer", 0, 0};
    tell_writes(access);
    work_.total_cycles += kernel_cycles(config_, kernel);
    work_.macs += kernel_macs(kernel);
    add_elements(kernel_elements(kernel));
    unfinished_.start_kernel(access);
    return {};
  }

  Problem transfer() {
    Transfer transfer;
    if (const Problem p = read_transfer(config_, registers_, &transfer)) return p;
    if (transfer.to_shram) {
      const uint64_t begin = table_address(config_), bytes = kTableBanks * kBankBytes;
      const ByteRange& to = transfer.to;
      if (to.begin < begin || to.begin - begin > bytes || to.bytes > bytes - (to.begin - begin))
        return {"a transfer to SHRAM is outside of its tables", static_cast<int64_t>(to.begin),
                static_cast<int64_t>(begin)};
    }
    const Access access = access_of(config_, transfer);
    if (const Problem p = check_ranges(access)) return p;
    if (unfinished_.kernels_beside(access) < unfinished_.kernels())
      return {"a transfer does not wait for a kernel", 0, 0};
    tell_writes(access);
    work_.total_cycles += transfer_cycles(config_, transfer.from.bytes);
    add_elements(transfer.from.bytes);
    unfinished_.start_transfer(access);
    return {};
  }

  void add_elements(uint64_t more) {
    if (__builtin_add_overflow(work_.elements, more, &work_.elements)) work_.elements = UINT64_MAX;
  }

  const Config& config_;
  const Payload& payload_;
  const RegionLimits& limits_;
  const WriteObserver* const writes_;
  Registers registers_;
  Unfinished unfinished_;
  StreamWork work_;
};

}  // namespace

Problem check_stream(const Config& config, const Payload& payload, const RegionLimits& limits, uint32_t* word,
                     StreamWork* work, const WriteObserver* writes) {
  return Checker(config, payload, limits, writes).run(word, work);
}

StreamCycles stream_cycles(const Config& config, const Memories& memories, const Payload& payload) {
  TimeLine compute(config), all(config);
  Registers registers;
  for (uint32_t at = 0; at < payload.stream_words;) {
    const uint8_t* const from = payload.stream + uint64_t{at} * 4;
    const uint32_t count = least(2, payload.stream_words - at);
    const uint32_t words[2] = {load_word(from), count == 2 ? load_word(from + 4) : 0};
    uint32_t used = 0;
    Command command;
    if (decode(words, count, &used, &command)) break;
    at += used;
    if (!command.is_operation()) {
      registers.set(command);
    } else if (command.code == kOpDmaWait) {
      compute.wait_transfers(command.parameter);
      all.wait_transfers(command.parameter);
    } else if (command.code == kOpKernelWait) {
      compute.wait_kernels(command.parameter);
      all.wait_kernels(command.parameter);
    } else if (command.code == kOpDmaStart) {
      Transfer transfer;
      if (read_transfer(config, registers, &transfer)) break;
      const OperationCost cost = operation_cost(config, memories, transfer);
      compute.start_transfer(cost.compute);
      all.start_transfer(cost);
    } else if (command.starts_kernel()) {
      Kernel kernel;
      if (read_kernel(config, registers, command, &kernel)) break;
      const OperationCost cost = operation_cost(config, memories, kernel);
      compute.start_kernel(cost.compute);
      all.start_kernel(cost);
    }
  }
  return {compute.cycles(), all.cycles()};
}

}  // namespace qplan::ethosu
