#include "src/packer/ir/types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/error.h"

namespace qplan::ir {
namespace {

template <typename T>
T get(const AttrValue* value, std::string_view name, const T& fallback) {
  if (value == nullptr) return fallback;
  if (const T* typed = std::get_if<T>(value)) return *typed;
  throw PackError(QPLAN_INTERNAL, "attribute '" + std::string(name) + "' has an unexpected kind");
}

}  // namespace

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [known, value] : entries_) {
    if (known == name) return &value;
  }
  return nullptr;
}

void Attrs::set(std::string_view name, AttrValue value) {
  for (auto& [known, old] : entries_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::string(name), std::move(value));
}

void Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
}

int64_t Attrs::get_int(std::string_view name, int64_t fallback) const {
  return get(find(name), name, fallback);
}

double Attrs::get_double(std::string_view name, double fallback) const {
  const AttrValue* value = find(name);
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) {
    return static_cast<double>(std::get<int64_t>(*value));
  }
  return get(value, name, fallback);
}

bool Attrs::get_bool(std::string_view name, bool fallback) const { return get(find(name), name, fallback); }

std::string Attrs::get_string(std::string_view name, std::string_view fallback) const {
  return get(find(name), name, std::string(fallback));
}

Ints Attrs::get_ints(std::string_view name, const Ints& fallback) const {
  return get(find(name), name, fallback);
}

std::vector<Ints> Attrs::get_int_lists(std::string_view name, const std::vector<Ints>& fallback) const {
  return get(find(name), name, fallback);
}

bool Attrs::operator==(const Attrs& other) const {
  if (size() != other.size()) return false;
  return std::all_of(begin(), end(), [&](const auto& entry) {
    const AttrValue* value = other.find(entry.first);
    return value != nullptr && *value == entry.second;
  });
}

namespace {

constexpr std::array<std::pair<std::string_view, DType>, 14> kNames = {{
    {"int4", kInt4},
    {"int8", kInt8},
    {"uint8", kUint8},
    {"int16", kInt16},
    {"uint16", {kDLUInt, 16, 1}},
    {"int32", kInt32},
    {"uint32", {kDLUInt, 32, 1}},
    {"int64", kInt64},
    {"uint64", {kDLUInt, 64, 1}},
    {"float16", {kDLFloat, 16, 1}},
    {"float32", kFloat32},
    {"float64", {kDLFloat, 64, 1}},
    {"bool", kBool},
    {"uint4", {kDLUInt, 4, 1}},
}};

}  // namespace

int64_t DType::min() const {
  if (!is_signed_int()) return 0;
  return bits >= 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
}
int64_t DType::max() const {
  const int value_bits = is_signed_int() ? bits - 1 : bits;
  return value_bits >= 63 ? INT64_MAX : (int64_t{1} << value_bits) - 1;
}

std::string to_string(DType dtype) {
  for (const auto& [name, known] : kNames) {
    if (known == dtype) return std::string(name);
  }
  return "dtype(" + std::to_string(dtype.code) + ", " + std::to_string(dtype.bits) + ", " +
         std::to_string(dtype.lanes) + ")";
}

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

int64_t TensorType::num_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    if (extent <= 0) return 0;
  }
  for (const int64_t extent : shape) {
    if (!checked_mul(n, extent, &n)) return INT64_MAX;
  }
  return n;
}

int64_t TensorType::size_bytes() const {
  const int64_t n = num_elements();
  if (dtype == kBool) return n;
  if (dtype.bits < 8) return n / 8 * dtype.bits + (n % 8 * dtype.bits + 7) / 8;
  int64_t bytes = 0;
  return checked_mul(n, int64_t{dtype.bits} / 8, &bytes) ? bytes : INT64_MAX;
}

std::string to_string(const TensorType& type) {
  if (type.shape.empty()) return to_string(type.dtype);
  std::string text = "Tensor[(";
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(type.shape[i]);
  }
  return text + "), " + to_string(type.dtype) + "]";
}

std::string type_error(const TensorType& type) {
  if (type.shape.size() > kMaxRank) {
    return "rank " + std::to_string(type.shape.size()) + " is larger than " + std::to_string(kMaxRank);
  }
  if (!dtype_from_string(to_string(type.dtype))) return to_string(type.dtype) + " is not a dtype of the IR";
  for (const int64_t extent : type.shape) {
    if (extent < 1) {
      return "extent " + std::to_string(extent) + " of " + to_string(type) + " must be at least 1";
    }
  }
  if (type.size_bytes() > kMaxTensorBytes) {
    return to_string(type) + " is larger than " + std::to_string(kMaxTensorBytes) + " bytes";
  }
  return "";
}

std::vector<uint8_t> widened_4_bits(std::span<const uint8_t> packed, int64_t count, bool is_signed) {
  std::vector<uint8_t> wide(static_cast<size_t>(count));
  for (size_t i = 0; i < wide.size(); ++i) {
    const int half = packed[i / 2] >> (i % 2 * 4) & 15;
    wide[i] = static_cast<uint8_t>(is_signed && half > 7 ? half - 16 : half);
  }
  return wide;
}

}  // namespace qplan::ir
