// Asks the driver of the same library about the programs that go into a plan, so that what its `load` refuses
// is known before the first run.
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"
#include "src/runtime/npu/slots.h"

namespace qplan::target::external {
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
