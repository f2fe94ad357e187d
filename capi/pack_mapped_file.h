// A file's bytes for as long as this lives.
#ifndef QPLAN_CAPI_PACK_MAPPED_FILE_H_
#define QPLAN_CAPI_PACK_MAPPED_FILE_H_

#include <sys/mman.h>

#include <cstdint>
#include <span>

#include "qplan/host.h"
#include "src/packer/error.h"

namespace qplan {

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

#endif  // QPLAN_CAPI_PACK_MAPPED_FILE_H_
