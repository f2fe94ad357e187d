#include "tools/emitted_files.h"

#include <cctype>
#include <filesystem>

#include "qplan/qplan.h"
#include "tools/error.h"
#include "tools/files.h"

namespace qplan::tools {

void append_file(void* user, const char* name, const char* bytes, size_t size) {
  static_cast<EmittedFiles*>(user)->emplace_back(name, std::string(bytes, size));
}

std::string identifier_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "model_" + name;
  return name;
}

uint32_t emitted_isa(const std::string& name) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (!name.empty() && qplan_isa_from_name(name.c_str(), &isa) < 0) {
    throw UsageError("--isa: '" + name + "' is not known; `qplan inspect` prints those of the plan");
  }
  return isa;
}

std::string write_emitted(const EmittedFiles& files, const std::string& directory) {
  std::vector<NamedBytes> written;
  std::string text = "wrote";
  for (const auto& [file, bytes] : files) {
    written.push_back({file, bytes.data(), bytes.size()});
    text += (written.size() > 1 ? ", " : " ") + file;
  }
  write_files(directory, written);
  return text + " to '" + one_line(directory) + "'\n";
}

}  // namespace qplan::tools
