
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

// TensorProto.DataType by number; the file format fixes them. The IR knows those with a dtype.
struct TypeRow {
  const char* name;
  std::optional<ir::DType> dtype;
};
constexpr std::array<TypeRow, 27> kTypes = {{
    {"an undefined type", {}},
    {"float32", ir::kFloat32},
    {"uint8", ir::kUint8},
    {"int8", ir::kInt8},
    {"uint16", ir::kUint16},
    {"int16", ir::kInt16},
    {"int32", ir::kInt32},
    {"int64", ir::kInt64},
    {"string", {}},
    {"bool", ir::kBool},
    {"float16", ir::DType{kDLFloat, 16, 1}},
    {"float64", ir::kFloat64},
    {"uint32", ir::kUint32},
    {"uint64", ir::kUint64},
    {"complex64", {}},
    {"complex128", {}},
    {"bfloat16", {}},
    {"float8e4m3fn", {}},
    {"float8e4m3fnuz", {}},
    {"float8e5m2", {}},
    {"float8e5m2fnuz", {}},
    {"uint4", ir::DType{kDLUInt, 4, 1}},
    {"int4", ir::kInt4},
    {"float4e2m1", {}},
    {"float8e8m0", {}},
    {"uint2", {}},
    {"int2", {}},
}};

const TypeRow* find_type(int32_t data_type) {
  const auto index = static_cast<size_t>(data_type);
  return data_type >= 0 && index < kTypes.size() ? &kTypes[index] : nullptr;
}

// Number of elements; extents of 0 are allowed.
int64_t count_elements(const Tensor& tensor, ir::DType dtype) {
  if (tensor.dims.size() > ir::kMaxRank) {
    invalid(cat("rank ", tensor.dims.size(), " is larger than ", ir::kMaxRank));
  }
  const int64_t count = check_extents(tensor.dims);
  if (std::ranges::find(tensor.dims, 0) != tensor.dims.end()) return 0;
  const std::string error = ir::type_error({dtype, tensor.dims});
  if (!error.empty()) invalid(error);
  return count;
}

[[noreturn]] void wrong_size(const Tensor& tensor, size_t found, const char* unit, int64_t expected) {
  invalid(cat("it has ", found, " ", unit, ", expected ", expected, " for ", type_name(tensor.data_type), " ",
              to_text(tensor.dims)));
}

template <typename To, typename From>
std::vector<uint8_t> convert(const Tensor& tensor, std::span<const From> from, int64_t count) {
  if (static_cast<int64_t>(from.size()) != count) wrong_size(tensor, from.size(), "values", count);
  std::vector<uint8_t> bytes(from.size() * sizeof(To));
  for (size_t i = 0; i < from.size(); ++i) {
    if constexpr (std::is_integral_v<To> && sizeof(To) < sizeof(From)) {
      if (!std::in_range<To>(from[i])) {
        invalid(cat("its value ", from[i], " is outside of ", type_name(tensor.data_type)));
      }
    }
    const To value = static_cast<To>(from[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

// From the typed fields: which one holds which type, the file format says.
std::vector<uint8_t> typed_bytes(const Tensor& tensor, ir::DType dtype, int64_t count) {
  if (dtype == ir::kFloat32) return convert<float>(tensor, tensor.floats, count);
  if (dtype == ir::kFloat64) return convert<double>(tensor, tensor.doubles, count);
  if (dtype == ir::kInt64) return convert<int64_t>(tensor, tensor.int64s, count);
  if (dtype == ir::kUint64) return convert<uint64_t>(tensor, tensor.uint64s, count);
  if (dtype == ir::kUint32) return convert<uint32_t>(tensor, tensor.uint64s, count);
  if (dtype == ir::kInt32) return convert<int32_t>(tensor, tensor.int32s, count);
  if (dtype == ir::kInt16) return convert<int16_t>(tensor, tensor.int32s, count);
  if (dtype == ir::kInt8) return convert<int8_t>(tensor, tensor.int32s, count);
  if (dtype == ir::kUint8 || dtype == ir::kBool) return convert<uint8_t>(tensor, tensor.int32s, count);
  if (dtype.bits == 4) return convert<uint8_t>(tensor, tensor.int32s, (count + 1) / 2);  // two to a number
  if (dtype.bits == 16) return convert<uint16_t>(tensor, tensor.int32s, count);  // uint16, bits of float16
  throw Unsupported{type_name(tensor.data_type) + " constants that are not raw bytes"};
}

}  // namespace

int64_t check_extents(const std::vector<int64_t>& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) {
    if (extent < 0) invalid(cat("extent ", extent, " of shape ", to_text(extents), " is negative"));
    if (extent != 0 && !checked_mul(count, extent, &count)) {
      invalid(cat("shape ", to_text(extents), " has too many elements"));
    }
  }
  return count;
}

std::optional<ir::DType> ir_dtype(int32_t data_type) {
  const TypeRow* row = find_type(data_type);
  return row == nullptr ? std::nullopt : row->dtype;
}

std::string type_name(int32_t data_type) {
  const TypeRow* row = find_type(data_type);
  return row == nullptr ? "type " + std::to_string(data_type) : row->name;
}

ir::ConstantRef read_constant(const Tensor& tensor) {
  if (tensor.is_external) {
    throw Unsupported{"data in another file, " + in_quotes(tensor.external_path) +
                      " (save the model in one file, with its data inside)"};
  }
  if (tensor.is_segment) throw Unsupported{"a tensor in segments"};
  const std::optional<ir::DType> dtype = ir_dtype(tensor.data_type);
  if (!dtype) throw Unsupported{"a constant of " + type_name(tensor.data_type)};
  const int64_t count = count_elements(tensor, *dtype);
  const ir::TensorType type{*dtype, tensor.dims};
  std::vector<uint8_t> bytes;
  if (tensor.has_raw) {
    if (static_cast<int64_t>(tensor.raw.size()) != type.size_bytes()) {
      wrong_size(tensor, tensor.raw.size(), "bytes", type.size_bytes());
    }
    bytes.assign(tensor.raw.begin(), tensor.raw.end());
  } else {
    bytes = typed_bytes(tensor, *dtype, count);
  }
  if (*dtype == ir::kBool) {
    for (uint8_t& byte : bytes) byte = byte != 0 ? 1 : 0;
  }
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

}  // namespace qplan::onnx
