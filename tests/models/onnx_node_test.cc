// ONNX's own conformance cases, half of them, for the operators in reach. Each packs and runs with all inputs
// but the first bound to the case's data; or, where that is refused, folds to constants with all inputs
// bound; or is refused by name. Anything else is a failure: a wrong number, another error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/models/float_evaluator.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::onnx_node_test {
namespace {

std::vector<std::filesystem::path> cases_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> cases;
  if (!std::filesystem::exists(folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

struct Case {
  explicit Case(const std::filesystem::path& folder) : name(folder.filename().string()) {
    model = read_bytes(folder / "model.onnx");
    const onnx::Model file = onnx::read_model(model);
    for (const onnx::ValueInfo& output : file.outputs) {
      if (!output.is_tensor) throw onnx::Unsupported{"an output that is no tensor"};
    }
    for (const onnx::ValueInfo& input : file.inputs) {
      if (!input.is_tensor) throw onnx::Unsupported{"an input that is no tensor"};
      const bool initialized = std::ranges::any_of(
          file.initializers, [&](const onnx::Tensor& tensor) { return tensor.name == input.name; });
      if (!initialized) input_names.push_back(input.name);
    }
    const std::filesystem::path data = folder / "test_data_set_0";
    for (size_t i = 0; i < input_names.size(); ++i) inputs.push_back(tensor(data, "input_", i));
    for (size_t i = 0; i < file.outputs.size(); ++i) outputs.push_back(tensor(data, "output_", i));
  }

  static ir::ConstantRef tensor(const std::filesystem::path& folder, const char* what, size_t index) {
    return onnx::read_tensor_file(read_bytes(folder / (what + std::to_string(index) + ".pb")));
  }

  std::string name;
  std::vector<uint8_t> model;
  std::vector<std::string> input_names;
  std::vector<ir::ConstantRef> inputs, outputs;
};

std::vector<double> numbers(ir::DType dtype, std::span<const uint8_t> bytes) {
  std::vector<double> values;
  const auto convert = [&](auto zero) {
    for (size_t at = 0; at < bytes.size(); at += sizeof zero) {
      std::memcpy(&zero, bytes.data() + at, sizeof zero);
      values.push_back(static_cast<double>(zero));
    }
  };
  dtype == ir::kFloat32 ? convert(float()) : convert(double());
  return values;
}

// Empty, or what differs. ONNX's tolerances: integers are equal, floats within rtol 1e-3 and atol 1e-5.
std::string difference(std::span<const uint8_t> found, const ir::Constant& expected) {
  if (found.size() != expected.bytes().size()) return "another size";
  if (!expected.type().dtype.is_float()) {
    return std::ranges::equal(found, expected.bytes()) ? "" : "other bytes";
  }
  const std::vector<double> a = numbers(expected.type().dtype, found);
  const std::vector<double> b = numbers(expected.type().dtype, expected.bytes());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::fabs(a[i] - b[i]) <= 1e-5 + 1e-3 * std::fabs(b[i]);
    if (!same)
      return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
             std::to_string(b[i]);
  }
  return "";
}

PackOptions bound(const Case& c, size_t first) {
  PackOptions options;
  for (size_t i = first; i < c.inputs.size(); ++i) options.import.bindings[c.input_names[i]] = c.inputs[i];
  return options;
}

void expect_types(const ir::Function& main, const Case& c) {
  ASSERT_EQ(main.outputs().size(), c.outputs.size());
  for (size_t i = 0; i < c.outputs.size(); ++i) EXPECT_EQ(main.type(main.outputs()[i]), c.outputs[i]->type());
}

enum class Outcome { kPassed, kFolded, kImported, kRefused };

// Packed and run. Throws what the packer throws.
Outcome run(const Case& c) {
  const PackOptions options = bound(c, 1);
  const AlignedBytes plan = pack(c.model, c.name, options);
  expect_types(import_model(c.model, c.name, options).main(), c);
  ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
  std::vector<std::vector<uint8_t>> inputs;
  if (!c.inputs.empty()) inputs.emplace_back(c.inputs[0]->bytes().begin(), c.inputs[0]->bytes().end());
  const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(difference(outputs[i], *c.outputs.at(i)), "") << "output " << i;
  return Outcome::kPassed;
}

void expect_outputs(const std::vector<ir::ConstantRef>& found, const Case& c) {
  ASSERT_EQ(found.size(), c.outputs.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]->type(), c.outputs[i]->type());
    EXPECT_EQ(difference(found[i]->bytes(), *c.outputs[i]), "") << "output " << i;
  }
}

// All inputs are constants, so the outputs are; unless an operator among them is no more than a float layer.
Outcome fold(const Case& c) {
  const PackOptions options = bound(c, 0);
  const ir::Module module = canonical_module(c.model, c.name, options);
  const ir::Function& main = module.main();
  std::vector<ir::ConstantRef> outputs;
  for (const ir::ValueId output : main.outputs()) {
    if (main.is_constant(output)) outputs.push_back(main.value(output).constant);
  }
  if (outputs.size() == main.outputs().size()) {
    expect_outputs(outputs, c);
    return Outcome::kFolded;
  }
  std::vector<ir::ConstantRef> computed;
  try {
    computed = evaluate_floats(import_model(c.model, c.name, options).main());
  } catch (const PackError&) {
    throw;
  } catch (const std::runtime_error& error) {  // a layer of integers that no kernel takes
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    std::string("no kernel takes it, and a tensor is ") + error.what());
  }
  expect_outputs(computed, c);
  return Outcome::kImported;
}

// The text without the part before the list of operators.
std::string short_reason(const std::string& text) {
  constexpr std::string_view kList = "does not import:";
  const size_t at = text.find(kList);
  std::string reason = at == std::string::npos ? text : text.substr(at + kList.size() + 1);
  std::ranges::replace(reason, '\n', ' ');
  return reason;
}

// Throws for what is neither right nor refused by name.
Outcome try_case(const std::filesystem::path& folder, std::string* reason) {
  try {
    const Case c(folder);
    try {
      return run(c);
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      *reason = short_reason(error.what());
    }
    try {
      return fold(c);
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      *reason = short_reason(error.what());  // with the data of all inputs out of the way
    }
  } catch (const onnx::Unsupported& use) {
    *reason = "data: " + use.reason;
  }
  return Outcome::kRefused;
}

class Table {
 public:
  void add(const std::string& name, Outcome outcome, const std::string& reason) {
    constexpr const char* kNames[] = {"passed", "folded", "imported", "refused"};
    ++counts_[static_cast<size_t>(outcome)];
    std::printf("  %-8s %-60s %s\n", kNames[static_cast<size_t>(outcome)], name.c_str(),
                outcome >= Outcome::kImported ? reason.substr(0, 160).c_str() : "");
  }
  void print() const {
    std::printf("  %zu passed, %zu folded, %zu imported without a kernel, %zu refused by name\n", counts_[0],
                counts_[1], counts_[2], counts_[3]);
  }
  size_t done() const { return counts_[0] + counts_[1] + counts_[2]; }
  size_t passed() const { return counts_[0]; }

 private:
  size_t counts_[4] = {0, 0, 0, 0};
};

void try_all(const std::filesystem::path& folder, Table* table) {
  for (const std::filesystem::path& path : cases_in(folder)) {
    SCOPED_TRACE(path.filename().string());
    std::string reason;
    try {
      const Outcome outcome = try_case(path, &reason);
      table->add(path.filename().string(), outcome, reason);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  table->print();
}

constexpr char kNoCases[] =
    "no data directory: set QPLAN_SHARED to a folder with onnx_node_tests/ (default: ../shared)";

TEST(OnnxNodeTests, OperatorsGiveTheirResultsOrAreRefusedByName) {
  const std::filesystem::path folder = shared_directory() / "onnx_node_tests";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << kNoCases;
  Table table;
  try_all(folder, &table);
  EXPECT_GE(table.done(), 145u) << "cases that were imported are now refused";
  EXPECT_GE(table.passed(), 124u) << "cases that ran are not computed by kernels any more";
}

TEST(OnnxNodeTests, SmallNetworksFromPytorch) {
  const std::filesystem::path folder = shared_directory() / "onnx_node_tests" / "pytorch-converted";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << kNoCases;
  Table table;
  try_all(folder, &table);
  EXPECT_GE(table.passed(), 41u) << "cases that ran are not computed by kernels any more";
}

}  // namespace
}  // namespace qplan::testing::onnx_node_test
