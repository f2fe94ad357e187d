#include "tools/plan_file.h"

#include <cstring>
#include <fstream>
#include <new>

#include "tools/error.h"

namespace qplan::tools {
namespace {

// The one mistake everybody makes once.
[[nodiscard]] bool is_tflite(const void* bytes, size_t size) {
  return size >= 8 && std::memcmp(static_cast<const char*>(bytes) + 4, "TFL3", 4) == 0;
}

}  // namespace

bool is_plan_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return std::memcmp(magic, "QPLN", sizeof magic) == 0;
}

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

PlanFile::PlanFile(const std::string& label, const std::string& bytes) : path_(label) {
  constexpr size_t kAlignment = 64;  // that plans want, and strings do not promise
  copy_.reset(std::aligned_alloc(kAlignment, (bytes.size() / kAlignment + 1) * kAlignment));
  if (copy_ == nullptr) throw std::bad_alloc();
  std::memcpy(copy_.get(), bytes.data(), bytes.size());
  file_.bytes = copy_.get();
  file_.size = bytes.size();
  qplan_error error = make_error();
  check(qplan_plan_open(&plan_, file_.bytes, file_.size, 0, &error), error, "'" + label + "'");
}

PlanFile::~PlanFile() {
  if (copy_ == nullptr) qplan_file_unmap(&file_);
}

}  // namespace qplan::tools
