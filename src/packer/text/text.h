// Relay's text form of a module. README.md in this folder tells the syntax and where it goes beyond Relay's.
// print(parse(t)) is a fixed point: print(parse(print(m))) == print(m) for every module.
#ifndef QPLAN_SRC_PACKER_TEXT_TEXT_H_
#define QPLAN_SRC_PACKER_TEXT_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "src/packer/ir/module.h"

namespace qplan::text {

struct PrintOptions {
  // The data of constants that are not written in the body. Without it the text is for reading, not for
  // parsing.
  bool metadata = true;
  // Names of nodes and outputs: name="block3/conv".
  bool names = true;
  // Constants up to this size are written in the body: const(Tensor[(3), int8], [1, -2, 3]).
  size_t inline_elements = 16;
};

// Total: whatever a module's values and attributes are, it prints; verify() need not accept it.
std::string print(const ir::Module& module, const PrintOptions& options = {});
std::string print(const ir::Function& function, const PrintOptions& options = {});

// The module, verified. name: of the file, for messages ("net.relay:3:17: expected ...").
ir::Module parse(std::string_view text, std::string_view name);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_TEXT_H_
