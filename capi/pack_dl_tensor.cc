#include "capi/pack_dl_tensor.h"

#include <cstring>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/limits.h"

namespace qplan {
namespace {

// DLPack's code for booleans of a byte each; older dlpack.h lack its name.
constexpr uint8_t kDLBoolCode = 6;

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// The elements in row-major order, whatever the strides.
std::vector<uint8_t> packed_bytes(const std::string& what, const DLTensor& tensor,
                                  const ir::TensorType& type) {
  const auto* data = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  const auto size = static_cast<size_t>(type.size_bytes());
  if (tensor.strides == nullptr) return {data, data + size};
  if (type.dtype.bits < 8 && type.dtype != ir::kBool)
    fail(what + " has strides, which elements below 8 bits cannot");
  const size_t element = type.dtype == ir::kBool ? 1 : type.dtype.bits / 8;
  std::vector<uint8_t> bytes(size);
  std::vector<int64_t> index(type.shape.size());
  for (size_t at = 0; at < size; at += element) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * tensor.strides[d];
    std::memcpy(&bytes[at], data + from * static_cast<int64_t>(element), element);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.shape[d]) break;
      index[d] = 0;
    }
  }
  return bytes;
}

}  // namespace

ir::TensorType read_type(const std::string& what, DLDataType dtype, int32_t ndim, const int64_t* shape) {
  if (ndim < 0 || static_cast<size_t>(ndim) > ir::kMaxRank) {
    fail(cat(what, " has rank ", ndim, ", expected 0 to ", ir::kMaxRank));
  }
  if (ndim > 0 && shape == nullptr) fail(what + " has no shape");
  ir::TensorType type{{dtype.code, dtype.bits, dtype.lanes}, {}};
  if (dtype.code == kDLBoolCode && dtype.bits == 8) type.dtype = ir::kBool;
  if (ndim > 0) type.shape.assign(shape, shape + ndim);
  const std::string error = ir::type_error(type);
  if (!error.empty()) fail(what + ": " + error);
  return type;
}

ir::ConstantRef read_tensor(const std::string& what, const DLTensor* tensor) {
  if (tensor == nullptr || tensor->data == nullptr) fail(what + " has no data");
  if (tensor->device.device_type != kDLCPU) fail(what + " is not in CPU memory");
  ir::TensorType type = read_type(what, tensor->dtype, tensor->ndim, tensor->shape);
  std::vector<uint8_t> bytes = packed_bytes(what, *tensor, type);
  if (type.dtype == ir::kBool) {
    for (uint8_t& byte : bytes) byte = byte != 0 ? 1 : 0;
  }
  return std::make_shared<const ir::Constant>(std::move(type), std::move(bytes));
}

}  // namespace qplan
