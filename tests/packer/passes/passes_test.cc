// The table of passes, and properties that hold for all of them.
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "src/packer/op/op_def.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::passes_test {
namespace {

TEST(Passes, HaveNamesOfTheirOwnAndAreFoundByThem) {
  std::set<std::string> names;
  for (const passes::Pass& pass : passes::all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_EQ(passes::find_pass(pass.name), &pass);
  }
  EXPECT_EQ(passes::find_pass("nonsense"), nullptr);
}

// pass -> its rows, of the page's table, which names a pass of several lines in the first one.
std::map<std::string, std::set<std::string>> documented_rewrites() {
  std::map<std::string, std::set<std::string>> passes;
  std::ifstream page("src/packer/passes/README.md");
  std::string line, pass;
  while (std::getline(page, line) && !line.starts_with("| pass |")) {
  }
  while (std::getline(page, line) && line.starts_with("|")) {
    std::istringstream cells(line.substr(2));
    std::string first, names, name;
    std::getline(cells, first, '|');
    std::getline(cells, names, '|');
    if (first.starts_with("`")) pass = first.substr(1, first.rfind('`') - 1);
    std::istringstream quoted(names);
    while (std::getline(quoted, name, '`') && std::getline(quoted, name, '`')) passes[pass].insert(name);
  }
  return passes;
}

TEST(Passes, ThePageNamesEveryRewrite) {
  std::map<std::string, std::set<std::string>> page = documented_rewrites();
  for (const passes::Pass& pass : passes::all_passes()) {
    std::set<std::string> rows;
    if (pass.rewrites != nullptr)
      for (const pattern::Rewrite& rewrite : pass.rewrites()) rows.insert(rewrite.name);
    EXPECT_EQ(page[pass.name], rows) << "src/packer/passes/README.md: the rows of " << pass.name;
    page.erase(pass.name);
  }
  for (const auto& [name, rows] : page)
    ADD_FAILURE() << "src/packer/passes/README.md has '" << name << "', which is no pass";
}

TEST(Passes, LogWhatTheyDoWithThePlace) {
  const ir::Module module =
      parse_main("%x: Tensor[(4), int8]", "  clip(%x, a_min=-128f, a_max=127f, name=\"act\")\n");
  passes::PassContext context;
  std::vector<std::string> lines;
  context.log = [&](uint32_t level, const std::string& text) {
    EXPECT_EQ(level, uint32_t{QPLAN_LOG_DEBUG});
    lines.push_back(text);
  };
  passes::find_pass("fuse_activation")->run(module, module.main(), context);
  EXPECT_EQ(lines, std::vector<std::string>{"fuse_activation: 'act': a clip to the whole dtype, dropped"});
}

TEST(Passes, KeepAttributesNamesAndSignature) {
  const ir::Module module = parse_main("%x: Tensor[(4), int8], input_scale_0=0.5f, output_names=[\"top\"]",
                                       "  clip(%x, a_min=0f, a_max=500f, name=\"act\")\n");
  passes::PassContext context;
  const auto result = passes::find_pass("fuse_activation")->run(module, module.main(), context);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->attrs(), module.main().attrs());
  EXPECT_EQ(result->output_names(), std::vector<std::string>{"top"});
  EXPECT_EQ(result->nodes()[0].name, "act");
}

// Nothing recurses, and nothing is quadratic: a chain of 100,000 operators through every pass.
TEST(Passes, AChainOf100000OperatorsIsLinear) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  ir::ValueId value = main.add_param("x", {ir::kInt8, {2, 3}});
  for (int i = 0; i < 25000; ++i) {
    value = main.add_node(op::get_op("clip"), {value}, {{"a_min", -100.0}, {"a_max", 100.0 - i % 7}}, "")
                .results[0];
    value = main.add_node(op::get_op("transpose"), {value}, {{"axes", ir::Ints{1, 0}}}, "").results[0];
    value = main.add_node(op::get_op("transpose"), {value}, {{"axes", ir::Ints{1, 0}}}, "").results[0];
    value = main.add_node(op::get_op("reshape"), {value}, {{"newshape", ir::Ints{2, 3}}}, "").results[0];
  }
  main.set_outputs({value});
  passes::PassContext context;
  bool changed = true;
  while (changed) {
    changed = false;
    for (const passes::Pass& pass : passes::all_passes()) {
      if (auto result = pass.run(module, module.main(), context)) {
        module.replace_function(std::move(result));
        changed = true;
      }
    }
  }
  EXPECT_EQ(print_body(module.main()), "%0 = clip(%x, a_min=-100f, a_max=94f);\n%0\n");
}

}  // namespace
}  // namespace qplan::passes_test::passes_test
