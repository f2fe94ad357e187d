// Text in, text out: what the tests of partition() share.
#ifndef QPLAN_TESTS_PACKER_PARTITION_PARTITION_TEST_SUPPORT_H_
#define QPLAN_TESTS_PACKER_PARTITION_PARTITION_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"

namespace qplan::partition_test {

inline ir::Module parse_main(const std::string& params, const std::string& body) {
  return text::parse("#[version = \"0.0.5\"]\ndef @main(" + params + ") {\n" + body + "}\n", "test");
}

// The module without the version's line and type comments.
inline std::string plain_text(const ir::Module& module) {
  std::string text = text::print(module, {.metadata = false, .names = false, .inline_elements = 64});
  text.erase(0, text.find('\n') + 1);
  for (size_t comment; (comment = text.find(" /* ty=")) != std::string::npos;) {
    text.erase(comment, text.find("*/", comment) + 2 - comment);
  }
  return text;
}

// The text of the refusal; empty when there is none.
template <typename Run>
std::string refusal(const Run& run, qplan_status status) {
  try {
    run();
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "";
}

// A device of single operators, and the default CPU.
inline std::vector<target::Target> operators(const std::vector<std::string>& ops,
                                             int32_t priority = target::kNpuPriority) {
  std::vector<target::Target> targets = {target::operators_target("npu", ops)};
  targets[0].priority = priority;
  targets.push_back(pipeline::parse_targets("cpu")[0]);
  return targets;
}

}  // namespace qplan::partition_test

#endif  // QPLAN_TESTS_PACKER_PARTITION_PARTITION_TEST_SUPPORT_H_
