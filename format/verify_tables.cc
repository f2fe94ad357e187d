#include <string.h>

#include "format/verify.h"

namespace qplan::format {
namespace {

constexpr const char* kFields[] = {
    "vCvDvEvGvH8vM",          // Plan
    "SSsssssdd",              // Names
    "ss",                     // Target
    "148841",                 // Bank
    "11h48844tF",             // Tensor
    "dd4",                    // Quantization
    "1uN",                    // Step
    "sdd448dd1vIvJd",         // Function
    "4441",                   // State
    "4d",                     // SelfCheck
    "41488h88114841",         // NpuBind
    "shs",                    // CustomOption
    "44888",                  // ConstantCopy
    "2dd1uP848tS1",           // KernelStep
    "444ddvK448881",          // NpuStep
    "124444444444444441dd1",  // Conv2dParams
    "12444441dd1",            // FullyConnectedParams
    "14444444444441",         // Pool2dParams
    "1444444444444444444",    // AddParams
    "14444444444",            // MulParams
    "1444444",                // MeanParams
    "144444",                 // SoftmaxParams
    "1",                      // Lut8Params
    "144",                    // QuantizeParams
    "44",                     // DequantizeParams
    "1444444441dd",           // RequantizeParams
    "d4",                     // PadParams
    "d",                      // TransposeParams
    "4",                      // ConcatParams
    "4",                      // SplitParams
    "111",                    // ResizeBilinearParams
    "4",                      // ArgMaxParams
    "1",                      // NoParams
    "vNvE11",                 // CascadeParams
    "444444444441",           // FloatWindowParams
    "144",                    // FloatBinaryParams
    "144",                    // FloatUnaryParams
    "4411",                   // FloatReduceParams
    "4144",                   // DynamicQuantizeParams
    "4144",                   // DynamicDequantizeParams
    "dd4",                    // GatherParams
    "4444444",                // PreluParams
    "144",                    // Lut16Params
    "4",                      // L2NormalizationParams
    "4444444114",             // BatchMatmulParams
    "112dddd44444",           // LstmParams
    "111142",                 // FloatLstmParams
    "444444",                 // SvdfParams
    "444",                    // Softmax16Params
    "1",                      // IntBinaryParams
    "44",                     // GatherNdParams
    "svLdd88",                // CustomParams
    "1",                      // CompareParams
    "1",                      // FloatBatchMatmulParams
    "411",                    // CumulativeSumParams
    "11",                     // FloatGruParams
    "44444",                  // LogSoftmaxParams
    "4444444",                // DivParams
    "1444",                   // WeightOnlyDenseParams
};
static_assert(sizeof(kFields) / sizeof(kFields[0]) == kNumTableKinds, "one row for each");

// Which letters of the lists are references, the first one at bit 0: few of a table's fields.
struct References {
  uint32_t of[kNumTableKinds] = {};
};
constexpr References find_references() {
  References references;
  for (uint32_t kind = 0; kind < kNumTableKinds; ++kind) {
    const char* const fields = kFields[kind];
    for (uint32_t at = 0; fields[at] != '\0'; ++at) {
      if (fields[at] <= '8') continue;
      references.of[kind] |= uint32_t{1} << at;
      if (fields[at] > 's') ++at;
    }
  }
  return references;
}
constexpr References kReferences = find_references();

constexpr uint32_t kMaxBytes = INT32_MAX;  // FlatBuffers' own limit: offsets are signed

class TableVerifier {
 public:
  TableVerifier(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // Where the reference at `from` leads; 0, where no table begins, if it leads nowhere.
  uint32_t target_of(uint32_t from) const { return is_scalar(from, 4) ? referred(from) : 0; }
  // The same of a reference within the bytes.
  uint32_t referred(uint32_t from) const {
    const auto offset = read<uint32_t>(from);
    return offset != 0 && offset < size_ - from ? from + offset : 0;
  }

  bool table(uint32_t at, uint32_t kind) {
    // A reference takes four bytes and leads to at most three tables.
    if (depth_ == kMaxTableDepth || ++num_tables_ > size_ || !is_scalar(at, 4)) return false;
    const uint32_t vtable = at - read<uint32_t>(at);  // the difference is signed
    // Lists are at even places. What is known of a list at an odd one, below, is known of none.
    if (vtable % 2 != 0) return false;
    const KnownFields* known = known_fields(at, vtable, kind);
    if (known == nullptr) return false;
    const char* const fields = kFields[kind];
    uint32_t first = vtable + 4;  // where the list would begin if each field were one letter
    const uint32_t end = first + 2 * known->slots;
    ++depth_;
    for (uint32_t left = kReferences.of[kind]; left != 0; left &= left - 1) {
      const auto letter = static_cast<uint32_t>(__builtin_ctz(left));
      const uint32_t slot = first + 2 * letter;
      if (slot >= end) break;
      const char what = fields[letter];
      uint32_t member = 0;
      if (what > 's') {
        member = static_cast<uint8_t>(fields[letter + 1]) - uint32_t{'A'};
        first -= 2;
      }
      const uint32_t offset = read<uint16_t>(slot);
      if (offset == 0) continue;
      const uint32_t target = referred(at + offset);
      if (target == 0 || !value(target, what, member, what == 'u' ? type_at(at, vtable, slot - 2) : 0)) {
        return false;
      }
    }
    --depth_;
    return true;
  }

 private:
  // A list of fields that has been found to be one, for tables of a kind at addresses of one remainder
  // modulo 8: where they have `extent` bytes, their fields are within the buffer and aligned. Tables of a
  // kind share few lists, so that most need no look at each field.
  struct KnownFields {
    uint32_t vtable = 1;   // which no table has: table() refuses odd places
    uint32_t extent : 18;  // at most 2^16 + 8
    uint32_t key : 9;      // kind, and the remainder's bit
   uint32_t slots : 5;     // up to the last reference
  };
  static_assert(kNumTableKinds <= 256, "bits of a kind");

  static uint32_t key_of(uint32_t at, uint32_t kind) { return kind * 2 + at / 4 % 2; }

  // Where the table has a list of fields, whose values and references are within the buffer and aligned: what
  // is known of it. Null elsewhere.
  __attribute__((always_inline)) const KnownFields* known_fields(uint32_t at, uint32_t vtable,
                                                                 uint32_t kind) {
    KnownFields& known = known_[(vtable / 4 ^ vtable / 64 ^ at % 8) % kNumKnown];
    if (known.vtable != vtable || known.key != key_of(at, kind)) {
      return learn_fields(at, vtable, kind, &known) ? &known : nullptr;
    }
    return at + known.extent <= size_ ? &known : nullptr;
  }

  __attribute__((noinline)) bool learn_fields(uint32_t at, uint32_t vtable, uint32_t kind,
                                              KnownFields* known) {
    if (!is_scalar(vtable, 2)) return false;
    const uint32_t vtable_bytes = read<uint16_t>(vtable);
    if (vtable_bytes % 2 != 0 || !is_range(vtable, vtable_bytes)) return false;
    uint32_t slot = 4, extent = 0, end = 4;
    for (const char* field = kFields[kind]; slot < vtable_bytes && *field != '\0'; ++field) {
      const bool is_reference = *field > '8';
      const uint32_t bytes = is_reference ? 4 : static_cast<uint32_t>(*field - '0');
      if (*field > 's') ++field;
      const uint32_t offset = read<uint16_t>(vtable + slot);
      slot += 2;
      if (offset == 0) continue;
      if (!is_scalar(at + offset, bytes)) return false;
      if (offset + bytes > extent) extent = offset + bytes;
      if (is_reference) end = slot;
    }
    if (end > 4 + 2 * 31) return false;  // no schema has so many
    known->vtable = vtable;
    known->extent = extent & 0x3ffff;
    known->key = key_of(at, kind) & 0x1ff;
    known->slots = ((end - 4) / 2) & 31;
    return true;
  }

  // The value of the field of one byte before a union, which says what the union is.
  uint32_t type_at(uint32_t at, uint32_t vtable, uint32_t slot) const {
    const uint32_t offset = slot < vtable + 4 ? 0 : read<uint16_t>(slot);
    return offset == 0 ? 0 : bytes_[at + offset];
  }

  bool value(uint32_t at, char what, uint32_t member, uint32_t type) {
    if (what == 't') return table(at, member);
    if (what == 'u') {
      // A member that only a newer schema has is nobody's business.
      const uint32_t count = member == kKernelStepTable ? uint32_t{StepBody_MAX} : uint32_t{KernelParams_MAX};
      return type - 1 >= count || table(at, member + type - 1);
    }
    if (what == 's') return string(at);
    const bool has_references = what == 'v' || what == 'S';
    return vector(at, has_references ? 4 : static_cast<uint32_t>(what - 'a') + 1) &&
           (!has_references || references(at, what, member));
  }

  __attribute__((always_inline)) bool vector(uint32_t at, uint32_t entry_bytes) const {
    return is_scalar(at, 4) && read<uint32_t>(at) <= (size_ - at - 4) / entry_bytes;
  }

  bool string(uint32_t at) const {
    if (!vector(at, 1)) return false;
    const uint32_t end = at + 4 + read<uint32_t>(at);
    return end < size_ && bytes_[end] == 0;
  }

  bool references(uint32_t at, char what, uint32_t member) {
    for (uint32_t count = read<uint32_t>(at); count > 0; --count) {
      at += 4;
      const auto offset = read<uint32_t>(at);
      if (offset > kMaxBytes || !(what == 'v' ? table(at + offset, member) : string(at + offset)))
        return false;
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
  static constexpr uint32_t kNumKnown = 16;
  KnownFields known_[kNumKnown] = {};
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
