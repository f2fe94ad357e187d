// TensorProto: its types, and its contents as a constant of the IR.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_TENSOR_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_TENSOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::onnx {

// The tensor as in the file; the spans point into Model::message. Which of them holds the elements depends on
// the type, unless raw does.
struct Tensor {
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  bool has_raw = false;
  std::span<const uint8_t> raw;
  std::span<const float> floats;
  std::span<const int32_t> int32s;
  std::span<const int64_t> int64s;
  std::span<const double> doubles;
  std::span<const uint64_t> uint64s;
  bool is_external = false;   // the data is in another file,
  std::string external_path;  // this one
  bool is_segment = false;    // a part of a tensor
};

// A tensor without elements may have any other extents. PackError where they are negative or their product
// wraps: what multiplies them later relies on it. Returns the product of those that are not 0.
int64_t check_extents(const std::vector<int64_t>& extents);

// nullopt: a type that the IR does not know.
std::optional<ir::DType> ir_dtype(int32_t data_type);
// "float32", "string", "type 99".
std::string type_name(int32_t data_type);

// Throws Unsupported for types, external data and segments; PackError where sizes do not fit. Extents may be
// 0, which no value of a function may have.
ir::ConstantRef read_constant(const Tensor& tensor);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_TENSOR_H_
