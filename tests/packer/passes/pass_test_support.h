// Text in, text out: what the tests of passes share.
#ifndef QPLAN_TESTS_PACKER_PASSES_PASS_TEST_SUPPORT_H_
#define QPLAN_TESTS_PACKER_PASSES_PASS_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "src/packer/passes/pass.h"
#include "src/packer/text/text.h"

namespace qplan::passes_test {

// main of a module: parameters, then the lines of the body without their indentation.
inline ir::Module parse_main(const std::string& params, const std::string& body) {
  return text::parse("#[version = \"0.0.5\"]\ndef @main(" + params + ") {\n" + body + "}\n", "test");
}

// The lines of a function's body, without type comments and names.
inline std::string print_body(const ir::Function& function) {
  const std::string text = text::print(function, {.metadata = false, .names = false, .inline_elements = 64});
  std::string body;
  size_t begin = text.find("{\n") + 2;
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

// The body after one run of the pass; "unchanged" when it found nothing to do.
inline std::string run_pass(std::string_view name, const std::string& params, const std::string& body,
                            passes::PassContext context = {}) {
  const ir::Module module = parse_main(params, body);
  const passes::Pass* pass = passes::find_pass(name);
  if (pass == nullptr) return "no such pass";
  const uint64_t fired = context.num_fired;
  const std::unique_ptr<ir::Function> result = pass->run(module, module.main(), context);
  EXPECT_EQ(result != nullptr, context.num_fired > fired) << "what changes a function is counted";
  return result == nullptr ? "unchanged" : print_body(*result);
}

}  // namespace qplan::passes_test

#endif  // QPLAN_TESTS_PACKER_PASSES_PASS_TEST_SUPPORT_H_
