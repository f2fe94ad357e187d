// Relay's text form of a module. README.md in this folder describes the syntax and its extensions to Relay.
// print(parse(t)) is a fixed point: print(parse(print(m))) == print(m) for every module.
#ifndef QPLAN_SRC_PACKER_TEXT_TEXT_H_
#define QPLAN_SRC_PACKER_TEXT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "src/packer/error.h"
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

// Facts that the text itself does not state.
struct ParseOptions {
  // By name of main's parameters and free variables: types of those that have none, and data of those that
  // become constants. A name that main does not have is refused, or goes to names_of_others where that is
  // set.
  std::map<std::string, ir::TensorType, std::less<>> input_types;
  std::map<std::string, ir::ConstantRef, std::less<>> bindings;
  std::set<std::string>* names_of_others = nullptr;
  // Constants without data, and parameters of main that are weights by their use, get data made of the seed.
  std::optional<uint64_t> synthesize_constants;
  LogFunction log;  // may be empty
};

// The module, verified. name: of the file, for messages ("net.relay:3:17: expected ...").
ir::Module parse(std::string_view text, std::string_view name, const ParseOptions& options = {});

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_TEXT_H_
