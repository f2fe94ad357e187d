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

// Bytes at a 64-byte aligned address, with nothing readable behind them (under AddressSanitizer).
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

struct StepSpec {
  uint16_t kernel = 0;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  ParamsWriter params;
  uint64_t macs = 0;
  uint32_t min_units_per_task = 0;
  std::string name;
  bool has_body = true;
};

struct FunctionSpec {
  std::string name = "main";
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  uint32_t first_step = 0;
  uint32_t num_steps = 0;
  uint64_t scratch_per_worker = 0;
};

struct PlanSpec {
  std::vector<BankSpec> banks;
  std::vector<TensorSpec> tensors;
  std::vector<StepSpec> steps;
  std::vector<FunctionSpec> functions;
  bool with_names = true;

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
