// Code that the tests of passes made of rewrites share: the log, the reason for which a rewrite does not
// fire, the results of functions.
#ifndef QPLAN_TESTS_PACKER_PASSES_REWRITE_TEST_SUPPORT_H_
#define QPLAN_TESTS_PACKER_PASSES_REWRITE_TEST_SUPPORT_H_

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/ir/module.h"
#include "src/packer/pattern/pattern.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test {

// The lines that one run of the pass logs: "<rewrite>: '<node>': <what>".
inline std::vector<std::string> log_of(std::string_view pass, const std::string& params,
                                       const std::string& body) {
  std::vector<std::string> lines;
  passes::PassContext context;
  context.log = [&](uint32_t, const std::string& text) { lines.push_back(text); };
  run_pass(pass, params, body, context);
  return lines;
}

// Why the rewrite does not fire at the function's first output; empty when it does.
inline std::string why_not(std::string_view pass, std::string_view rewrite, const std::string& params,
                           const std::string& body) {
  const ir::Module module = parse_main(params, body);
  for (const pattern::Rewrite& row : passes::find_pass(pass)->rewrites()) {
    if (row.name == rewrite) return pattern::why_not(row, module.main(), module.main().outputs()[0]);
  }
  return "no such rewrite";
}

// The body once none of the passes changes it any more.
inline std::string run_passes(const std::vector<std::string>& names, const std::string& params,
                              const std::string& body, passes::PassContext context = {}) {
  ir::Module module = parse_main(params, body);
  context.evaluate = evaluate::evaluate_node;
  constexpr int kMaxRounds = 20;
  bool changed = true;
  for (int round = 0; changed; ++round) {
    if (round == kMaxRounds) return "no fixpoint";
    changed = false;
    for (const std::string& name : names) {
      auto result = passes::find_pass(name)->run(module, module.main(), context);
      if (result == nullptr) continue;
      module.replace_function(std::move(result));
      ir::verify(module);
      changed = true;
    }
  }
  return print_body(module.main());
}

inline ir::ConstantRef random_bytes(const ir::TensorType& type, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

// The first output's bytes for random bytes as inputs: only for functions of 8-bit parameters.
inline std::vector<uint8_t> results_of(const std::string& params, const std::string& body, uint32_t seed) {
  const ir::Module module = parse_main(params, body);
  std::vector<ir::ConstantRef> inputs;
  for (const ir::ValueId param : module.main().params()) {
    inputs.push_back(random_bytes(module.main().type(param), seed + static_cast<uint32_t>(inputs.size())));
  }
  const ir::ConstantRef output = evaluate::run_function(module.main(), inputs).at(0);
  return {output->bytes().begin(), output->bytes().end()};
}

}  // namespace qplan::passes_test

#endif  // QPLAN_TESTS_PACKER_PASSES_REWRITE_TEST_SUPPORT_H_
