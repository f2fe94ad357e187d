// Fields of tables of a verified flatbuffer, for code that reads many of one table. Generated accessors find
// the table's list of fields anew for each of them, in calls where code is small; here it is found once, and
// a look-up is a few instructions in line.
#ifndef QPLAN_FORMAT_TABLE_FIELDS_H_
#define QPLAN_FORMAT_TABLE_FIELDS_H_

#include <stdint.h>
#include <string.h>

#include "format/plan_generated.h"

namespace qplan::format {

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

#endif  // QPLAN_FORMAT_TABLE_FIELDS_H_
