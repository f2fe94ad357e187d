// Checks of open(): the structure of a plan's flatbuffers, then their numbers.
#ifndef QPLAN_FORMAT_VERIFY_H_
#define QPLAN_FORMAT_VERIFY_H_

#include <stdint.h>

#include "format/plan_generated.h"
#include "format/plan_view.h"
#include "src/base/error.h"

namespace qplan::format {

// ---- the flatbuffer's structure (verify_tables.cc), by lists of what the fields of each table are: what
// FlatBuffers' verifier does by generated code for each table, in a tenth of the bytes. tests/format compares
// the lists with the schemas, and the verdicts with those of FlatBuffers' verifier.

// Tables of plan.fbs and names.fbs that fields refer to, those of a union in the union's order; the other
// kernels' parameters follow the first ones.
enum TableKind : uint8_t {
  kPlanTable,          // A
  kNamesTable,         // B
  kTargetTable,        // C
  kBankTable,          // D
  kTensorTable,        // E
  kQuantizationTable,  // F
  kStepTable,          // G
  kFunctionTable,      // H
  kStateTable,         // I
  kSelfCheckTable,     // J
  kNpuBindTable,       // K
  kCustomOptionTable,  // L
  kConstantCopyTable,  // M
  kKernelStepTable,    // N
  kNpuStepTable,       // O
  kConv2dParamsTable,  // P
  kFullyConnectedParamsTable,
  kPool2dParamsTable,
  kAddParamsTable,  // S
  kNumTableKinds = kConv2dParamsTable + KernelParams_MAX,
};

// The fields of a table in the order of the schema, one or two letters each:
//
//   1 2 4 8   a scalar of so many bytes
//   a b d h   a vector of scalars of 1, 2, 4 or 8 bytes
//   s S       a string, a vector of strings
//   tX vX     a table, a vector of tables; X: 'A' + TableKind
//   uX        a union: X is its first member's; the field before it is its type, which counts from 1
const char* fields_of(TableKind table);

// Nesting of the schemas is Plan > Step > KernelStep > CascadeParams > KernelStep > params; more is not a
// plan.
inline constexpr uint32_t kMaxTableDepth = 8;

// The root of a flatbuffer, or null where it is damaged: each table, vector and string that it leads to is
// within the bytes and aligned, as far as FlatBuffers' verifier sees to that, and they are not nested deeper
// than schemas are. bytes: at a multiple of 8.
const void* verified_root(const uint8_t* bytes, uint64_t size, TableKind root);

// ---- every number that the runtime later uses without a check

// Checks a plan whose flatbuffers passed FlatBuffers' verifier. Linear in the size of the file: vectors may
// be shared by several tables, but all the entries reached through all references are at most as many as the
// root has bytes.
class PlanVerifier {
 public:
  // check_npu_step: npu_step below, or null where plans with steps of devices are refused.
  using NpuStepCheck = bool (PlanVerifier::*)(uint32_t index, const NpuStep& body);
  PlanVerifier(const Header& header, const Plan& plan, const Names* names, NpuStepCheck check_npu_step,
               Error* error)
      : header_(header),
        plan_(plan),
        names_(names),
        npu_step_(check_npu_step),
        error_(*error),
        banks_(plan.banks()),
        tensors_(plan.tensors()),
        num_banks_(count_of(banks_)),
        num_tensors_(count_of(tensors_)),
        num_steps_(count_of(plan.steps())),
        budget_(header.root_size) {}

  // In this order: each relies on those before it.
  [[nodiscard]] bool names();
  [[nodiscard]] bool banks();
  [[nodiscard]] bool tensors();
  [[nodiscard]] bool steps();
  [[nodiscard]] bool functions();

  uint32_t main_bank() const { return main_bank_; }
  // Tensors up to the last one that is not a constant.
  uint32_t num_leading_tensors() const { return num_leading_tensors_; }
  bool npu_step(uint32_t index, const NpuStep& body);

 private:
  bool bank(uint32_t index, const Bank& bank);
  bool device_bank(uint32_t index, const Bank& bank);
  void read_bank(uint32_t index);
  bool tensor(uint32_t index, const Tensor& tensor);
  bool tensor_shape(uint32_t index, const TensorRecord& tensor);
  bool tensor_place(uint32_t index, const TensorRecord& tensor, const TableFields& fields);
  bool tensor_quantization(uint32_t index, const TensorRecord& tensor, const Quantization& quantization);
  bool step(uint32_t index, const Step& step);
  bool kernel_step(uint32_t index, const KernelStep& body);
  bool kernel_params(uint32_t index, const TableFields& body);
  bool cascade(uint32_t index, const TableFields& body);
  bool cascade_tile(uint32_t index, const Tensor& tensor, uint32_t tile_index);
  // What a cascade has for its layers, one after another.
  struct CascadeTensors {
    const flatbuffers::Vector<uint32_t>* inputs;
    uint32_t next_input;  // where to look first for a layer's next input
    uint32_t output;      // of the layer
  };
  bool cascade_layer(uint32_t index, const TableFields& layer, uint32_t layer_index, CascadeTensors* tensors);
  // Indices of tensors; constants only where may_be_constant.
  bool step_tensors(uint32_t index, const flatbuffers::Vector<uint32_t>* tensors, const char* what,
                    bool may_be_constant);
  bool npu_place(uint32_t index, const NpuStep& body);
  bool npu_blob(uint32_t index, const NpuStep& body);
  bool npu_binds(uint32_t index, const NpuStep& body);
  bool npu_bind(uint32_t index, const NpuStep& body, uint32_t bind);
  bool npu_arrangement(uint32_t index, const NpuBind& bind, uint32_t tensor_index, uint32_t device_bank);
  bool npu_kept(uint32_t index, const NpuStep& body, const NpuBind& bind);
  bool npu_ranges(uint32_t index, const NpuStep& body);
  // The DEVICE bank that a bind's buffer is in, or num_banks_.
  uint32_t bank_of_bind(const NpuStep& body, const NpuBind& bind) const;
  bool npu_alternatives(uint32_t index, const NpuStep& body);
  bool function(uint32_t index, const Function& function);
  bool function_name(uint32_t index, const Function& function);
  bool function_scratch(const Function& function);
  bool function_states(const Function& function);
  bool function_self_checks(const Function& function);
  bool function_io(uint32_t index, const flatbuffers::Vector<uint32_t>* tensors, uint32_t limit,
                   const char* what);

  bool is_constant(uint32_t tensor) const;

  // Counts entries that are about to be visited.
  bool spend(uint32_t entries);
  // Begins the error; each returns it for the rest of the text, which ends in `false`.
  Error& corrupt();
  Error& corrupt_bank(uint32_t index);
  Error& corrupt_tensor(uint32_t index);
  Error& corrupt_step(uint32_t index);
  Error& corrupt_bind(uint32_t index, uint32_t bind);

  const Header& header_;
  const Plan& plan_;
  const Names* names_;
  const NpuStepCheck npu_step_;
  Error& error_;
  const flatbuffers::Vector<flatbuffers::Offset<Bank>>* const banks_;
  const flatbuffers::Vector<flatbuffers::Offset<Tensor>>* const tensors_;
  const uint32_t num_banks_, num_tensors_, num_steps_;
  uint64_t budget_;
  uint32_t main_bank_ = 0;
  uint32_t num_leading_tensors_ = 0;
  // The bank of the tensor that was looked at last, which most have in common with the one before.
  struct BankRecord {
    uint32_t index;
    uint32_t alignment;
    uint64_t size;
    bool is_constant;
  } last_bank_ = {};
  bool has_npu_steps_ = false;
};

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_VERIFY_H_
