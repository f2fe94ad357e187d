#include "src/ethosu/isa/access.h"

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

}  // namespace qplan::ethosu
