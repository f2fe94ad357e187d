// What `emit-c` and `link` do with the C that the library writes.
#ifndef QPLAN_TOOLS_EMITTED_FILES_H_
#define QPLAN_TOOLS_EMITTED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qplan::tools {

using EmittedFiles = std::vector<std::pair<std::string, std::string>>;  // names and contents

// A qplan_write_file_fn; user is an EmittedFiles.
void append_file(void* user, const char* name, const char* bytes, size_t size);

// The file's name without extensions, as an identifier: "kws-v2.qplan" gives "kws_v2".
std::string identifier_of(const std::string& path);

// QPLAN_ISA_* of --isa, QPLAN_ISA_AUTO for "". UsageError.
uint32_t emitted_isa(const std::string& name);

// Writes the files; returns "wrote kws.h, kws.c to 'DIR'\n".
std::string write_emitted(const EmittedFiles& files, const std::string& directory);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_EMITTED_FILES_H_
