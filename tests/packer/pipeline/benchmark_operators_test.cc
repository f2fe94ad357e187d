// benchmarks/kernels/operators.relay: a row of the kernels' benchmark for every family.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/runtime/bind/family.h"

namespace qplan::pipeline::benchmark_operators_test {
namespace {

TEST(BenchmarkOperators, HaveAStepOfEveryFamily) {
  const std::string path = "benchmarks/kernels/operators.relay";
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  PackOptions options;
  options.import.synthesize_constants = 1;
  options.keep_float = true;
  options.fuse = schedule::Fuse::kOff;
  const std::vector<uint8_t> text(std::istreambuf_iterator<char>(file), {});
  const AlignedBytes plan = pack(text, path, options);
  const inspect::PlanReader reader(plan.span());
  std::set<uint16_t> found;
  for (uint32_t i = 0; i < reader.view().num_steps(); ++i) found.insert(reader.view().step(i).kernel());
  // Cascades are those of models, and operators of the application are its own.
  for (const uint16_t family : {kKernel_chain, kKernel_custom}) found.insert(family);
  struct Family {
    uint16_t id;
    const char* name;
  };
  const Family families[] = {
#define QPLAN_KERNEL(id, name, descriptor, params, args_bytes) {id, #name},
#include "format/kernels.def"
#undef QPLAN_KERNEL
  };
  for (const Family& family : families)
    EXPECT_TRUE(found.contains(family.id)) << path << " has no step of " << family.name << ": add one";
}

}  // namespace
}  // namespace qplan::pipeline::benchmark_operators_test
