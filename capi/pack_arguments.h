// Arguments of the packer's C API as the packer's own: options, tensors and types as DLPack's structs,
// files.
#ifndef QPLAN_CAPI_PACK_ARGUMENTS_H_
#define QPLAN_CAPI_PACK_ARGUMENTS_H_

#include <dlpack/dlpack.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/runtime/structs.h"

// ---- the objects of the handles that callbacks of a qplan_user_pass get ----

struct qplan_pattern {
  qplan::pattern::Pattern pattern;
};

// The views are const for their readers; what they remember for them is not.
struct qplan_pre {
  explicit qplan_pre(const qplan::pattern::Pre& function) : pre(function) {}

  const qplan::pattern::Pre& pre;
  mutable std::string error;  // of the last call that failed
  // Attributes handed out in another form than the IR has them.
  mutable std::deque<std::vector<int64_t>> ints;
  mutable std::deque<std::vector<uint32_t>> sizes;
};

// One of r (a rewrite builds) and edit (a pass does).
struct qplan_post {
  const qplan_pre& pre;
  qplan::pattern::Post& post;
  qplan::pattern::Rebuild* r = nullptr;
  qplan::pattern::Edit* edit = nullptr;
  std::string why;
  uint32_t num_replaced = 0;
};

struct qplan_matches {
  const qplan_pre& pre;
  const qplan::pattern::Matches& matches;
  qplan::pattern::PreNode root;
};

namespace qplan {

// qplan_pack_options as the packer's own options.

// The caller's options with what its struct_size leaves out set to zero.
qplan_pack_options whole_options(const qplan_pack_options* options);

// PackError (QPLAN_INVALID_ARGUMENT) where a pointer is missing or a type is impossible. Data of bindings is
// copied.
PackOptions read_options(const qplan_pack_options& options);

// "" for NULL.
inline std::string text_of(const char* text) { return text != nullptr ? text : ""; }

[[noreturn]] inline void refuse_argument(const std::string& text) {
  throw PackError(QPLAN_INVALID_ARGUMENT, text);
}

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

// PackError (QPLAN_INVALID_ARGUMENT) where something is missing. The pass and what it points to must outlive
// the result.
passes::UserPass read_user_pass(const qplan_user_pass& pass);

// After a callback: PackError with what it reported, unless it returned QPLAN_OK.
void check_callback(qplan_status status, const qplan_pre& pre);

// PackError where the function has no such value.
pattern::PreValue read_value(const qplan_pre& pre, qplan_pre_value value);
pattern::PostValue read_value(const qplan_post& post, qplan_post_value value);

ir::AttrValue read_attr(const qplan_attr& attr);  // PackError
// Pointers are good as long as pre and value are.
qplan_attr write_attr(const qplan_pre& pre, const std::string& name, const ir::AttrValue& value);
// Texts and data of value belong to the function.
qplan_value_info value_info(const ir::Function& function, ir::ValueId value);

// Copies the struct as far as the caller's struct_size reaches. PackError where that is nowhere.
template <typename Info>
qplan_status copy_info(const Info& whole, Info* info) {
  if (!fill_fields(whole, info))
    refuse_argument("info has no struct_size; set it to the size of the struct before the call");
  return QPLAN_OK;
}

// Runs work, which returns a status; what it throws becomes a status and *error.
template <typename Work>
qplan_status reported(std::string* error, const Work& work) noexcept {
  try {
    try {
      return work();
    } catch (const PackError& e) {
      *error = e.what();
      return e.status();
    } catch (const std::bad_alloc&) {
      *error = "out of memory";
      return QPLAN_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      *error = e.what();
      return QPLAN_INTERNAL;
    }
  } catch (...) {  // the text did not fit into memory
    return QPLAN_OUT_OF_MEMORY;
  }
}

}  // namespace qplan

#endif  // QPLAN_CAPI_PACK_ARGUMENTS_H_
