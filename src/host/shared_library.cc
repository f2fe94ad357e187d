#include "src/host/shared_library.h"

#include <dlfcn.h>

#include "src/host/system.h"

namespace qplan::host {

SharedLibrary load_library(const char* path, const std::string& where, qplan_error* error) {
  const std::string name = path;
  // A name without a slash would be looked for in the system's directories.
  const std::string file = name.find('/') == std::string::npos ? "./" + name : name;
  SharedLibrary handle(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* opened) { dlclose(opened); });
  if (handle != nullptr) return handle;
  const char* reason = dlerror();
  std::string text = reason == nullptr ? "unknown reason" : reason;
  if (text.compare(0, file.size() + 2, file + ": ") == 0) text.erase(0, file.size() + 2);
  (void)report(error, QPLAN_FILE_ERROR, where + "cannot be loaded: " + text);
  return handle;
}

}  // namespace qplan::host
