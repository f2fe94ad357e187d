// Tensors and types that cross the C API as DLPack's structs.
#ifndef QPLAN_CAPI_PACK_DL_TENSOR_H_
#define QPLAN_CAPI_PACK_DL_TENSOR_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>

#include "src/packer/ir/module.h"

namespace qplan {

// `what` begins the text of the PackError (QPLAN_INVALID_ARGUMENT) where a type is impossible or data is
// missing.
ir::TensorType read_type(const std::string& what, DLDataType dtype, int32_t ndim, const int64_t* shape);
// A copy of the elements, whatever the strides.
ir::ConstantRef read_tensor(const std::string& what, const DLTensor* tensor);

}  // namespace qplan

#endif  // QPLAN_CAPI_PACK_DL_TENSOR_H_
