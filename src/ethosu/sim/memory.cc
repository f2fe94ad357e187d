#include <cstring>

#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {
namespace {

std::string place_of(uint32_t region, uint64_t address) {
  if (region == kMaxRegions) return "byte " + std::to_string(address) + " of the tables in SHRAM";
  return "byte " + std::to_string(address) + " of region " + std::to_string(region);
}

bool fail(qplan_npu_status status, std::string text, Fault* fault) {
  fault->status = status;
  fault->text = std::move(text);
  return false;
}

}  // namespace

Memory::Memory(const Config& config) : config_(config), tables_(kTableBanks * kBankBytes, kStale) {
  set_region(kTables, tables_.data(), tables_.size(), true, false);
}

void Memory::set_region(uint32_t index, uint8_t* data, uint64_t bytes, bool is_writable, bool is_defined) {
  RegionMemory& region = regions_.at(index);
  region.data = data;
  region.bytes = bytes;
  region.is_writable = is_writable;
  region.touches.clear();
  if (!is_writable) return;
  Touch touch;
  touch.is_defined = is_defined;
  region.touches.assign(bytes, touch);
}

void Memory::define(uint32_t index, uint64_t offset, const uint8_t* bytes, uint64_t size) {
  std::memcpy(regions_.at(index).data + offset, bytes, size);
  mark_defined(index, offset, size);
}

void Memory::mark_defined(uint32_t index, uint64_t offset, uint64_t size) {
  RegionMemory& region = regions_.at(index);
  for (uint64_t b = offset; region.is_writable && b < offset + size; ++b) region.touches[b].is_defined = true;
}

bool Memory::check_range(const char* what, uint32_t region, uint64_t address, uint64_t bytes,
                         Fault* fault) const {
  const RegionMemory& memory = regions_[region];
  if (address <= memory.bytes && bytes <= memory.bytes - address) return true;
  return fail(QPLAN_NPU_E_BUS,
              std::string(what) + " " + place_of(region, address) + ", which has " +
                  std::to_string(memory.bytes) + " bytes",
              fault);
}

bool Memory::read(const Progress& progress, uint32_t region, uint64_t address, uint32_t bytes, uint8_t* to,
                  Fault* fault) {
  if (!check_range("a kernel reads", region, address, bytes, fault)) return false;
  RegionMemory& memory = regions_[region];
  std::memcpy(to, memory.data + address, bytes);
  bytes_read += bytes;
  if (!memory.is_writable) return true;
  for (uint64_t b = address; b < address + bytes; ++b) {
    Touch& touch = memory.touches[b];
    if (!touch.is_defined)
      return fail(QPLAN_NPU_E_HAZARD, "a kernel reads " + place_of(region, b) + ", which nobody wrote",
                  fault);
    if (touch.dma_write > progress.finished_transfers)
      return fail(QPLAN_NPU_E_HAZARD,
                  "a kernel reads " + place_of(region, b) + " without a wait for the transfer that writes it",
                  fault);
    touch.kernel_read = progress.kernels;
  }
  return true;
}

bool Memory::write(const Progress& progress, uint32_t region, uint64_t address, uint32_t bytes,
                   const uint8_t* from, uint8_t from_end, Fault* fault) {
  if (!check_range("a kernel writes", region, address, bytes, fault)) return false;
  RegionMemory& memory = regions_[region];
  if (!memory.is_writable)
    return fail(QPLAN_NPU_E_BUS, "a kernel writes " + place_of(region, address) + ", which is read only",
                fault);
  for (uint64_t b = address; b < address + bytes; ++b) {
    Touch& touch = memory.touches[b];
    if (touch.dma_write > progress.finished_transfers || touch.dma_read > progress.finished_transfers)
      return fail(QPLAN_NPU_E_HAZARD,
                  "a kernel writes " + place_of(region, b) + " without a wait for the transfer that uses it",
                  fault);
    touch.kernel_write = progress.kernels;
    touch.from_end = from_end;
    touch.is_defined = true;
  }
  std::memcpy(memory.data + address, from, bytes);
  bytes_written += bytes;
  return true;
}

bool Memory::transfer(const Progress& progress, uint32_t from_region, uint64_t from, bool to_shram,
                      uint32_t to_region, uint64_t to, uint64_t bytes, Fault* fault) {
  if (!check_range("a transfer reads", from_region, from, bytes, fault)) return false;
  if (to_shram) {
    to_region = kTables;
    if (to < table_address(config_))
      return fail(QPLAN_NPU_E_ILLEGAL, "a transfer to SHRAM before its tables", fault);
    to -= table_address(config_);
  }
  if (!check_range("a transfer writes", to_region, to, bytes, fault)) return false;
  RegionMemory& source = regions_[from_region];
  RegionMemory& destination = regions_[to_region];
  if (!destination.is_writable)
    return fail(QPLAN_NPU_E_BUS, "a transfer writes " + place_of(to_region, to) + ", which is read only",
                fault);
  for (uint64_t b = 0; b < bytes; ++b) {
    Touch& written = destination.touches[to + b];
    if (written.kernel_write > progress.finished_kernels || written.kernel_read > progress.finished_kernels)
      return fail(
          QPLAN_NPU_E_HAZARD,
          "a transfer writes " + place_of(to_region, to + b) + " without a wait for the kernel that uses it",
          fault);
    bool is_defined = true;
    if (source.is_writable) {
      Touch& read = source.touches[from + b];
      if (read.kernel_write > progress.finished_kernels)
        return fail(QPLAN_NPU_E_HAZARD,
                    "a transfer reads " + place_of(from_region, from + b) +
                        " without a wait for the kernel that writes it",
                    fault);
      read.dma_read = progress.transfers;
      is_defined = read.is_defined;
    }
    written.dma_write = progress.transfers;
    written.is_defined = is_defined;
  }
  std::memmove(destination.data + to, source.data + from, bytes);
  bytes_read += bytes;
  bytes_written += bytes;
  return true;
}

const Touch* Memory::touch(uint32_t region, uint64_t address) const {
  const RegionMemory& memory = regions_[region];
  return memory.is_writable && address < memory.bytes ? &memory.touches[address] : nullptr;
}

bool Memory::read_table(const Progress& progress, uint64_t offset, uint32_t bytes, uint8_t* to,
                        Fault* fault) {
  return read(progress, kTables, offset, bytes, to, fault);
}

void Memory::overwrite_tables(const Progress& progress) {
  for (Touch& touch : regions_[kTables].touches) {
    touch.is_defined = false;
    touch.kernel_write = progress.kernels;
  }
}

}  // namespace qplan::ethosu::sim
