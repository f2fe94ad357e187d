// The simulated machine: its memory with the buffers in it, its scratchpads, and what each instruction does
// to them.
#include "src/vta/sim/machine.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/numeric/requantize.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

uint64_t AddressSpace::take(uint64_t bytes) {
  if (bytes > end_) return 0;
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  uint64_t at = kArenaBase;
  for (const auto& [address, taken] : used_) {
    if (address - at >= pages) break;
    at = address + taken;
  }
  if (at > end_ || pages > end_ - at) return 0;
  used_[at] = pages;
  return at;
}

Block::Block(const qplan_device_hooks& hooks, uint64_t bytes, uint8_t fill, uint32_t memory_class) {
  void* memory = nullptr;
  if (hooks.alloc_class != nullptr && memory_class != QPLAN_NPU_MEMORY_CLASS_ANY) {
    memory = hooks.alloc_class(hooks.user, bytes, kPageBytes, memory_class);
    hooks_ = &hooks;
  } else if (hooks.alloc != nullptr) {
    memory = hooks.alloc(hooks.user, bytes, kPageBytes);
    hooks_ = &hooks;
  } else {
    memory = ::operator new(bytes, std::align_val_t(kPageBytes), std::nothrow);
  }
  data_ = static_cast<uint8_t*>(memory);
  if (data_ != nullptr) std::memset(data_, fill, bytes);
}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(hooks_, other.hooks_);
  std::swap(data_, other.data_);
  return *this;
}

Block::~Block() {
  if (data_ == nullptr) return;
  if (hooks_ == nullptr) {
    ::operator delete(data_, std::align_val_t(kPageBytes));
  } else if (hooks_->free != nullptr) {
    hooks_->free(hooks_->user, data_);
  }
}

namespace {

// [offset, offset + count) widened to cache lines and cut to the buffer.
std::pair<uint64_t, uint64_t> lines(const Buffer& buffer, uint64_t offset, uint64_t count) {
  const uint64_t begin = offset / kCacheLineBytes * kCacheLineBytes;
  const uint64_t end = (offset + count + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  return {begin, std::min(end, buffer.bytes)};
}

}  // namespace

void Buffer::flush(uint64_t offset, uint64_t count) {
  if (host == device || count == 0) return;
  const auto [begin, end] = lines(*this, offset, count);
  std::memcpy(device + begin, host + begin, end - begin);
}

void Buffer::invalidate(uint64_t offset, uint64_t count) {
  if (host == device || count == 0) return;
  const auto [begin, end] = lines(*this, offset, count);
  std::memcpy(host + begin, device + begin, end - begin);
}

namespace {

bool holds(const Segment& segment, uint64_t address, uint64_t bytes) {
  return address >= segment.address && address - segment.address <= segment.bytes &&
         bytes <= segment.bytes - (address - segment.address);
}

}  // namespace

void Dram::add(Segment segment) {
  if (segment.is_writable) {
    Touches untouched = {};
    untouched.is_known = segment.is_initialised ? 1 : 0;
    segment.touches.assign((segment.bytes + kGranule - 1) / kGranule, untouched);
  }
  segments_.push_back(std::move(segment));
}

Segment* Dram::find(uint64_t address, uint64_t bytes) {
  if (last_ < segments_.size() && holds(segments_[last_], address, bytes)) return &segments_[last_];
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (!holds(segments_[i], address, bytes)) continue;
    last_ = i;
    return &segments_[i];
  }
  return nullptr;
}

void Dram::forget_touches() {
  for (Segment& segment : segments_) {
    for (Touches& touches : segment.touches) {
      const uint32_t is_known = touches.is_known;
      touches = {};
      touches.is_known = is_known & 1;
    }
  }
}

namespace {

using vta::AluOp;
using vta::Instruction;
using vta::kLanes;
using vta::Memory;
using vta::Module;
using vta::Opcode;

constexpr uint8_t kPoison8 = 0xa5;
constexpr uint32_t kPoison32 = 0xa5a5a5a5;

constexpr uint32_t at(Module module) { return static_cast<uint32_t>(module); }

// The module that writes a memory, and the one that reads it from outside.
constexpr Module writer_of(Memory memory) {
  return memory == Memory::kInp || memory == Memory::kWgt ? Module::kLoad : Module::kCompute;
}
constexpr Module reader_of(Memory memory) {
  return memory == Memory::kInp || memory == Memory::kWgt || memory == Memory::kUop ? Module::kCompute
                                                                                    : Module::kStore;
}

int32_t word_at(const uint8_t* bytes) {
  return static_cast<int32_t>(bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 |
                              uint32_t{bytes[3]} << 24);
}

// One element from its bytes in DRAM; null is padding.
void put(uint32_t& to, Memory, const uint8_t* from) {
  to = from == nullptr ? 0 : static_cast<uint32_t>(word_at(from));
}
void put(Lanes32& to, Memory memory, const uint8_t* from) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (from == nullptr) {
      to[lane] = 0;
    } else {
      to[lane] = memory == Memory::kAcc8 ? static_cast<int8_t>(from[lane]) : word_at(from + 4 * lane);
    }
  }
}
template <size_t kCount>
void put(std::array<int16_t, kCount>& to, Memory, const uint8_t* from) {
  for (size_t i = 0; i < kCount; ++i) to[i] = from == nullptr ? int16_t{0} : static_cast<int8_t>(from[i]);
}

// ACC += INP * WGT for one micro-op. Sums wrap: they are formed as uint32.
void accumulate(Lanes32& acc, const Lanes8& inp, const Weights& wgt) {
  for (uint32_t o = 0; o < kLanes; ++o) {
    int32_t sum = 0;  // 16 products of 8 bits each: no overflow
    for (uint32_t i = 0; i < kLanes; ++i) sum += int32_t{inp[i]} * wgt[o * kLanes + i];
    acc[o] = wrap_add(acc[o], sum);
  }
}

}  // namespace

Machine::Machine(const vta::Config& config, const std::atomic<bool>* stop) : config_(config), stop_(stop) {
  reset();
}

void Machine::reset() {
  Lanes32 acc;
  acc.fill(static_cast<int32_t>(kPoison32));
  Lanes8 inp;
  inp.fill(static_cast<int8_t>(kPoison8));
  Weights wgt;
  wgt.fill(static_cast<int8_t>(kPoison8));
  uop_.reset(config_.uop_elements, kPoison32);
  wgt_.reset(config_.wgt_elements, wgt);
  inp_.reset(config_.inp_elements, inp);
  acc_.reset(config_.acc_elements, acc);
  hazards_ = 0;
  first_hazard_ = Fault();
}

bool Machine::execute(const Instruction& instruction, uint32_t index, const Clock& clock, uint32_t number,
                      Dram* dram, Fault* fault) {
  now_ = &instruction;
  index_ = index;
  clock_ = clock;
  number_ = number;
  dram_ = dram;
  fault_ = fault;
  switch (instruction.opcode) {
    case Opcode::kLoad:
      return load();
    case Opcode::kStore:
      return store();
    case Opcode::kGemm:
      return gemm();
    case Opcode::kAlu:
      return alu();
    case Opcode::kFinish:
      return true;
  }
  return fails(QPLAN_NPU_E_ILLEGAL, "unknown opcode");
}

bool Machine::fails(qplan_npu_status status, const std::string& what, uint64_t address) {
  fault_->status = status;
  fault_->instruction = index_;
  fault_->address = address;
  fault_->text = "instruction " + std::to_string(index_) + " (" + opcode_name(now_->opcode) + "): " + what;
  return false;
}

bool Machine::goes_on() {
  return stop_ == nullptr || !stop_->load(std::memory_order_relaxed) ||
         fails(QPLAN_NPU_E_CANCELLED, "cancelled while it executed");
}

void Machine::hazard(const std::string& what, uint64_t address) {
  if (hazards_++ > 0) return;
  Fault* const fault = fault_;
  fault_ = &first_hazard_;
  (void)fails(QPLAN_NPU_E_HAZARD, what, address);
  fault_ = fault;
}

bool Machine::range_fits(Memory memory, uint64_t end) {
  const uint32_t elements = memory_elements(config_, memory);
  if (end <= elements) return true;
  return fails(QPLAN_NPU_E_ILLEGAL, std::string(memory_name(memory)) + " element " + std::to_string(end - 1) +
                                        " is past the memory's " + std::to_string(elements));
}

// An access of the memory's reader, or of its writer to what it wrote itself.
template <typename T>
bool Machine::read_element(OnChip<T>& memory, Memory id, uint64_t index) {
  if (index >= memory.elements.size()) return range_fits(id, index + 1);
  if (memory.written[index] == 0) {
    return fails(QPLAN_NPU_E_ILLEGAL, std::string("reads ") + memory_name(id) + " element " +
                                          std::to_string(index) + ", which was never written");
  }
  const Module writer = writer_of(id);
  if (module_of(*now_) == writer) return true;
  if (memory.written[index] > clock_[at(writer)]) {
    hazard(std::string("reads ") + memory_name(id) + " element " + std::to_string(index) +
           "; no token orders that after " + "the write by the " + module_name(writer) + " module");
  }
  memory.read[index] = number_;
  return true;
}

template <typename T>
bool Machine::write_element(OnChip<T>& memory, Memory id, uint64_t index) {
  if (index >= memory.elements.size()) return range_fits(id, index + 1);
  const Module reader = reader_of(id);
  if (memory.read[index] > clock_[at(reader)] && reader != module_of(*now_)) {
    hazard(std::string("overwrites ") + memory_name(id) + " element " + std::to_string(index) +
           "; no token orders that after the read by the " + module_name(reader) + " module");
  }
  memory.written[index] = number_;
  return true;
}

bool Machine::note_dram(Segment* segment, uint64_t address, uint64_t bytes, bool is_write) {
  if (!segment->is_writable) return true;
  const Module module = module_of(*now_);
  const uint64_t first = (address - segment->address) / kGranule;
  const uint64_t end = (address + bytes - segment->address + kGranule - 1) / kGranule;
  for (uint64_t g = first; g < end; ++g) {
    Touches& touches = segment->touches[g];
    const uint64_t here = segment->address + g * kGranule;
    if (is_write) {
      if (touches.loaded > clock_[at(Module::kLoad)] || touches.compute_read > clock_[at(Module::kCompute)]) {
        hazard("stores to " + hexadecimal(here) + " in " + segment->name +
                   "; no token orders that after its load",
               here);
      }
      touches.stored = number_;
      continue;
    }
    if (touches.stored == 0 && touches.is_known == 0) {
      return fails(QPLAN_NPU_E_ILLEGAL,
                   "loads " + hexadecimal(here) + " in " + segment->name + ", which was never stored", here);
    }
    if (touches.stored > clock_[at(Module::kStore)]) {
      hazard("loads " + hexadecimal(here) + " in " + segment->name + "; no token orders that after its store",
             here);
    }
    if (touches.stored == 0) touches.was_read_first = 1;
    if (module == Module::kLoad) {
      touches.loaded = number_ & 0x7fffffff;
    } else {
      touches.compute_read = number_ & 0x7fffffff;
    }
  }
  return true;
}

uint8_t* Machine::dram_row(uint64_t element, uint64_t elements, bool is_write) {
  const uint64_t size = element_bytes(now_->memory);
  const uint64_t address = element * size, bytes = elements * size;
  Segment* segment = dram_->find(address, bytes);
  if (segment == nullptr) {
    (void)fails(QPLAN_NPU_E_BUS,
                std::to_string(bytes) + " bytes at " + hexadecimal(address) + " are in no region", address);
    return nullptr;
  }
  if (is_write && !segment->is_writable) {
    (void)fails(QPLAN_NPU_E_BUS,
                "stores to " + hexadecimal(address) + " in " + segment->name + ", which is read-only",
                address);
    return nullptr;
  }
  if (!note_dram(segment, address, bytes, is_write)) return nullptr;
  return segment->memory + (address - segment->address);
}

bool Machine::load() {
  const Instruction& i = *now_;
  if (is_no_op(i)) return true;
  if (i.memory == Memory::kOut) return fails(QPLAN_NPU_E_ILLEGAL, "out cannot be loaded");
  if (!range_fits(i.memory, i.sram_base + sram_extent(i))) return false;
  const uint32_t row = uint32_t{i.x_pad_0} + i.x_size + i.x_pad_1;
  const uint32_t rows = uint32_t{i.y_pad_0} + i.y_size + i.y_pad_1;
  const uint32_t size = element_bytes(i.memory);
  uint32_t to = i.sram_base;
  for (uint32_t y = 0; y < rows; ++y) {
    if (!goes_on()) return false;
    const uint32_t in_y = y - i.y_pad_0;  // wraps where it pads
    const uint8_t* from = nullptr;
    if (in_y < i.y_size) {
      from = dram_row(i.dram_base + uint64_t{in_y} * i.x_stride, i.x_size, false);
      if (from == nullptr) return false;
    }
    for (uint32_t x = 0; x < row; ++x, ++to) {
      const uint32_t in_x = x - i.x_pad_0;
      const uint8_t* element = from != nullptr && in_x < i.x_size ? from + uint64_t{in_x} * size : nullptr;
      const auto write = [&](auto& memory, Memory id) {
        if (!write_element(memory, id, to)) return false;
        put(memory.elements[to], i.memory, element);
        return true;
      };
      bool written = false;
      switch (i.memory) {
        case Memory::kUop:
          written = write(uop_, Memory::kUop);
          break;
        case Memory::kWgt:
          written = write(wgt_, Memory::kWgt);
          break;
        case Memory::kInp:
          written = write(inp_, Memory::kInp);
          break;
        case Memory::kAcc:
        case Memory::kAcc8:
        case Memory::kOut:
          written = write(acc_, Memory::kAcc);
          break;
      }
      if (!written) return false;
    }
  }
  return true;
}

bool Machine::store() {
  const Instruction& i = *now_;
  if (is_no_op(i)) return true;
  if (i.memory != Memory::kOut) return fails(QPLAN_NPU_E_ILLEGAL, "a store takes from out only");
  if (i.y_pad_0 != 0 || i.y_pad_1 != 0 || i.x_pad_0 != 0 || i.x_pad_1 != 0) {
    return fails(QPLAN_NPU_E_ILLEGAL, "a store cannot pad");
  }
  if (!range_fits(i.memory, i.sram_base + sram_extent(i))) return false;
  uint32_t from = i.sram_base;
  for (uint32_t y = 0; y < i.y_size; ++y) {
    if (!goes_on()) return false;
    uint8_t* to = dram_row(i.dram_base + uint64_t{y} * i.x_stride, i.x_size, true);
    if (to == nullptr) return false;
    for (uint32_t x = 0; x < i.x_size; ++x, ++from) {
      if (!read_element(acc_, Memory::kAcc, from)) return false;
      const Lanes32& acc = acc_.elements[from];
      // The low byte of each: what hardware does, no saturation.
      for (uint32_t lane = 0; lane < kLanes; ++lane) *to++ = static_cast<uint8_t>(acc[lane]);
    }
  }
  return true;
}

bool Machine::gemm() {
  const Instruction& i = *now_;
  for (uint32_t y = 0; y < i.iter_out; ++y) {
    for (uint32_t x = 0; x < i.iter_in; ++x) {
      if (!goes_on()) return false;  // after 8192 micro-ops at most
      for (uint32_t u = i.uop_begin; u < i.uop_end; ++u) {
        if (!read_element(uop_, Memory::kUop, u)) return false;
        const vta::Uop uop = vta::decode(config_, uop_.elements[u]);
        const uint32_t d = uop.dst + y * i.dst_factor_out + x * i.dst_factor_in;
        if (i.reset) {
          if (!write_element(acc_, Memory::kAcc, d)) return false;
          acc_.elements[d].fill(0);
          continue;
        }
        const uint32_t s = uop.src + y * i.src_factor_out + x * i.src_factor_in;
        const uint32_t w = uop.wgt + y * i.wgt_factor_out + x * i.wgt_factor_in;
        if (!read_element(inp_, Memory::kInp, s) || !read_element(wgt_, Memory::kWgt, w) ||
            !read_element(acc_, Memory::kAcc, d) || !write_element(acc_, Memory::kAcc, d)) {
          return false;
        }
        accumulate(acc_.elements[d], inp_.elements[s], wgt_.elements[w]);
      }
    }
  }
  return true;
}

bool Machine::alu() {
  const Instruction& i = *now_;
  if (i.alu_op > AluOp::kMul) return fails(QPLAN_NPU_E_ILLEGAL, "unknown alu operation");
  if (i.alu_op == AluOp::kMul && !config_.has_multiply) {
    return fails(QPLAN_NPU_E_ILLEGAL, "this device has no products");
  }
  Lanes32 imm;
  imm.fill(i.imm);
  // A product with zero is zero, whatever the element was: the usual way to clear one.
  const bool reads_dst = !(i.alu_op == AluOp::kMul && i.use_imm && i.imm == 0);
  for (uint32_t y = 0; y < i.iter_out; ++y) {
    for (uint32_t x = 0; x < i.iter_in; ++x) {
      if (!goes_on()) return false;  // after 8192 micro-ops at most
      for (uint32_t u = i.uop_begin; u < i.uop_end; ++u) {
        if (!read_element(uop_, Memory::kUop, u)) return false;
        const vta::Uop uop = vta::decode(config_, uop_.elements[u]);
        const uint32_t d = uop.dst + y * i.dst_factor_out + x * i.dst_factor_in;
        const uint32_t s = uop.src + y * i.src_factor_out + x * i.src_factor_in;
        if ((!i.use_imm && !read_element(acc_, Memory::kAcc, s)) ||
            (reads_dst && !read_element(acc_, Memory::kAcc, d)) || !write_element(acc_, Memory::kAcc, d) ||
            !alu_lanes(acc_.elements[d], i.use_imm ? imm : acc_.elements[s])) {
          return false;
        }
      }
    }
  }
  return true;
}

bool Machine::alu_lanes(Lanes32& dst, const Lanes32& src) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const int32_t a = dst[lane], b = src[lane];
    switch (now_->alu_op) {
      case AluOp::kMin:
        dst[lane] = std::min(a, b);
        break;
      case AluOp::kMax:
        dst[lane] = std::max(a, b);
        break;
      case AluOp::kAdd:
        dst[lane] = wrap_add(a, b);
        break;
      case AluOp::kShr:
        // Implementations differ on counts that do not fit into 5 bits.
        if (b < -31 || b > 31) return fails(QPLAN_NPU_E_ILLEGAL, "a shift by " + std::to_string(b));
        if (b < 0 && !config_.has_multiply)
          return fails(QPLAN_NPU_E_ILLEGAL, "this device cannot shift to the left");
        dst[lane] = b < 0 ? wrap_shift_left(a, -b) : a >> b;
        break;
      case AluOp::kMul:
        dst[lane] = wrap_mul(a, b);
        break;
    }
  }
  return true;
}

}  // namespace qplan::sim
