#include "format/verify_tables.h"

#include <string.h>

namespace qplan::format {
namespace {

constexpr const char* kFields[] = {
    "vCvDvEvGvH8",           // Plan
    "SSsssssdd",             // Names
    "ss",                    // Target
    "14884",                 // Bank
    "11h48844tF",            // Tensor
    "dd4",                   // Quantization
    "1uM",                   // Step
    "sdd448dd1vIvJd",        // Function
    "4441",                  // State
    "4d",                    // SelfCheck
    "41488h8811",            // NpuBind
    "shs",                   // CustomOption
    "2dd1uO848tR1",          // KernelStep
    "444ddvK44888",          // NpuStep
    "124444444444444441dd",  // Conv2dParams
    "12444441dd",            // FullyConnectedParams
    "14444444444441",        // Pool2dParams
    "1444444444444444444",   // AddParams
    "14444444444",           // MulParams
    "1444444",               // MeanParams
    "144444",                // SoftmaxParams
    "1",                     // Lut8Params
    "144",                   // QuantizeParams
    "44",                    // DequantizeParams
    "1444444441dd",          // RequantizeParams
    "d4",                    // PadParams
    "d",                     // TransposeParams
    "4",                     // ConcatParams
    "4",                     // SplitParams
    "111",                   // ResizeBilinearParams
    "4",                     // ArgMaxParams
    "1",                     // NoParams
    "vMvE1",                 // CascadeParams
    "444444444441",          // FloatWindowParams
    "144",                   // FloatBinaryParams
    "144",                   // FloatUnaryParams
    "4411",                  // FloatReduceParams
    "4144",                  // DynamicQuantizeParams
    "4144",                  // DynamicDequantizeParams
    "dd4",                   // GatherParams
    "4444444",               // PreluParams
    "144",                   // Lut16Params
    "4",                     // L2NormalizationParams
    "4444444114",            // BatchMatmulParams
    "112dddd44444",          // LstmParams
    "111142",                // FloatLstmParams
    "444444",                // SvdfParams
    "444",                   // Softmax16Params
    "1",                     // IntBinaryParams
    "44",                    // GatherNdParams
    "svLdd88",               // CustomParams
    "1",                     // CompareParams
    "1",                     // FloatBatchMatmulParams
    "411",                   // CumulativeSumParams
    "11",                    // FloatGruParams
    "44444",                 // LogSoftmaxParams
    "4444444",               // DivParams
};
static_assert(sizeof(kFields) / sizeof(kFields[0]) == kNumTableKinds, "one row for each");

constexpr uint32_t kMaxBytes = INT32_MAX;  // FlatBuffers' own limit: offsets are signed

class TableVerifier {
 public:
  TableVerifier(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // Where the reference at `from` leads; 0, where no table begins, if it leads nowhere.
  uint32_t target_of(uint32_t from) const {
    if (!is_scalar(from, 4)) return 0;
    const auto offset = read<uint32_t>(from);
    return offset - 1 < kMaxBytes && is_range(from + offset, 1) ? from + offset : 0;
  }

  bool table(uint32_t at, uint32_t kind) {
    // A reference takes four bytes and leads to at most three tables.
    if (depth_ == kMaxTableDepth || ++num_tables_ > size_ || !is_scalar(at, 4)) return false;
    const uint32_t vtable = at - read<uint32_t>(at);  // the difference is signed
    if (!is_scalar(vtable, 2)) return false;
    const uint32_t vtable_bytes = read<uint16_t>(vtable);
    if (vtable_bytes % 2 != 0 || !is_range(vtable, vtable_bytes)) return false;
    ++depth_;
    uint32_t type = 0;  // the value of the field before this one, where it is a byte
    uint32_t slot = 4;
    for (const char* field = kFields[kind]; *field != '\0'; ++field, slot += 2) {
      const char what = *field;
      const uint32_t member = what > 's' ? static_cast<uint8_t>(*++field) - uint32_t{'A'} : 0;
      const uint32_t offset = slot < vtable_bytes ? read<uint16_t>(vtable + slot) : 0;
      if (what <= '8') {
        if (offset != 0 && !is_scalar(at + offset, static_cast<uint32_t>(what - '0'))) return false;
        type = offset == 0 ? 0 : bytes_[at + offset];
      } else if (offset != 0) {
        const uint32_t target = target_of(at + offset);
        if (target == 0 || !value(target, what, member, type)) return false;
      }
    }
    --depth_;
    return true;
  }

 private:
  bool value(uint32_t at, char what, uint32_t member, uint32_t type) {
    if (what == 't') return table(at, member);
    if (what != 'u') return vector(at, what, member);
    // A member that only a newer schema has is nobody's business.
    const uint32_t count = member == kKernelStepTable ? uint32_t{StepBody_MAX} : uint32_t{KernelParams_MAX};
    return type - 1 >= count || table(at, member + type - 1);
  }

  bool vector(uint32_t at, char what, uint32_t member) {
    const bool has_references = what == 'v' || what == 'S';
    const uint32_t entry_bytes = has_references ? 4 : what == 's' ? 1 : static_cast<uint32_t>(what - 'a') + 1;
    if (!is_scalar(at, 4)) return false;
    const auto count = read<uint32_t>(at);
    at += 4;
    if (count >= kMaxBytes / entry_bytes || !is_range(at - 4, 4 + count * entry_bytes)) return false;
    if (what == 's') return is_range(at + count, 1) && bytes_[at + count] == 0;
    for (uint32_t i = 0; has_references && i < count; ++i, at += 4) {
      const auto offset = read<uint32_t>(at);
      if (offset > kMaxBytes) return false;
      if (what == 'v' ? !table(at + offset, member) : !vector(at + offset, 's', 0)) return false;
    }
    return true;
  }

  __attribute__((always_inline)) bool is_range(uint32_t at, uint32_t bytes) const {
    return bytes < size_ && at <= size_ - bytes;
  }
  // bytes: a power of two. Inlined, as it is asked for each field: small code would call it.
  __attribute__((always_inline)) bool is_scalar(uint32_t at, uint32_t bytes) const {
    return (at & (bytes - 1)) == 0 && is_range(at, bytes);
  }
  template <typename Integer>
  Integer read(uint32_t at) const {
    Integer value;
    memcpy(&value, bytes_ + at, sizeof(value));
    return value;
  }

  const uint8_t* const bytes_;
  const uint32_t size_;
  uint32_t depth_ = 0;
  uint32_t num_tables_ = 0;
};

}  // namespace

const char* fields_of(TableKind table) { return kFields[table]; }

const void* verified_root(const uint8_t* bytes, uint64_t size, TableKind root) {
  if (size < 8 || size >= kMaxBytes) return nullptr;
  TableVerifier verifier(bytes, static_cast<uint32_t>(size));
  const uint32_t at = verifier.target_of(0);
  return at != 0 && verifier.table(at, root) ? bytes + at : nullptr;
}

}  // namespace qplan::format
