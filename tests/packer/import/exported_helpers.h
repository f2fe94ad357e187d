// Code that the tests of operators and layers of exported programs share.
#ifndef QPLAN_TESTS_PACKER_IMPORT_EXPORTED_HELPERS_H_
#define QPLAN_TESTS_PACKER_IMPORT_EXPORTED_HELPERS_H_

#include <string>

#include "tests/packer/import/exported_builder.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test {

// Imports one node on x and, from b, what other tensors it names: the body, or the refusal.
inline std::string of_node(const std::string& target, const ExportedBuilder::Arguments& arguments,
                           const Json& shape = {1, 2, 4, 4}, ExportedBuilder b = {}) {
  b.input("x", shape).node(target, "y", arguments).output("y");
  return import_text(b.build(), {});
}

// The refusal of of_node's node, and of a broken program.
inline std::string unsupported(const std::string& what) {
  return "-49: pytorch: 'net.pt': 1 operator that qplan does not import: " + what + " ('y')";
}
inline std::string broken(const std::string& what) { return "-48: pytorch: 'net.pt': " + what; }

}  // namespace qplan::pytorch_test

#endif  // QPLAN_TESTS_PACKER_IMPORT_EXPORTED_HELPERS_H_
