// Contents of the tensors of an archive.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_TENSOR_READER_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_TENSOR_READER_H_

#include <optional>
#include <string>
#include <vector>

#include "src/packer/import/pytorch/value.h"
#include "src/packer/import/pytorch/zip_archive.h"

namespace qplan::pt {

std::string to_string(ScalarType type);  // "qint8"
// The dtype of the elements.
ir::DType dtype_of(ScalarType type);

// The scales of a quantised tensor: one, or one per index of `axis`.
struct TensorScales {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  std::optional<int64_t> axis;
};

class TensorReader {
 public:
  TensorReader(ZipArchive& archive, const ValueTable& values) : archive_(archive), values_(values) {}

  ScalarType type(const Tensor& tensor) const;
  // Row-major, packed, whatever the strides. PackError where sizes, strides and offset do not fit the storage
  // or one another, and where the constants of the archive take more than a file of this size may hold.
  ir::ConstantRef read(const Tensor& tensor);
  // Elements as double; the type must be a floating-point or integer one. what: "the bias".
  std::vector<double> read_numbers(const Tensor& tensor, const std::string& what);
  // Reads the scales of a quantised tensor: positive finite float32 numbers, one or as many as the axis has
  // indices.
  TensorScales read_scales(const Tensor& tensor);

 private:
  std::vector<uint8_t> gather(const Tensor& tensor);

  ZipArchive& archive_;
  const ValueTable& values_;
  uint64_t charged_ = 0;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_TENSOR_READER_H_
