// Shared libraries that are opened by name: drivers and custom operators.
#ifndef QPLAN_SRC_HOST_SHARED_LIBRARY_H_
#define QPLAN_SRC_HOST_SHARED_LIBRARY_H_

#include <memory>
#include <string>

#include "qplan/qplan.h"

namespace qplan::host {

// A handle of dlopen; closes it.
using SharedLibrary = std::unique_ptr<void, void (*)(void*)>;

// Null, with the error reported, where it cannot be loaded. where: what the error begins with.
SharedLibrary load_library(const char* path, const std::string& where, qplan_error* error);

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_SHARED_LIBRARY_H_
