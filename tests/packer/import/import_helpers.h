// Code that the importer tests share.
#ifndef QPLAN_TESTS_PACKER_IMPORT_IMPORT_HELPERS_H_
#define QPLAN_TESTS_PACKER_IMPORT_IMPORT_HELPERS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/text/text.h"

namespace qplan::tflite_test {

// The lines of main's body, without type comments and names.
inline std::string body_of(const ir::Module& module) {
  const std::string text =
      text::print(module.main(), {.metadata = false, .names = false, .inline_elements = 64});
  std::string body;
  size_t begin = text.find('\n') + 1;
  if (text.starts_with("#[")) begin = text.find('\n', begin) + 1;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string line = text.substr(begin, end - begin);
    if (line == "}") break;
    for (size_t comment; (comment = line.find(" /* ty=")) != std::string::npos;) {
      line.erase(comment, line.find("*/", comment) + 2 - comment);
    }
    body += line.substr(line.find_first_not_of(' ')) + "\n";
  }
  return body;
}

inline std::string import_body(const std::vector<uint8_t>& bytes) {
  return body_of(import_tflite(bytes, "net.tflite"));
}

// Without the lines that say what to do and what parts there are, with which lists of operators end.
inline std::string without_closing(const std::string& error) {
  return error.substr(0, std::min(error.find("\nto do: "), error.find("\nthe part ")));
}

// "<status>: <text>" of the refusal, or "imported".
inline std::string import_error(const std::vector<uint8_t>& bytes) {
  try {
    import_tflite(bytes, "net.tflite");
  } catch (const PackError& error) {
    return std::to_string(error.status()) + ": " + without_closing(error.what());
  }
  return "imported";
}

}  // namespace qplan::tflite_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_IMPORT_HELPERS_H_
