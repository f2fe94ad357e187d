// Arguments of the packer's C API as the packer's own: options, tensors and types as DLPack's structs,
// files.
#ifndef QPLAN_CAPI_PACK_ARGUMENTS_H_
#define QPLAN_CAPI_PACK_ARGUMENTS_H_

#include <dlpack/dlpack.h>
#include <sys/mman.h>

#include <cstdint>
#include <span>
#include <string>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/pipeline/pipeline.h"

namespace qplan {

// qplan_pack_options as the packer's own options.

// The caller's options with what its struct_size leaves out set to zero.
qplan_pack_options whole_options(const qplan_pack_options* options);

// PackError (QPLAN_INVALID_ARGUMENT) where a pointer is missing or a type is impossible. Data of bindings is
// copied.
PackOptions read_options(const qplan_pack_options& options);

// Tensors and types that cross the C API as DLPack's structs.

// `what` begins the text of the PackError (QPLAN_INVALID_ARGUMENT) where a type is impossible or data is
// missing.
ir::TensorType read_type(const std::string& what, DLDataType dtype, int32_t ndim, const int64_t* shape);
// A copy of the elements, whatever the strides.
ir::ConstantRef read_tensor(const std::string& what, const DLTensor* tensor);

// A file's bytes for as long as this lives.
class MappedFile {
 public:
  // PackError with the status and text of qplan_file_map.
  explicit MappedFile(const char* path) {
    if (path == nullptr) throw PackError(QPLAN_INVALID_ARGUMENT, "pack: path is NULL");
    qplan_error error = {};
    error.struct_size = sizeof(error);
    const qplan_status status = qplan_file_map(path, &file_, &error);
    if (status < 0) throw PackError(status, error.text);
  }
  ~MappedFile() { qplan_file_unmap(&file_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(file_.bytes), file_.size}; }
  // Gives the memory of what was read back; bytes that are read again come from the file again.
  void forget() const {
    if (file_.size > 0) (void)::madvise(const_cast<void*>(file_.bytes), file_.size, MADV_DONTNEED);  // NOLINT
  }

 private:
  qplan_file file_ = {};
};

}  // namespace qplan

#endif  // QPLAN_CAPI_PACK_ARGUMENTS_H_
