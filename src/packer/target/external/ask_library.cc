// What a library is asked for a region: how the tensors at its border are arranged, which is checked; and
// what the library's own driver says of the programs that go into a plan, so that what its `load` refuses is
// known before the first run.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "qplan/host.h"
#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"
#include "src/runtime/npu/driver_answers.h"

namespace qplan::target::external {
namespace {

constexpr uint32_t kSlotAlignment = QPLAN_OPLIST_ALIGNMENT;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // sums of a plan's buffers cannot wrap
constexpr uint8_t kSignBit = 0x80;

bool asks_layout(const qplan_npu_target& library) {
  constexpr size_t kWithLayout = offsetof(qplan_npu_target, layout) + sizeof(library.layout);
  return library.struct_size >= kWithLayout && library.layout != nullptr;
}

// The packed tensor, as the library gets it.
struct Question {
  DLTensor tensor = {};
  ir::Shape shape;
  qplan_npu_slot_layout slot = {};

  Question(const ir::TensorType& type, uint32_t usage) : shape(type.shape) {
    tensor.device.device_type = kDLCPU;
    tensor.dtype = {type.dtype.code, type.dtype.bits, type.dtype.lanes};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
    const Arrangement packed = packed_arrangement(type);
    slot.struct_size = sizeof(slot);
    slot.usage = usage;
    slot.tensor = &tensor;
    slot.bytes = packed.size;
    slot.byte_stride = packed.byte_stride;
    std::ranges::copy(packed.strides, slot.strides);
    slot.alignment = kSlotAlignment;
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
};

// Whether no two bytes of the tensor are one byte of the buffer: each step, beginning with the smallest, is
// beyond all that the smaller steps reach.
bool is_injective(const Arrangement& arrangement, const ir::TensorType& type) {
  std::vector<std::pair<uint64_t, uint64_t>> steps;  // and how often
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    steps.emplace_back(arrangement.strides[axis], static_cast<uint64_t>(type.shape[axis]));
  if (arrangement.block != 0) {
    const uint64_t channels = std::exchange(steps.back().second, arrangement.block);
    steps.emplace_back(arrangement.block_stride, (channels - 1) / arrangement.block + 1);
  }
  steps.emplace_back(arrangement.byte_stride, type.dtype.bits / 8u);
  std::erase_if(steps, [](const auto& step) { return step.second == 1; });
  std::ranges::sort(steps);
  uint64_t reach = 1;
  for (const auto& [step, count] : steps) {
    uint64_t further = 0;
    if (step < reach || !checked_mul(step, count - 1, &further) || !checked_add(reach, further, &reach))
      return false;
  }
  return true;
}

// What stands against it; "": nothing does.
std::string fault_of(const qplan_npu_target& library, const Arrangement& arrangement, uint32_t alignment,
                     const ir::TensorType& type, bool flips) {
  if (arrangement.flip != (flips && type.dtype == ir::kUint8 ? kSignBit : 0))
    return cat("its flip is ", int{arrangement.flip},
               ", expected 128 of all uint8 tensors or 0 of all, and 0 of other tensors");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > format::kMaxAlignment)
    return cat("its alignment is ", alignment, ", expected a power of two up to ", format::kMaxAlignment);
  if (arrangement.size == 0 || arrangement.size > kMostBytes)
    return cat("its buffer has ", arrangement.size, " bytes, expected 1 to ", kMostBytes);
  const auto end = end_of_elements(arrangement, type);
  if (!end || *end > arrangement.size) return cat("elements reach beyond its ", arrangement.size, " bytes");
  if (!is_injective(arrangement, type)) return "two elements have the same bytes";
  Arrangement unflipped = arrangement;
  unflipped.flip = 0;
  if (library.compile == nullptr && !unflipped.is_packed(type))
    return "it is not packed, but the program is an operator list, whose tensors are";
  return "";
}

}  // namespace

bool flips_uint8(const qplan_npu_target& library, uint64_t config) {
  if (!asks_layout(library)) return false;
  Question question({ir::kUint8, {1, 1, 1, 1}}, QPLAN_NPU_USE_INPUT);
  qplan_npu_reason why = {};
  return library.layout(config, &question.slot, &why) == QPLAN_NPU_OK && question.slot.flip == kSignBit;
}

Arrangement ask_layout(const qplan_npu_target& library, uint64_t config, const ir::TensorType& type,
                       uint32_t usage, uint32_t* alignment) {
  *alignment = kSlotAlignment;
  if (!asks_layout(library)) return packed_arrangement(type);
  Question question(type, usage);
  qplan_npu_reason why = {};
  const qplan_npu_status status = library.layout(config, &question.slot, &why);
  const qplan_npu_slot_layout& slot = question.slot;
  Arrangement result;
  result.strides.assign(slot.strides, slot.strides + type.shape.size());
  result.origin = slot.origin;
  result.byte_stride = slot.byte_stride;
  result.size = slot.bytes;
  result.fill = slot.fill;
  result.flip = slot.flip;
  // A single block is the axis itself, and so are blocks that follow each other like the elements in them.
  const bool is_divided = !type.shape.empty() && slot.block != 0 && slot.block < type.shape.back() &&
                          slot.block_stride != slot.block * slot.strides[type.shape.size() - 1];
  if (is_divided) {
    result.block = slot.block;
    result.block_stride = slot.block_stride;
  }
  result.takes_any_fill = usage == QPLAN_NPU_USE_INPUT && (slot.flags & QPLAN_NPU_LAYOUT_ANY_FILL) != 0;
  result.leaves_fill = usage == QPLAN_NPU_USE_OUTPUT && (slot.flags & QPLAN_NPU_LAYOUT_FILLS) != 0;
  *alignment = slot.alignment;
  const std::string fault =
      status != QPLAN_NPU_OK
          ? cat(std::string(why.text, strnlen(why.text, sizeof(why.text))), ", status ", status_text(status))
          : fault_of(library, result, slot.alignment, type, flips_uint8(library, config));
  if (!fault.empty())
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("target library: target '", library.name, "': layout of ",
                        usage == QPLAN_NPU_USE_INPUT ? "an input " : "an output ", type, ": ", fault));
  return result;
}

namespace {

bool is_mistake(qplan_npu_status status) { return QPLAN_NPU_CLASS(status) == QPLAN_NPU_CLASS_MISTAKE; }

// Opens the driver's first device as `qplan run` does: with the options of the target, or without them if the
// driver refuses them.
class OpenDevice {
 public:
  OpenDevice(const qplan_npu_driver& driver, const std::string& options) {
    if (!open(driver, options.c_str()) && is_mistake(device_.status) && !options.empty()) open(driver, "");
  }
  ~OpenDevice() { qplan_host_device_close(&device_); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  // Plans of these capabilities are for this device. The packing machine may have no device, or another one.
  bool is_of(const qplan_npu_capabilities& target) const {
    qplan_npu_capabilities capabilities = {};
    capabilities.struct_size = sizeof(capabilities);
    return device_.driver != nullptr &&
           device_.driver->capabilities(device_.device, &capabilities) == QPLAN_NPU_OK &&
           capabilities.hash == target.hash;
  }
  const qplan_npu_driver& driver() const { return *device_.driver; }
  qplan_npu_device handle() const { return device_.device; }

 private:
  bool open(const qplan_npu_driver& driver, const char* options) {
    device_.struct_size = sizeof(device_);
    return qplan_host_device_open(&driver, 0, options, nullptr, &device_, nullptr) >= 0;
  }
  qplan_host_device device_ = {};
};

// What the plan will bind, for check_slots. The runtime compares addresses, which the plan does not know.
class RegionBinds {
 public:
  RegionBinds(const RegionProgram& program, uint32_t most)
      : function_(*program.function), slots_(program.code->slots), most_(most) {}

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t most() const { return most_; }
  uint32_t slot(uint32_t b) const { return slots_[b].slot; }
  format::NpuUse use(uint32_t b) const { return slots_[b].use; }
  uint64_t size(uint32_t b) const { return slots_[b].arrangement.size; }
  uint64_t bytes_read(uint32_t b) const {
    const ir::TensorType& type = function_.type(function_.outputs()[slots_[b].index]);
    return end_of_elements(slots_[b].arrangement, type).value_or(size(b));
  }
  uint64_t address(uint32_t) const { return 0; }

 private:
  const ir::Function& function_;
  std::span<const RegionSlot> slots_;
  uint32_t most_;
};

class Loader {
 public:
  Loader(const Library& library, const OpenDevice& device, uint32_t max_binds)
      : library_(*library.target), device_(device), max_binds_(max_binds) {}

  // What `load` says that the device cannot do. PackError where it does not understand the program.
  std::optional<ProgramRefusal> load(const RegionProgram& program, size_t position) const {
    const CompiledRegion& code = *program.code;
    qplan_npu_program handle = 0;
    qplan_npu_reason why = {};
    why.place = QPLAN_OPLIST_NONE;
    const qplan_npu_status status = device_.driver().load(device_.handle(), code.format, code.blob.data(),
                                                          code.blob.size(), &handle, &why);
    if (status >= 0) {
      Error fault;
      uint32_t alignment = 1;
      const qplan_npu_status checked = check_slots(device_.driver(), device_.handle(), handle,
                                                   RegionBinds(program, max_binds_), &alignment, &fault);
      (void)device_.driver().unload(device_.handle(), handle);
      if (is_mistake(checked)) fail(program, fault.text());
      return std::nullopt;
    }
    if (!is_mistake(status)) return std::nullopt;  // it cannot say now
    if (status != QPLAN_NPU_E_UNSUPPORTED) {
      const std::string text(why.text, strnlen(why.text, sizeof(why.text)));
      fail(program, cat(text, text.empty() ? "" : ", ", "status ", status_text(status)));
    }
    const std::string text = reason_text(why);
    const bool has_node = why.place < program.function->nodes().size();
    ProgramRefusal refusal;
    refusal.program = position;
    if (has_node) refusal.node = why.place;
    refusal.reason = {cat(library_.name, ".load"),
                      cat("the driver refuses the program of its region", has_node ? " for it: " : ": ", text,
                          has_node ? "" : "; without this operator the region is smaller"),
                      ""};
    return refusal;
  }

 private:
  [[noreturn]] void fail(const RegionProgram& program, const std::string& text) const {
    const bool compiles = library_.compile != nullptr;
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("target library: target '", library_.name, "': its driver refuses the ",
                        compiles ? "program that its compile made of region '" : "operator list of region '",
                        program.function->name(), "': ", text, "; load of the driver must take what ",
                        compiles ? "compile writes" : "supported takes"));
  }

  const qplan_npu_target& library_;
  const OpenDevice& device_;
  uint32_t max_binds_;
};

}  // namespace

std::vector<ProgramRefusal> ask_driver(const Library& library, const std::string& options,
                                       const qplan_npu_capabilities& capabilities,
                                       std::span<const RegionProgram> programs) {
  std::vector<ProgramRefusal> refusals;
  if (library.driver == nullptr) return refusals;
  const OpenDevice device(*library.driver, options);
  if (!device.is_of(capabilities)) return refusals;
  const Loader loader(library, device, capabilities.max_binds);
  for (size_t i = 0; i < programs.size(); ++i) {
    if (std::optional<ProgramRefusal> refusal = loader.load(programs[i], i))
      refusals.push_back(std::move(*refusal));
  }
  return refusals;
}

}  // namespace qplan::target::external
