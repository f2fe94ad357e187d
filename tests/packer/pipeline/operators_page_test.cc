// docs/operators.md: which operators of each format are one operator of the IR, and what runs them, by dtype
// and instruction set. The names are compared with the importers' tables in both directions; dtypes and
// instruction sets are those of plans that the examples become.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/pipeline/operators_page_rows.h"

namespace qplan::pipeline::operators_page_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDtypes[] = {"int8", "uint8", "int16", "int32", "float32"};

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string with_dtype(std::string text, const std::string& dtype) {
  for (const char* place : {", T]", "\"T\""}) {
    for (size_t at; (at = text.find(place)) != std::string::npos;)
      text.replace(at + std::string(place).find('T'), 1, dtype);
  }
  return text;
}

// The plan of an example as JSON of its inspection; null where there is none.
Json inspected(const std::string& example, const std::string& dtype, const std::string& target) {
  const size_t bar = example.find('|');
  std::string params = "%x: Tensor[(1, 6, 8, 16), T]";
  if (bar > 0) params += ", " + example.substr(0, bar);
  const std::string text = with_dtype(
      "#[version = \"0.0.5\"]\ndef @main(" + params + ") {\n" + example.substr(bar + 1) + "\n}\n", dtype);
  PackOptions options;
  options.target = target;
  options.cost_gate = false;
  options.keep_float = true;
  options.fuse = schedule::Fuse::kOff;
  options.import.synthesize_constants = 1;
  if (bar > 0) {
    // A parameter that is no layer's weights must be a constant, too.
    const bool is_table = example.find("(256)") < bar;
    if (is_table) {
      const ir::DType table_dtype = ir::dtype_from_string(dtype).value_or(ir::kInt8);
      const ir::TensorType type{table_dtype, {256}};
      options.import.bindings["w"] = std::make_shared<const ir::Constant>(
          type, std::vector<uint8_t>(static_cast<size_t>(type.size_bytes()), 1));
    }
  }
  try {
    const AlignedBytes plan = pack(std::vector<uint8_t>(text.begin(), text.end()), "example.relay", options);
    return Json::parse(inspect::inspect_json(inspect::PlanReader(plan.span()).view()));
  } catch (const PackError&) {
    return nullptr;
  }
}

// "sse41 avx2": the instruction sets of the target for which every step has a kernel of its own; copies,
// which are memcpy, do not count.
std::string fast_isas(const Json& report) {
  std::map<std::string, bool> fast;
  for (const Json& step : report.at("steps")) {
    if (!step.contains("variants") || step.at("variants").is_null() || step.at("op") == "copy") continue;
    for (const Json& variant : step.at("variants")) {
      const std::string isa = variant.at("isa");
      const std::string kernel = variant.at("kernel");
      const bool is_fast = !kernel.ends_with("_ref");
      if (isa == "reference") continue;
      fast[isa] = is_fast && (!fast.contains(isa) || fast[isa]);
    }
  }
  std::string text;
  for (const auto& [isa, is_fast] : fast) text += is_fast ? (text.empty() ? "" : " ") + isa : "";
  return text;
}

bool has_region(const Json& report) { return !report.is_null() && !report.at("regions").empty(); }

std::string cell(const std::string& text) { return text.empty() ? "—" : text; }

std::string names_cell(const std::string& names) {
  std::string text;
  for (const std::string& name : words(names)) text += (text.empty() ? "`" : " `") + name + "`";
  return cell(text);
}

// What runs an operator, by dtype.
struct Runs {
  std::map<std::string, std::string> x86, dsp;  // by dtype; absent: it does not run
  std::string vta;
};

Runs runs_of(const Row& row) {
  Runs runs;
  for (const char* dtype : kDtypes) {
    for (const char* example : row.examples) {
      const Json x86 = inspected(example, dtype, "cpu");
      if (x86.is_null() || runs.x86.contains(dtype)) continue;
      runs.x86[dtype] = fast_isas(x86);
      runs.dsp[dtype] = fast_isas(inspected(example, dtype, "cpu,arch=cortex-m4"));
      if (has_region(inspected(example, dtype, "vta, cpu")))
        runs.vta += (runs.vta.empty() ? "" : " ") + std::string(dtype);
    }
  }
  return runs;
}

std::string page() {
  std::string text =
      "# Operators\n\n"
      "Which operators of each format are read, and what runs them. Written by the test `OperatorsPage` from "
      "the\n"
      "importers' tables and from plans of one example for each dtype\n"
      "(`QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R OperatorsPage` writes it again).\n"
      "[supported_ops.md](supported_ops.md) has the conditions of each target.\n\n"
      "## Names\n\nOperators of one row are the same operator of the [IR](glossary.md#ir), whose names are "
      "those of Relay.\nThe names of PyTorch are those of its schema, for both of its archives: "
      "`aten::conv2d` is "
      "`torch.conv2d` in\nTorchScript and `torch.ops.aten.conv2d.default` in an exported program.\n\n"
      "| operator | TFLite | ONNX | PyTorch | Relay |\n|---|---|---|---|---|\n";
  for (const Row& row : rows()) {
    text += std::string("| ") + row.title + " | " + names_cell(row.tflite) + " | " + names_cell(row.onnx) +
            " | " + names_cell(row.pytorch) + " | " + names_cell(row.relay) + " |\n";
  }
  text +=
      "\n## What runs them\n\n"
      "Every dtype listed runs on every processor: the reference kernel computes it where no faster one is\n"
      "named. An instruction set is named where all steps of the example but copies have a kernel for it. "
      "Vector\n"
      "kernels are one file for all instruction sets: 64-bit Arm (`neon`, `dotprod`, `i8mm`) and RISC-V\n"
      "(`rvv`) have one where x86-64 has one.\n\n"
      "| operator | dtype | x86-64 | Cortex-M | VTA |\n|---|---|---|---|---|\n";
  for (const Row& row : rows()) {
    const Runs runs = runs_of(row);
    for (const char* dtype : kDtypes) {
      if (!runs.x86.contains(dtype)) continue;
      const bool on_vta = (" " + runs.vta + " ").find(" " + std::string(dtype) + " ") != std::string::npos;
      text += std::string("| ") + row.title + " | " + dtype + " | " + cell(runs.x86.at(dtype)) + " | " +
              cell(runs.dsp.at(dtype)) + " | " + (on_vta ? "yes" : "—") + " |\n";
    }
  }
  return text;
}

std::set<std::string> listed(const char* Row::*column) {
  std::set<std::string> names;
  for (const Row& row : rows()) {
    for (const std::string& name : words(row.*column)) names.insert(name);
  }
  return names;
}

std::set<std::string> tflite_names() {
  return {
      // On float32 alone (op_float.cc, op_float_other.cc).
      "ADD_N", "CEIL", "COS", "FLOOR", "POW", "ROUND", "SIN", "SQUARE",
#define QPLAN_TFLITE_OP(number, name, function) #name,
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP
  };
}

std::set<std::string> onnx_names() {
  std::set<std::string> names;
  const auto add = [&](const std::string& domain, const std::string& name) {
    names.insert(domain.empty() ? name : domain + "." + name);
  };
#define QPLAN_ONNX_OP(domain, name, oldest, newest, function) add(domain, #name);
#include "src/packer/import/onnx/ops.def"
#undef QPLAN_ONNX_OP
  return names;
}

std::set<std::string> pytorch_names() {
  return {
#define QPLAN_PYTORCH_OP(name, function, arguments) name,
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP
  };
}

std::set<std::string> relay_names() {
  std::set<std::string> names;
  for (const op::OpDef* op : op::all_ops()) names.insert(op->name);
  return names;
}

TEST(OperatorsPage, HasEveryOperatorThatIsRead) {
  const char* const kWhere = "operators_page_rows.h names each in a row, with an example of what is new";
  EXPECT_EQ(listed(&Row::tflite), tflite_names()) << kWhere;
  EXPECT_EQ(listed(&Row::onnx), onnx_names()) << kWhere;
  EXPECT_EQ(listed(&Row::pytorch), pytorch_names()) << kWhere;
  EXPECT_EQ(listed(&Row::relay), relay_names()) << kWhere;
}

TEST(OperatorsPage, EveryExampleRuns) {
  for (const Row& row : rows()) {
    for (const char* example : row.examples) {
      EXPECT_TRUE(std::ranges::any_of(
          kDtypes, [&](const char* dtype) { return !inspected(example, dtype, "cpu").is_null(); }))
          << row.title << ": " << example;
    }
  }
}

TEST(OperatorsPage, IsWhatTheTablesAndPlansSay) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the page names the kernels of a build for x86-64";
#endif
  const std::string expected = page();
  if (std::getenv("QPLAN_UPDATE_DOCS") != nullptr)
    std::ofstream("docs/operators.md", std::ios::binary) << expected;
  std::ifstream file("docs/operators.md", std::ios::binary);
  const std::string found((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(found, expected)
      << "QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R OperatorsPage writes docs/operators.md again";
}

// Texts of the tests that run models: an operator that none of them names is not tested.
std::string test_texts() {
  std::string text;
  for (const char* folder : {"tests/packer", "tests/models", "tests/data/operators"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      // The page's own rows name every operator.
      if (!entry.is_regular_file() || entry.path().filename().string().starts_with("operators_page_"))
        continue;
      if (extension != ".cc" && extension != ".h" && extension != ".json") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      text.append(std::istreambuf_iterator<char>(file), {});
    }
  }
  return text;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char after = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if ((at == 0 || !is_part(text[at - 1])) && !is_part(after)) return true;
  }
  return false;
}

TEST(OperatorsPage, ATestNamesEveryOperator) {
  const std::string text = test_texts();
  const std::string missing = " is in no test: import a model with it (tests/packer/import/, tests/models/)";
  for (const std::string& name : tflite_names())
    EXPECT_TRUE(has_word(text, name)) << "TFLite " << name << missing;
  for (std::string name : onnx_names()) {
    name = name.substr(name.rfind('.') + 1);
    EXPECT_TRUE(has_word(text, name)) << "ONNX " << name << missing;
  }
  for (std::string name : pytorch_names()) {
    name = name.substr(name.rfind(':') + 1);
    if (name.ends_with("_") && !name.starts_with("_")) name.pop_back();  // in place: the same function
    EXPECT_TRUE(has_word(text, name)) << "PyTorch " << name << missing;
  }
}

}  // namespace
}  // namespace qplan::pipeline::operators_page_test
