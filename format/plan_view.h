// A plan file in memory: opened once, verified as a whole, read in place from then on.
// README.md ("What verification promises") states what open() checks and what is left to session init.
#ifndef QPLAN_FORMAT_PLAN_VIEW_H_
#define QPLAN_FORMAT_PLAN_VIEW_H_

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/container.h"
#include "format/memory_layout.h"
#include "format/names_generated.h"
#include "format/plan_generated.h"
#include "src/base/error.h"

namespace qplan::format {

// Limits of this reader. They bound the work per byte of an untrusted file and what a session stores; a later
// reader may raise them.
inline constexpr uint32_t kMaxBanks = 8;
inline constexpr uint32_t kMaxStepInputs = 4096;
inline constexpr uint32_t kMaxStepOutputs = 256;
inline constexpr uint32_t kMaxCascadeLayers = 4;
inline constexpr uint32_t kMaxCascadeInputs = 32;
inline constexpr uint32_t kMaxNpuBinds = 64;  // of a step: inputs, outputs and scratch together
inline constexpr uint32_t kMaxNpuTargets =
    32;  // positions in targets that NpuSteps and DEVICE banks may name
inline constexpr uint32_t kMaxFunctions = 64;
inline constexpr uint32_t kMaxFunctionInputs = 256;
inline constexpr uint32_t kMaxFunctionOutputs = 256;
inline constexpr uint32_t kMaxFunctionStates = 256;
inline constexpr uint32_t kMaxSelfChecks = 64;
inline constexpr uint32_t kMaxFunctionNameBytes = 127;
inline constexpr uint32_t kMaxAlignment = 4096;
// Kernels may index a tensor with int32.
inline constexpr int64_t kMaxElements = INT32_MAX;
inline constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 47;
inline constexpr uint64_t kMaxScratchBytes = uint64_t{1} << 35;
inline constexpr char kMainFunction[] = "main";

// Number of entries; an absent vector has none.
template <typename Vector>
inline uint32_t count_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

class PlanVerifier;  // verify.h

// Trivially copyable; refers to the file's bytes and owns nothing.
class PlanView {
 public:
  // bytes: the file, at a multiple of kFileAlignment; size: how much may be read, at least the file. On an
  // error the view is closed and *error states why: QPLAN_PLAN_CORRUPT, QPLAN_PLAN_VERSION, QPLAN_MISALIGNED.
  [[nodiscard]] qplan_status open(const void* bytes, size_t size, bool check_digest, Error* error);
  // The same without a digest and for plans without steps of devices, which are corrupt here: what calls only
  // this links neither SHA-256 nor the verification of such steps.
  [[nodiscard]] qplan_status open_for_cpu(const void* bytes, size_t size, Error* error);
  // The copies of constants of a plan that open_for_cpu has opened: without this call they are not verified,
  // and sessions do without them. open() has made it.
  [[nodiscard]] qplan_status open_copies(Error* error);
  // False for a view that was never opened, whatever its bytes are (with a chance of one in 2^32).
  bool is_open() const { return tag_ == kTag; }

  const uint8_t* bytes() const { return bytes_; }
  const Header& header() const { return *reinterpret_cast<const Header*>(bytes_); }
  const Plan& plan() const { return *plan_; }
  const Names* names() const { return names_; }  // null when stripped

  uint32_t num_banks() const { return plan_->banks()->size(); }
  uint32_t num_tensors() const { return count_of(plan_->tensors()); }
  uint32_t num_steps() const { return count_of(plan_->steps()); }
  uint32_t num_functions() const { return plan_->functions()->size(); }
  const Bank& bank(uint32_t i) const { return *plan_->banks()->Get(i); }
  const Tensor& tensor(uint32_t i) const { return *plan_->tensors()->Get(i); }
  // The kernel step; only for steps whose npu_step() is null.
  const KernelStep& step(uint32_t i) const {
    return *static_cast<const KernelStep*>(step_body(i, StepBody_KernelStep));
  }
  // Null for kernels' steps. Plans without the feature have no others.
  const NpuStep* npu_step(uint32_t i) const {
    return has_npu_steps() ? static_cast<const NpuStep*>(step_body(i, StepBody_NpuStep)) : nullptr;
  }
  bool has_npu_steps() const { return (header().required_features & kFeatureNpuRegions) != 0; }
  const Function& function(uint32_t i) const { return *plan_->functions()->Get(i); }

  // "" where stripped or unnamed.
  const char* tensor_name(uint32_t tensor) const;
  const char* step_name(uint32_t step) const;
  // Scale and zero point of a tensor between steps, which the names state for people; false where they do
  // not. Anybody may have written them.
  bool inner_quantization(uint32_t tensor, const float** scale, const int32_t** zero_point) const {
    if (names_ == nullptr || count_of(names_->scales()) != num_tensors() ||
        count_of(names_->zero_points()) != num_tensors()) {
      return false;
    }
    const float* found = names_->scales()->data() + tensor;
    if (!(*found > 0 && *found <= FLT_MAX)) return false;
    *scale = found;
    *zero_point = names_->zero_points()->data() + tensor;
    return true;
  }
  // Null when absent. name null: "main".
  const Function* find_function(const char* name) const;
  // Tensors up to the last one that is not a constant, or that is copied; all where these are more than a
  // small device has. Plans for small devices have their other constants after it, whose addresses no session
  // keeps.
  uint32_t num_leading_tensors() const {
    return num_leading_tensors_ == UINT16_MAX ? num_tensors() : num_leading_tensors_;
  }
  bool is_constant(uint32_t tensor_index) const { return is_constant_bank(tensor(tensor_index).bank()); }
  bool is_constant_bank(uint32_t i) const { return (constant_banks_ >> i & 1) != 0; }
  // Address of a constant in the file; null for other tensors.
  const void* constant_data(uint32_t tensor_index) const;
  // The DEVICE bank of a target that has this class, or num_banks() where there is no such bank.
  uint32_t device_bank(uint32_t target, MemoryClass memory_class) const;
  // The counts of records in a session of the function, and scratch and arena of bank 0, where pointers have
  // so many bytes.
  MemoryCounts memory_counts(const Function& function, uint64_t pointer_size) const {
    MemoryCounts counts = counts_without_args(function);
    if (keeps_args(pointer_size)) counts.kept_bytes = kept_args_bytes_of(function);
    return counts;
  }
  // Bytes that the function's states take on their own, each at a multiple of part_alignment.
  uint64_t state_bytes(const Function& function, uint64_t pointer_size) const;
  // Bit t: steps of the function run on target t.
  uint32_t npu_targets(const Function& function) const;
  // Index of the bank that shares memory 0 with the session: the first ARENA bank.
  uint32_t main_bank() const { return main_bank_; }

 private:
  static constexpr uint32_t kTag = 0x51504c4e;

  // Null: left out.
  struct Checks {
    bool (*digest_matches)(const Header& header, const uint8_t* bytes);
    bool (PlanVerifier::*npu_step)(uint32_t index, const NpuStep& body);
  };
  qplan_status open(const void* bytes, size_t size, const Checks& checks, Error* error);
  // Null where the step is another one.
  const void* step_body(uint32_t i, StepBody type) const;
  MemoryCounts counts_without_args(const Function& function) const;
  uint64_t kept_args_bytes_of(const Function& function) const;
  qplan_status open_header(const void* bytes, size_t size, Error* error);
  qplan_status open_tables(const Checks& checks, Error* error);

  const uint8_t* bytes_ = nullptr;
  const Plan* plan_ = nullptr;
  const Names* names_ = nullptr;
  uint8_t main_bank_ = 0;
  uint8_t constant_banks_ = 0;  // bit i: bank i is a CONSTANT one
  uint16_t num_leading_tensors_ = 0;
  uint32_t tag_ = 0;
};
static_assert(kMaxBanks <= 8, "bits of constant_banks_");

inline uint32_t element_bytes(const Tensor& tensor) { return tensor.type_bits() / 8u; }
inline uint32_t rank_of(const Tensor& tensor) { return count_of(tensor.shape()); }
// Null for rank 0.
inline const int64_t* extents_of(const Tensor& tensor) {
  return rank_of(tensor) == 0 ? nullptr : tensor.shape()->data();
}
// The bytes from the first element of an axis to the farthest one; false: they do not fit into 64 bits. The
// axis is divided into blocks of so many elements; 0: it is not.
[[nodiscard]] bool axis_reach(int64_t extent, uint64_t stride, uint32_t block, uint64_t block_stride,
                              uint64_t* reach);
// NpuBind::kept of outputs.
inline constexpr uint32_t kKeptToo = 1, kKeptAlone = 2;
// The bind of a verified region in which it keeps the tensor, an output of it; null: it does not.
const NpuBind* kept_bind(const NpuStep& region, uint32_t tensor);
// What State::initial is where there is no constant.
inline constexpr uint32_t kNoTensorIndex = UINT32_MAX;
inline bool same_range(const Tensor& a, const Tensor& b) {
  return a.bank() == b.bank() && a.offset() == b.offset() && a.size() == b.size();
}
// The tensors have been verified, so offset + size does not wrap.
inline bool ranges_overlap(const Tensor& a, const Tensor& b) {
  return a.bank() == b.bank() && a.offset() < b.offset() + b.size() && b.offset() < a.offset() + a.size();
}

// Fields of tables of a verified flatbuffer, for code that reads many of one table. Generated accessors find
// the table's list of fields anew for each of them, in calls where code is small; here it is found once, and
// a look-up is a few instructions in line.
class TableFields {
 public:
  // table: what generated code names by a type of its own (Tensor, Conv2dParams). slot: its VT_ constants.
  __attribute__((always_inline)) explicit TableFields(const void* table)
      : table_(static_cast<const uint8_t*>(table)),
        slots_(table_ - load<int32_t>(table_)),
        slots_bytes_(load<uint16_t>(slots_)) {}

  bool has(uint32_t slot) const { return offset_of(slot) != 0; }

  // 0 where the table has no such field: for fields without a default of their own.
  template <typename Scalar>
  __attribute__((always_inline)) Scalar scalar(uint32_t slot) const {
    const uint32_t offset = offset_of(slot);
    return offset == 0 ? Scalar{} : load<Scalar>(table_ + offset);
  }

  // A table or a member of a union, and a vector: null where the table has no such field.
  __attribute__((always_inline)) const void* table(uint32_t slot) const {
    const uint32_t offset = offset_of(slot);
    if (offset == 0) return nullptr;
    const uint8_t* from = table_ + offset;
    return from + load<uint32_t>(from);
  }
  template <typename Entry>
  __attribute__((always_inline)) const flatbuffers::Vector<Entry>* vector(uint32_t slot) const {
    return static_cast<const flatbuffers::Vector<Entry>*>(table(slot));
  }

  // `count` fields of 32 bits from `slot` on, one after another: to[0], to[1], ...; 0 for those that the
  // table does not have. to: words of 32 bits.
  void words(uint32_t slot, uint32_t count, void* to) const {
    auto* word = static_cast<uint8_t*>(to);
    for (uint8_t* const end = word + 4 * count; word < end; slot += 2, word += 4) {
      const auto value = scalar<uint32_t>(slot);
      memcpy(word, &value, sizeof(value));
    }
  }

 private:
  template <typename Scalar>
  __attribute__((always_inline)) static Scalar load(const uint8_t* from) {
    Scalar value;
    memcpy(&value, __builtin_assume_aligned(from, alignof(Scalar)), sizeof(value));
    return value;
  }
  __attribute__((always_inline)) uint32_t offset_of(uint32_t slot) const {
    return slot < slots_bytes_ ? load<uint16_t>(slots_ + slot) : uint32_t{0};
  }

  const uint8_t* table_;
  const uint8_t* slots_;  // where each field is in the table
  uint32_t slots_bytes_;
};

// What a Tensor says of its bytes, read once.
struct TensorRecord {
  const int64_t* extents;  // outermost first; null where the rank is 0
  uint32_t rank;
  uint32_t bank;
  uint64_t offset;  // bytes, in the bank
  uint64_t size;    // bytes
  uint8_t type_code;
  uint8_t type_bits;

  explicit TensorRecord(const TableFields& tensor)
      : extents(nullptr),
        rank(0),
        bank(tensor.scalar<uint32_t>(Tensor::VT_BANK)),
        offset(tensor.scalar<uint64_t>(Tensor::VT_OFFSET)),
        size(tensor.scalar<uint64_t>(Tensor::VT_SIZE)),
        type_code(tensor.scalar<uint8_t>(Tensor::VT_TYPE_CODE)),
        type_bits(tensor.scalar<uint8_t>(Tensor::VT_TYPE_BITS)) {
    const auto* shape = tensor.vector<int64_t>(Tensor::VT_SHAPE);
    if (shape == nullptr || shape->size() == 0) return;
    extents = shape->data();
    rank = shape->size();
  }
};

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_PLAN_VIEW_H_
