// Plans made by hand: a plain description of every field of the schema, and the file that it makes. Nothing
// is checked on the way, so that wrong plans can be made too.
#ifndef QPLAN_TESTS_SUPPORT_PLAN_BUILDER_H_
#define QPLAN_TESTS_SUPPORT_PLAN_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/container.h"
#include "format/plan_generated.h"

namespace qplan::testing {

// Bytes at a 64-byte aligned address, with nothing readable after them (under AddressSanitizer).
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size, size_t alignment = 64, uint8_t fill = 0);
  AlignedBytes(const void* bytes, size_t size);

  uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  uint8_t& operator[](size_t i) const { return bytes_.get()[i]; }

 private:
  std::unique_ptr<uint8_t, void (*)(void*)> bytes_{nullptr, nullptr};
  size_t size_ = 0;
};

struct BankSpec {
  format::BankKind kind = format::BankKind_ARENA;
  uint32_t alignment = 64;
  uint64_t size = 0;
  std::vector<uint8_t> bytes;           // of constants
  std::optional<uint64_t> file_offset;  // instead of where the bytes are put
  uint32_t target = 0;                  // of devices
  format::MemoryClass memory_class = format::MemoryClass_ANY;
};

struct QuantizationSpec {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  int32_t axis = 0;
};

struct TensorSpec {
  uint8_t code = 0;  // int8
  uint8_t bits = 8;
  std::vector<int64_t> shape;
  uint32_t bank = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t first_use = 0;
  uint32_t last_use = 0;
  std::optional<QuantizationSpec> quantization;
  std::string name;
};

// Writes params and returns them; none: no params at all.
using ParamsWriter = std::function<std::pair<format::KernelParams, flatbuffers::Offset<void>>(
    flatbuffers::FlatBufferBuilder&)>;

// format/plan.fbs, NpuBind.
struct BindSpec {
  uint32_t slot = 0;
  format::NpuUse use = format::NpuUse_INPUT;
  uint32_t index = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::optional<std::vector<uint64_t>> strides;
  uint64_t origin = 0;
  uint64_t byte_stride = 1;
  uint8_t fill = 0;
  uint8_t flip = 0;
  uint32_t block = 0;
  uint64_t block_stride = 0;
  uint32_t kept = 0;
  format::MemoryClass memory_class = format::MemoryClass_ANY;
};

// The fields of a region's step, in place of kernel and parameters.
struct NpuSpec {
  uint32_t target = 1;
  uint32_t format = 0;
  uint32_t blob = 0;
  std::vector<BindSpec> binds;
  uint32_t num_alternative_steps = 0;
  uint32_t num_operators = 1;
  uint64_t estimated_cycles = 0;
  format::MemoryClass memory_class = format::MemoryClass_ANY;
};

struct TargetSpec {
  std::string name;
  std::string options;
};

struct StepSpec {
  uint16_t kernel = 0;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  ParamsWriter params;
  ParamsWriter residual;  // null: none
  uint64_t macs = 0;
  uint32_t min_units_per_task = 0;
  uint64_t schedule = 0;
  std::string name;
  bool has_body = true;
  std::optional<NpuSpec> npu;
};

struct StateSpec {
  uint32_t input = 0;
  uint32_t output = 0;
  uint32_t initial = UINT32_MAX;
  uint8_t fill = 0;
};

// format/plan.fbs, SelfCheck.
struct SelfCheckSpec {
  uint32_t seed = 1;
  std::vector<uint32_t> outputs;
};

// format/plan.fbs, ConstantCopy.
struct CopySpec {
  uint32_t tensor = 0;
  uint32_t bank = 0;
  uint64_t offset = 0;
};

struct FunctionSpec {
  std::string name = "main";
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  uint32_t first_step = 0;
  uint32_t num_steps = 0;
  uint64_t scratch_per_worker = 0;
  std::vector<uint32_t> scratch_offsets, scratch_sizes;
  bool overwrites_inputs = false;
  std::vector<StateSpec> states;
  std::vector<SelfCheckSpec> self_checks;
  std::vector<uint32_t> constant_checksums;
};

struct PlanSpec {
  std::vector<BankSpec> banks;
  std::vector<TensorSpec> tensors;
  std::vector<StepSpec> steps;
  std::vector<FunctionSpec> functions;
  std::vector<CopySpec> copies;
  bool with_names = true;
  std::vector<TargetSpec> targets = {{"cpu", ""}};
  std::optional<uint32_t> required_features;  // instead of what the steps and banks need

  // Bank 0 is the arena, bank 1 holds constants; both grow with what is added.
  PlanSpec();
  // An int8 tensor of its own in the arena, 64-byte aligned. Returns its index.
  uint32_t add_tensor(std::vector<int64_t> shape, std::string name = "", uint8_t code = 0, uint8_t bits = 8);
  // A constant of that many bytes.
  uint32_t add_constant(std::vector<int64_t> shape, const std::vector<uint8_t>& bytes, std::string name = "",
                        uint8_t code = 0, uint8_t bits = 8);
  // Copy's parameters hold one byte, which test kernels use as they like.
  uint32_t add_step(uint16_t kernel, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                    ParamsWriter params, std::string name = "");
  // A target with a DEVICE bank of its own. Returns its position in targets.
  uint32_t add_device(std::string target, uint32_t alignment = 64);
  // Reserves bytes of a bank, at a multiple of 64. Returns the offset.
  uint64_t add_range(uint32_t bank, uint64_t size);
  // Another bank of a device, of this class; the first one has any. Returns its position.
  uint32_t add_device_bank(uint32_t target, format::MemoryClass memory_class);
  // The first bank of a target added with add_device.
  uint32_t bank_of(uint32_t target) const;
  // Moves a tensor into a device's bank.
  void move_to_device(uint32_t tensor, uint32_t target);
  // A region without binds; add them to steps.back().npu.
  uint32_t add_region(uint32_t target, uint32_t format, const std::vector<uint8_t>& blob,
                      std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                      uint32_t num_alternative_steps, std::string name = "");
  // All steps that there are by now.
  void add_main(std::vector<uint32_t> inputs, std::vector<uint32_t> outputs, uint64_t scratch_per_worker = 0);
};

ParamsWriter copy_params(uint8_t reserved);
ParamsWriter concat_params(uint32_t axis);
ParamsWriter split_params(uint32_t axis);

// The file, with a correct header.
AlignedBytes build_plan(const PlanSpec& spec);
// Makes the header's digest that of the bytes.
void update_digest(AlignedBytes* plan);

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_PLAN_BUILDER_H_
