#include "src/ethosu/sim/machine.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu::sim {
// ---- the memory

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

// ---- the order of a kernel's reads

namespace {

bool sums_depth(const Kernel& k) {
  return k.kind == KernelKind::kConv || (k.kind == KernelKind::kPool && k.pool == PoolMode::kReduceSum);
}

// 32 bytes of each element of the input.
uint32_t depth_step(const Kernel& k) { return kIfmStepDepth * 8 / k.ifm.bits; }
uint32_t depth_steps(const Kernel& k) { return sums_depth(k) ? ceil_div(k.ifm.d, depth_step(k)) : 1; }

// A window is worked on in steps of 8 x 8 cells.
constexpr uint32_t kSubKernel = 8;
uint32_t sub_kernels_y(const Kernel& k) { return ceil_div(k.window_h, kSubKernel); }
uint32_t sub_kernels_x(const Kernel& k) { return ceil_div(k.window_w, kSubKernel); }
uint32_t jobs_of_block(const Kernel& k) { return depth_steps(k) * sub_kernels_y(k) * sub_kernels_x(k); }

struct Span {
  uint32_t begin, end;
};
// Rows of the input that rows of the output look at through cells [step, step + 8) of the window.
Span input_span(const Kernel& k, Span output, uint32_t stride, uint32_t window, uint32_t step,
                uint32_t before, uint32_t extent) {
  int64_t begin = int64_t{output.begin} * stride - before + step;
  int64_t end = int64_t{output.end - 1} * stride - before + std::min(step + kSubKernel, window);
  if (k.upscale != Upscale::kNone) begin = begin < 0 ? 0 : begin / 2, end = (end + 1) / 2;
  begin = std::clamp<int64_t>(begin, 0, extent);
  end = std::clamp<int64_t>(end, begin, extent);
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

template <typename Visit>
bool visit_box(const FeatureMap& map, Span rows, Span columns, Span channels, const Visit& visit) {
  for (uint32_t y = rows.begin; y < rows.end; ++y) {
    for (uint32_t x = columns.begin; x < columns.end; ++x) {
      for (uint32_t c = channels.begin; c < channels.end; ++c) {
        if (!visit(map.region, map.address(y, x, c), map.element_bytes())) return false;
      }
    }
  }
  return true;
}

}  // namespace

uint32_t num_jobs(const Kernel& k) { return k.blocks() * jobs_of_block(k); }

bool visit_job_reads(const Kernel& k, uint32_t job,
                     const std::function<bool(uint32_t, uint64_t, uint32_t)>& visit) {
  const uint32_t block = job / jobs_of_block(k), rest = job % jobs_of_block(k);
  const uint32_t window_x = rest % sub_kernels_x(k) * kSubKernel;
  const uint32_t window_y = rest / sub_kernels_x(k) % sub_kernels_y(k) * kSubKernel;
  const uint32_t step = rest / sub_kernels_x(k) / sub_kernels_y(k);
  const uint32_t across = ceil_div(k.ofm.w, k.block_w), deep = ceil_div(k.ofm.d, k.block_d);
  const uint32_t z = block % deep * k.block_d, x = block / deep % across * k.block_w;
  const uint32_t y = block / deep / across * k.block_h;
  const Span rows = {y, std::min(y + k.block_h, k.ofm.h)};
  const Span columns = {x, std::min(x + k.block_w, k.ofm.w)};
  Span channels = {z, std::min(z + k.block_d, k.ofm.d)};
  if (k.kind == KernelKind::kElementwise) {
    if (!visit_box(k.ifm, rows, columns, channels, visit)) return false;
    if (!k.has_ifm2) return true;
    constexpr Span kFirst = {0, 1};
    return visit_box(k.ifm2, k.broadcast_h ? kFirst : rows, k.broadcast_w ? kFirst : columns,
                     k.broadcast_c ? kFirst : channels, visit);
  }
  if (sums_depth(k)) {
    channels = {step * depth_step(k), std::min((step + 1) * depth_step(k), k.ifm.d)};
  }
  return visit_box(k.ifm, input_span(k, rows, k.stride_y, k.window_h, window_y, k.pad_top, k.ifm.h),
                   input_span(k, columns, k.stride_x, k.window_w, window_x, k.pad_left, k.ifm.w), channels,
                   visit);
}

// ---- the machine

bool Machine::fail(const Problem& problem) {
  outcome_.fault.status = QPLAN_NPU_E_ILLEGAL;
  outcome_.fault.text = problem.text;
  if (problem.found != 0 || problem.limit != 0)
    outcome_.fault.text +=
        ": " + std::to_string(problem.found) + ", expected " + std::to_string(problem.limit);
  return false;
}

// Job j may start while the last d - j blocks of the kernel before are unwritten. Kernels before that one
// count as finished: at most two are unfinished, and streams of Arm's compiler rely on it.
bool Machine::check_blockdep(const Kernel& kernel) {
  const uint32_t jobs = std::min(kernel.blockdep, num_jobs(kernel));
  for (uint32_t j = 0; j < jobs; ++j) {
    const uint32_t unwritten = kernel.blockdep - j;
    const auto is_written = [&](uint32_t region, uint64_t address, uint32_t bytes) {
      for (uint64_t b = address; b < address + bytes; ++b) {
        const Touch* const touch = memory_.touch(region, b);
        if (touch == nullptr || touch->kernel_write + 1 != progress_.kernels || touch->from_end >= unwritten)
          continue;
        outcome_.fault.status = QPLAN_NPU_E_HAZARD;
        outcome_.fault.text = "BLOCKDEP " + std::to_string(kernel.blockdep) + ": job " + std::to_string(j) +
                              " reads byte " + std::to_string(b) + " of region " + std::to_string(region) +
                              ", which block " + std::to_string(touch->from_end) +
                              " from the end of the kernel before may not have written";
        return false;
      }
      return true;
    };
    if (!visit_job_reads(kernel, j, is_written)) return false;
  }
  return true;
}

bool Machine::start_kernel(const Command& command, uint32_t word) {
  Kernel kernel;
  if (const Problem p = read_kernel(config_, registers_, command, &kernel)) return fail(p);
  if (const Problem p = check_shram(config_, kernel)) return fail(p);
  // An elementwise kernel has no accumulators.
  if (kernel.kind != KernelKind::kElementwise && kernel.is_acc40 != needs_acc40(kernel))
    return fail({"ACC_FORMAT", kernel.is_acc40, needs_acc40(kernel)});
  // The reader waits while there are as many unfinished kernels as there may be.
  const uint32_t started = progress_.kernels;
  if (started >= kMaxUnfinishedKernels)
    progress_.finished_kernels = std::max(progress_.finished_kernels, started + 1 - kMaxUnfinishedKernels);
  ++progress_.kernels;
  if (!check_blockdep(kernel)) return false;
  Executor executor(config_, kernel, &memory_, progress_, stop);
  if (!executor.run()) {
    outcome_.fault = executor.fault();
    return false;
  }
  const OperationCost cost = operation_cost(config_, memories_, kernel);
  outcome_.busy_cycles += cost.compute;
  outcome_.macs += executor.macs();
  ++outcome_.kernels;
  time_.start_kernel(cost);
  if (on_operation) on_operation(word, command, cost.cycles());
  return true;
}

bool Machine::start_transfer(uint32_t word, const Command& command) {
  Transfer transfer;
  if (const Problem p = read_transfer(config_, registers_, &transfer)) return fail(p);
  const uint32_t at_most = max_unfinished_dmas(config_);
  if (progress_.transfers >= at_most)
    progress_.finished_transfers = std::max(progress_.finished_transfers, progress_.transfers + 1 - at_most);
  ++progress_.transfers;
  if (!memory_.transfer(progress_, transfer.from.region, transfer.from.begin, transfer.to_shram,
                        transfer.to.region, transfer.to.begin, transfer.from.bytes, &outcome_.fault))
    return false;
  ++outcome_.transfers;
  const OperationCost cost = operation_cost(config_, memories_, transfer);
  time_.start_transfer(cost);
  if (on_operation) on_operation(word, command, cost.cycles());
  return true;
}

bool Machine::step(const Command& command, uint32_t word) {
  if (!command.is_operation()) {
    registers_.set(command);
    return true;
  }
  switch (command.code) {
    case kOpStop:
      is_stopped_ = true;
      return true;
    case kOpDmaStart:
      return start_transfer(word, command);
    case kOpDmaWait:
      time_.wait_transfers(command.parameter);
      progress_.finished_transfers =
          std::max(progress_.finished_transfers,
                   progress_.transfers - std::min<uint32_t>(progress_.transfers, command.parameter));
      return true;
    case kOpKernelWait:
      time_.wait_kernels(command.parameter);
      progress_.finished_kernels =
          std::max(progress_.finished_kernels,
                   progress_.kernels - std::min<uint32_t>(progress_.kernels, command.parameter));
      return true;
    case kOpIrq:
      return fail({"OP_IRQ is not modelled", 0, 0});
    default:
      return start_kernel(command, word);
  }
}

Outcome Machine::run(const std::vector<uint32_t>& stream) {
  outcome_ = {};
  registers_ = {};
  progress_ = {};
  time_ = TimeLine(config_);
  is_stopped_ = false;
  const auto size = static_cast<uint32_t>(stream.size());
  for (uint32_t at = 0; !is_stopped_;) {
    const uint32_t word = at;
    Command command;
    bool is_done = true;
    if (before) before(word, &outcome_.fault);
    if (outcome_.fault.is_set()) {
      outcome_.fault.word = word;
      break;
    }
    if (const Problem p = decode(stream.data(), size, &at, &command)) {
      is_done = fail(p);
    } else if (stop != nullptr && stop->load()) {
      outcome_.fault.status = QPLAN_NPU_E_CANCELLED;
      outcome_.fault.text = "the job was stopped";
      is_done = false;
    } else {
      is_done = step(command, word);
    }
    if (!is_done) {
      outcome_.fault.word = word;
      outcome_.fault.text = "word " + std::to_string(word) + ": " + outcome_.fault.text;
      break;
    }
    if (is_stopped_ && at != size) {
      (void)fail({"words after OP_STOP", size - at, 0});
      outcome_.fault.word = at;
    }
  }
  outcome_.cycles = time_.cycles();
  outcome_.bytes_read = memory_.bytes_read;
  outcome_.bytes_written = memory_.bytes_written;
  return outcome_;
}

}  // namespace qplan::ethosu::sim
