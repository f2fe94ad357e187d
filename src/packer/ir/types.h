// Attributes of a node or function: a small map from name to value, in insertion order.
#ifndef QPLAN_SRC_PACKER_IR_TYPES_H_
#define QPLAN_SRC_PACKER_IR_TYPES_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace qplan::ir {

using Ints = std::vector<int64_t>;
using AttrValue = std::variant<bool, int64_t, double, std::string, Ints, std::vector<Ints>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries) : entries_(entries) {}

  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  // The value, or the fallback where it is absent; PackError (QPLAN_INTERNAL) where it has another kind.
  int64_t get_int(std::string_view name, int64_t fallback) const;
  double get_double(std::string_view name, double fallback) const;
  bool get_bool(std::string_view name, bool fallback) const;
  std::string get_string(std::string_view name, std::string_view fallback) const;
  Ints get_ints(std::string_view name, const Ints& fallback) const;
  std::vector<Ints> get_int_lists(std::string_view name, const std::vector<Ints>& fallback) const;

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Attrs& other) const;  // regardless of order

 private:
  std::vector<std::pair<std::string, AttrValue>> entries_;
};

// Types of the IR: dtypes as DLPack writes them, static shapes.

struct DType {
  uint8_t code = kDLInt;  // DLDataTypeCode
  uint8_t bits = 8;
  uint16_t lanes = 1;
  bool operator==(const DType&) const = default;

  bool is_float() const { return code == kDLFloat; }
  bool is_signed_int() const { return code == kDLInt; }
  bool is_unsigned_int() const { return code == kDLUInt; }
  // Range of an integer dtype of at most 32 bits.
  int64_t min() const;
  int64_t max() const;
};

inline constexpr DType kInt4{kDLInt, 4, 1};
inline constexpr DType kInt8{kDLInt, 8, 1};
inline constexpr DType kUint8{kDLUInt, 8, 1};
inline constexpr DType kInt16{kDLInt, 16, 1};
inline constexpr DType kInt32{kDLInt, 32, 1};
inline constexpr DType kInt64{kDLInt, 64, 1};
inline constexpr DType kUint16{kDLUInt, 16, 1};
inline constexpr DType kUint32{kDLUInt, 32, 1};
inline constexpr DType kUint64{kDLUInt, 64, 1};
inline constexpr DType kFloat16{kDLFloat, 16, 1};  // of constants alone; nothing computes with it
inline constexpr DType kFloat32{kDLFloat, 32, 1};
inline constexpr DType kFloat64{kDLFloat, 64, 1};
inline constexpr DType kBool{kDLUInt, 1, 1};

std::string to_string(DType dtype);  // "int8", "float32", "bool"
std::optional<DType> dtype_from_string(std::string_view name);

using Shape = std::vector<int64_t>;

struct TensorType {
  DType dtype;
  Shape shape;  // [] is a scalar
  bool operator==(const TensorType&) const = default;

  // 0 when an extent is not positive, INT64_MAX where the product does not fit.
  int64_t num_elements() const;
  // Packed; int4 takes one byte for two elements, bool one byte each. INT64_MAX where it does not fit.
  int64_t size_bytes() const;
};

std::string to_string(const TensorType& type);  // "Tensor[(1, 3), int8]", scalars "int32"

// How large a tensor of a model may be. Models are untrusted: their extents reach arithmetic only after this
// check.
inline constexpr size_t kMaxRank = 8;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

// Empty when the type is one that a value may have: rank at most kMaxRank, every extent at least 1, at most
// kMaxTensorBytes, a dtype with a name. Otherwise what is wrong: "extent 0 of Tensor[(1, 0), int8] must be at
// least 1".
std::string type_error(const TensorType& type);

// int8 or uint8 elements of 4-bit ones, two to a byte, the first in the lower half. What 4-bit weights
// compute is what the same numbers of 8 bits do: importers widen them.
std::vector<uint8_t> widened_4_bits(std::span<const uint8_t> packed, int64_t count, bool is_signed);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_TYPES_H_
