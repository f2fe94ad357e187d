#include "tools/plan_file.h"

#include <cstring>

#include "tools/error.h"

namespace qplan::tools {
namespace {

// The one mistake everybody makes once.
[[nodiscard]] bool is_tflite(const void* bytes, size_t size) {
  return size >= 8 && std::memcmp(static_cast<const char*>(bytes) + 4, "TFL3", 4) == 0;
}

}  // namespace

PlanFile::PlanFile(const std::string& path, uint32_t flags) : path_(path) {
  qplan_error error = make_error();
  check(qplan_file_map(path.c_str(), &file_, &error), error, "");
  const qplan_status status = qplan_plan_open(&plan_, file_.bytes, file_.size, flags, &error);
  if (status >= 0) return;
  const bool model = is_tflite(file_.bytes, file_.size);
  qplan_file_unmap(&file_);
  if (model) {
    throw Failure("plan '" + path + "': is a TFLite model; make a plan of it first: qplan pack '" + path +
                  "' -o model.qplan");
  }
  check(status, error, "'" + path + "'");
}

PlanFile::~PlanFile() { qplan_file_unmap(&file_); }

}  // namespace qplan::tools
