#include "tools/output_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "tools/error.h"

namespace qplan::tools {
namespace {

namespace fs = std::filesystem;

bool is_regular(const std::string& path, struct stat* status) {
  return ::stat(path.c_str(), status) == 0 && S_ISREG(status->st_mode);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat status_a, status_b;
  if (is_regular(a, &status_a) && is_regular(b, &status_b)) {
    return status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
  }
  // Two outputs that are not there yet.
  std::error_code code;
  if (fs::exists(a, code) || fs::exists(b, code)) return false;
  const fs::path path_a = fs::weakly_canonical(a, code), path_b = fs::weakly_canonical(b, code);
  return !path_a.empty() && path_a == path_b;
}

std::string text(const NamedFile& file) { return file.role + " '" + file.path + "'"; }

}  // namespace

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    for (const NamedFile& input : inputs) {
      if (input.path.empty() || !same_file(outputs[i].path, input.path)) continue;
      throw Failure(text(outputs[i]) + ": is the same file as " + text(input) +
                    ", which it would replace; give another name");
    }
    for (size_t k = 0; k < i; ++k) {
      if (outputs[k].path.empty() || !same_file(outputs[i].path, outputs[k].path)) continue;
      throw Failure(text(outputs[i]) + ": is the same file as " + text(outputs[k]) + "; give another name");
    }
  }
}

}  // namespace qplan::tools
