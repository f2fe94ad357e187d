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

}  // namespace qplan::ethosu
