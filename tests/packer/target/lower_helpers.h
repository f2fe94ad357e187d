// Relay text in, a lowered program or its results out.
#ifndef QPLAN_TESTS_PACKER_TARGET_LOWER_HELPERS_H_
#define QPLAN_TESTS_PACKER_TARGET_LOWER_HELPERS_H_

#include <cstring>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/target/program.h"
#include "src/packer/text/text.h"

namespace qplan::testing {

inline std::string main_text(const std::string& params, const std::string& body) {
  return "#[version = \"0.0.5\"]\ndef @main(" + params + ") {\n" + body + "\n}\n";
}

inline target::Program lower_text(const std::string& text, const std::string& target = "cpu") {
  const ir::Module module = text::parse(text, "test");
  return target::lower_function(module.main(), target::parse_target(target));
}

// "conv2d add lut8"
inline std::string kernels_of(const target::Program& program) {
  std::string names;
  for (const target::ProgramStep& step : program.steps) {
    names += (names.empty() ? "" : " ") + inspect::kernel_name(step.kernel);
  }
  return names;
}

// The error of a lowering that refuses.
inline std::string lower_refusal(const std::string& text) {
  try {
    lower_text(text);
  } catch (const PackError& error) {
    return error.what();
  }
  return "";
}

// The first output of main for these inputs, through the real runtime.
template <typename Out, typename... In>
std::vector<Out> run_text(const std::string& text, const std::vector<In>&... inputs) {
  const ir::Module module = text::parse(text, "test");
  const ir::Function& main = module.main();
  std::vector<ir::ConstantRef> constants;
  const auto add = [&](const auto& values) {
    const ir::TensorType& type = main.type(main.params()[constants.size()]);
    constants.push_back(ir::make_constant(type.dtype, type.shape, values));
  };
  (add(inputs), ...);
  const std::vector<ir::ConstantRef> outputs = evaluate::run_function(main, constants);
  const auto values = outputs.at(0)->as<Out>();
  return {values.begin(), values.end()};
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_PACKER_TARGET_LOWER_HELPERS_H_
