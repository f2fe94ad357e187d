#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

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

void read_map(const FeatureMap& map, Access* access) {
  access->num_reads += tile_ranges(map, access->reads + access->num_reads);
}

}  // namespace

bool overlap(const ByteRange& a, const ByteRange& b) {
  return a.region == b.region && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

Access access_of(const Config& config, const Kernel& kernel) {
  Access access;
  read_map(kernel.ifm, &access);
  if (kernel.has_ifm2) read_map(kernel.ifm2, &access);
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

Access access_of(const Config& config, const Transfer& transfer) {
  Access access;
  access.read(transfer.from);
  const ByteRange& to = transfer.to;
  access.write(transfer.to_shram ? ByteRange{kTables, to.begin - table_address(config), to.bytes} : to);
  return access;
}

uint32_t Unfinished::beside(const Queue& queue, const Access& access) {
  for (uint32_t i = 0; i < queue.count; ++i) {
    if (conflict(access, queue.operations[i])) return i;
  }
  return queue.count;
}

void Unfinished::push(Queue* queue, uint32_t room, const Access& access) {
  for (uint32_t i = least(queue->count, room - 1); i > 0; --i)
    queue->operations[i] = queue->operations[i - 1];
  queue->operations[0] = access;
  queue->count = least(queue->count + 1, room);
}

// ---- BLOCKDEP

namespace {

struct Span {
  uint32_t begin = 0, end = 0;
};
struct Box {
  Span rows, columns, channels;
};

bool overlap(const FeatureMap& a, const FeatureMap& b) {
  ByteRange of_a[4], of_b[4];
  const uint32_t num_a = tile_ranges(a, of_a), num_b = tile_ranges(b, of_b);
  for (uint32_t i = 0; i < num_a; ++i) {
    for (uint32_t j = 0; j < num_b; ++j) {
      if (overlap(of_a[i], of_b[j])) return true;
    }
  }
  return false;
}

bool is_one_tile(const FeatureMap& map) {
  return map.width0 >= map.w && map.height0 >= map.h && map.height1 >= map.h;
}

Box whole(const FeatureMap& map) { return {{0, map.h}, {0, map.w}, {0, map.d}}; }

bool is_empty(const Box& box) {
  return box.rows.begin >= box.rows.end || box.columns.begin >= box.columns.end ||
         box.channels.begin >= box.channels.end;
}

// From the first byte of a box of a map of one tile to its last.
ByteRange range_of(const FeatureMap& map, const Box& box) {
  const uint64_t begin = map.address(box.rows.begin, box.columns.begin, box.channels.begin);
  const uint64_t end = map.address(box.rows.end - 1, box.columns.end - 1, box.channels.end - 1);
  if (!map.is_nhcwb16) return {map.region, begin, end + map.element_bytes() - begin};
  // Whole bricks of 16 channels, since the last channel of the box may be stored before the first.
  const uint64_t brick = uint64_t{16} * map.element_bytes();
  const uint64_t first = begin - box.channels.begin % 16 * map.element_bytes();
  const uint64_t last = end - (box.channels.end - 1) % 16 * map.element_bytes() + brick;
  return {map.region, first, last - first};
}

// Blocks go by channels first, then by columns, then by rows.
Box output_box(const Kernel& k, uint32_t block) {
  const uint32_t deep = ceil_div(k.ofm.d, k.block_d), across = ceil_div(k.ofm.w, k.block_w);
  const uint32_t z = block % deep * k.block_d, x = block / deep % across * k.block_w;
  const uint32_t y = block / deep / across * k.block_h;
  return {{y, least(y + k.block_h, k.ofm.h)},
          {x, least(x + k.block_w, k.ofm.w)},
          {z, least(z + k.block_d, k.ofm.d)}};
}

Span input_span(Span output, uint32_t stride, uint32_t window, uint32_t before, bool is_upscaled,
                uint32_t extent) {
  int64_t begin = int64_t{output.begin} * stride - before;
  int64_t end = int64_t{output.end - 1} * stride - before + window;
  begin = begin < 0 ? 0 : begin;
  if (is_upscaled) begin /= 2, end = (end + 1) / 2;
  end = end < 0 ? 0 : end > extent ? int64_t{extent} : end;
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// What a block reads of its first input.
Box input_box(const Kernel& k, uint32_t block) {
  Box box = output_box(k, block);
  if (k.kind == KernelKind::kElementwise) return box;
  const bool is_upscaled = k.upscale != Upscale::kNone;
  box.rows = input_span(box.rows, k.stride_y, k.window_h, k.pad_top, is_upscaled, k.ifm.h);
  box.columns = input_span(box.columns, k.stride_x, k.window_w, k.pad_left, is_upscaled, k.ifm.w);
  const bool sums_depth =
      k.kind == KernelKind::kConv || (k.kind == KernelKind::kPool && k.pool == PoolMode::kReduceSum);
  if (sums_depth) box.channels = {0, k.ifm.d};
  return box;
}

// Whether a block reads a byte of the range.
bool reads(const Kernel& k, uint32_t block, const ByteRange& written) {
  const Box box = input_box(k, block);
  if (!is_empty(box) && overlap(range_of(k.ifm, box), written)) return true;
  if (!k.has_ifm2) return false;
  const bool is_repeated = k.broadcast_h || k.broadcast_w || k.broadcast_c;
  return overlap(range_of(k.ifm2, is_repeated ? whole(k.ifm2) : box), written);
}

bool uses_as_weights(const Kernel& kernel, const FeatureMap& map) {
  ByteRange ranges[4];
  const uint32_t count = tile_ranges(map, ranges);
  for (uint32_t core = 0; kernel.is_convolution() && core < kernel.cores; ++core) {
    for (uint32_t i = 0; i < count; ++i) {
      if (overlap(kernel.weights[core], ranges[i]) || overlap(kernel.scales[core], ranges[i])) return true;
    }
  }
  return false;
}

bool writes_what_others_use(const Kernel& previous, const Kernel& kernel) {
  if (overlap(kernel.ofm, previous.ofm) || overlap(kernel.ofm, previous.ifm)) return true;
  if (previous.has_ifm2 && overlap(kernel.ofm, previous.ifm2)) return true;
  // Weights that the kernel before computes, or reads where this one writes.
  return uses_as_weights(kernel, previous.ofm) || uses_as_weights(previous, kernel.ofm);
}

bool is_safe(const Kernel& previous, const Kernel& kernel, uint32_t blockdep) {
  const uint32_t blocks = previous.blocks(), last = kernel.blocks() - 1;
  for (uint32_t job = 0; job < blockdep; ++job) {
    for (uint32_t k = 0; k < blockdep - job; ++k) {
      const ByteRange written = range_of(previous.ofm, output_box(previous, blocks - 1 - k));
      for (uint32_t block = 0; block <= least(job, last); ++block) {
        if (reads(kernel, block, written)) return false;
      }
    }
  }
  return true;
}

}  // namespace

uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel) {
  if (previous.uses_table() || kernel.uses_table()) return 0;
  if (!is_one_tile(previous.ofm) || !is_one_tile(kernel.ifm)) return 0;
  if (kernel.has_ifm2 && !is_one_tile(kernel.ifm2)) return 0;
  if (writes_what_others_use(previous, kernel)) return 0;
  // Where there are fewer blocks, the kernel before may be unfinished, too.
  uint32_t blockdep = least(kMaxBlockdep, previous.blocks());
  while (blockdep > 0 && !is_safe(previous, kernel, blockdep)) --blockdep;
  return blockdep;
}

// ---- the check of a stream

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
