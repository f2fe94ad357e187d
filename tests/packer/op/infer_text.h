// Inference through the text form: parameters and one expression in, types or the refusal out.
#ifndef QPLAN_TESTS_PACKER_OP_INFER_TEXT_H_
#define QPLAN_TESTS_PACKER_OP_INFER_TEXT_H_

#include <string>

#include "src/packer/error.h"
#include "src/packer/text/text.h"

namespace qplan {

// The types of the results joined with ", ", or the message of the PackError without file and excerpt.
inline std::string infer_text(const std::string& params, const std::string& expression) {
  std::string types;
  try {
    const ir::Module module = text::parse("def @main(" + params + ") {\n" + expression + "\n}", "t");
    const ir::Function& main = module.main();
    for (const ir::ValueId output : main.outputs()) {
      types += (types.empty() ? "" : ", ") + ir::to_string(main.type(output));
    }
  } catch (const PackError& error) {
    const std::string text = error.what();  // t:2:1: message: `excerpt`
    const size_t begin = text.find(": ") + 2;
    return text.substr(begin, text.rfind(": `") - begin);
  }
  return types;
}

}  // namespace qplan

#endif  // QPLAN_TESTS_PACKER_OP_INFER_TEXT_H_
