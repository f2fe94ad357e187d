// Code that the tests of the PyTorch importer share.
#ifndef QPLAN_TESTS_PACKER_IMPORT_PYTORCH_HELPERS_H_
#define QPLAN_TESTS_PACKER_IMPORT_PYTORCH_HELPERS_H_

#include <string>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/ir/module.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::pytorch_test {

inline ImportOptions with_input(ir::Shape shape, const char* name = "x") {
  ImportOptions options;
  options.input_types[name] = {ir::kFloat32, std::move(shape)};
  return options;
}

// The body, or "<status>: <text>" of the refusal. Logged lines go to *log.
inline std::string import_text(const Bytes& bytes, const ImportOptions& options, std::string* log = nullptr) {
  try {
    const LogFunction listen = [&](uint32_t, const std::string& text) {
      if (log != nullptr) *log += text + "\n";
    };
    const ir::Module module = import_pytorch(bytes, "net.pt", listen, options);
    ir::verify(module);
    return tflite_test::body_of(module);
  } catch (const PackError& error) {
    return std::to_string(error.status()) + ": " + tflite_test::without_closing(error.what());
  }
}

// Imports a forward with these statements; x is float32.
inline std::string import_forward(const std::string& body, const ir::Shape& shape = {1, 2, 4, 4}) {
  return import_text(ArchiveBuilder(body).build(), with_input(shape));
}

}  // namespace qplan::pytorch_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_PYTORCH_HELPERS_H_
