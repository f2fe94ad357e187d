// Random networks: what the passes make of one computes what it computes as it was written, bit for bit, in
// every form and with every option. Expected values come from naive_interpreter.h.
// QPLAN_TEST_SEEDS=<first>:<count> runs other seeds than the default ones, and more of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/import/import.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/module.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/program.h"
#include "src/packer/text/text.h"
#include "tests/packer/pipeline/naive_interpreter.h"
#include "tests/packer/pipeline/random_network.h"

namespace qplan::random_networks_test {
namespace {

using naive::Tensor;
using Tensors = std::vector<Tensor>;

// ---- running ----

ir::Module copy_of(const ir::Module& module) {
  ir::Module copy;
  for (const auto& function : module.functions()) {
    copy.add_function(function->name());
    copy.replace_function(std::make_unique<ir::Function>(*function));
  }
  return copy;
}

ir::Module canonical(const ir::Module& module, const PackOptions& options,
                     const target::TargetProfile& profile) {
  ir::Module result = copy_of(module);
  target::Target cpu;
  cpu.is_cpu = true;
  cpu.profile = profile;
  pipeline::canonicalize(&result, {&cpu, 1}, pipeline::Observer(options));
  return result;
}

std::string digest(const ir::Module& canonical_module, const target::TargetProfile& profile) {
  const AlignedBytes plan =
      evaluate::make_plan(target::lower_function(canonical_module.main(), profile), profile, {});
  return inspect::content_digest(inspect::PlanReader(plan.span()).view());
}

Tensors run(const ir::Function& function, const Tensors& inputs) {
  std::vector<ir::ConstantRef> constants;
  for (const Tensor& input : inputs) constants.push_back(naive::to_constant(input));
  Tensors outputs;
  for (const ir::ConstantRef& output : evaluate::run_function(function, constants)) {
    outputs.push_back(naive::from_constant(*output));
  }
  return outputs;
}

// ---- the border that options ask for ----

Tensor transposed(const Tensor& x, const ir::Ints& axes) {
  Tensor out = x;
  for (size_t i = 0; i < axes.size(); ++i) out.shape[i] = x.shape[static_cast<size_t>(axes[i])];
  naive::for_each_index(out.shape, [&](const ir::Ints& index) {
    ir::Ints from(index.size());
    for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(axes[i])] = index[i];
    out.v[static_cast<size_t>(naive::flat(out.shape, index))] =
        x.v[static_cast<size_t>(naive::flat(x.shape, from))];
  });
  return out;
}

// The quantisation of a qnn.quantize or qnn.dequantize, for `dtype` instead of its own.
TensorQuantization quantization_of(const ir::Function& main, const ir::Node& node, ir::ValueId quantized,
                                   ir::DType dtype) {
  const int64_t offset = dtype.min() - main.type(quantized).dtype.min();
  return {main.value(node.operands[1]).constant->as<float>()[0],
          main.value(node.operands[2]).constant->as<int32_t>()[0] + static_cast<int32_t>(offset)};
}

// As the function says, or as the qnn.quantize or qnn.dequantize beside it does, transposed or not.
std::optional<TensorQuantization> quantization_of_input(const ir::Function& main, size_t index,
                                                        ir::DType dtype) {
  std::vector<ir::ValueId> same = {main.params()[index]};
  for (const ir::Node& node : main.nodes()) {
    if (std::ranges::find(same, node.operands[0]) == same.end()) continue;
    if (node.op->name == "qnn.quantize") return quantization_of(main, node, node.results[0], dtype);
    if (node.op->name == "transpose" || node.op->name == "reshape") same.push_back(node.results[0]);
  }
  return input_quantization(main, index);
}
std::optional<TensorQuantization> quantization_of_output(const ir::Function& main, size_t index,
                                                         ir::DType dtype) {
  ir::ValueId value = main.outputs()[index];
  for (const ir::Node* node; (node = main.producer(value)) != nullptr; value = node->operands[0]) {
    if (node->op->name == "qnn.dequantize") return quantization_of(main, *node, node->operands[0], dtype);
    if (node->op->name != "transpose" && node->op->name != "reshape") break;
  }
  return output_quantization(main, index);
}

// The tensor of the same reals in another dtype; float ones are what was quantised.
Tensor with_dtype(Tensor x, ir::DType dtype, std::optional<TensorQuantization> q, bool away) {
  if (x.dtype == dtype) return x;
  for (double& value : x.v) {
    if (x.dtype == ir::kFloat32) {
      const double real = static_cast<double>(static_cast<float>(value) / q->scale);
      value =
          naive::saturate((away ? naive::half_away(real) : naive::half_even(real)) + q->zero_point, dtype);
    } else if (dtype == ir::kFloat32) {
      value = static_cast<double>(static_cast<float>(value - q->zero_point) * q->scale);
    } else {
      value += static_cast<double>(dtype.min() - x.dtype.min());
    }
  }
  x.dtype = dtype;
  return x;
}

std::string describe(const Tensor& t) {
  std::string text = ir::to_string(ir::TensorType{t.dtype, t.shape}) + ":";
  for (size_t i = 0; i < std::min<size_t>(t.v.size(), 24); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), " %g", t.v[i]);
    text += number;
  }
  return text;
}

// Empty when they are the same.
std::string difference(const Tensors& found, const Tensors& expected) {
  if (found.size() != expected.size()) return "the numbers of outputs differ";
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].dtype == expected[i].dtype && found[i].shape == expected[i].shape &&
        found[i].v == expected[i].v) {
      continue;
    }
    const auto [a, b] = std::ranges::mismatch(found[i].v, expected[i].v);
    return "output " + std::to_string(i) + ", from element " + std::to_string(a - found[i].v.begin()) +
           "\n  found    " + describe(found[i]) + "\n  expected " + describe(expected[i]);
  }
  return "";
}

// ---- one seed ----

// By text: how often, and the last seed.
using Refusals = std::map<std::string, std::pair<int, uint64_t>>;

class Trial {
 public:
  Trial(uint64_t seed, const std::string& contract, Refusals* refusals)
      : seed_(seed),
        contract_(contract),
        refusals_(refusals),
        network_(seed, contract),
        choices_(seed ^ 0x5eed),
        profile_(choices_.chance(0.5) ? target::parse_target("cpu") : target::reference_profile()) {
    for (const ir::ConstantRef& input : network_.inputs()) inputs_.push_back(naive::from_constant(*input));
    std::vector<ir::ConstantRef> constants;
    for (const Tensor& input : inputs_) constants.push_back(naive::to_constant(input));
    expected_ = naive::Interpreter(network_.meaning()).run(constants);
  }

  // False: a failure was reported.
  bool run_all() {
    const size_t failures = failures_;
    attempt("plain", [&] { plain(); });
    if (!packs_) return failures_ == failures;
    attempt("text", [&] { through_text(); });
    PackOptions options;
    options.contract = contract_;
    attempt("contract", [&] { with(options); });
    options = {};
    options.io_layout = choices_.chance(0.5) ? "nhwc" : "nchw";
    attempt("io layout " + options.io_layout, [&] { with(options); });
    options.io = choices_.pick(std::vector<std::string>{"int8", "uint8", "float"});
    if (choices_.chance(0.5)) options.io_layout.clear();
    attempt("io " + options.io, [&] { with(options); });
    options = {};
    options.skip = some_names();
    std::string names;
    for (const std::string& name : options.skip) names += " " + name;
    attempt("skip" + names, [&] { with(options); });
    return failures_ == failures;
  }
  bool packs() const { return packs_; }

 private:
  template <typename Body>
  void attempt(const std::string& what, const Body& body) {
    what_ = what;
    try {
      body();
    } catch (const PackError& error) {
      const std::string text = error.what();
      if (error.status() == QPLAN_MODEL_UNSUPPORTED && !text.empty()) {
        auto& [times, seed] = (*refusals_)[what.substr(0, what.find(' ')) + ": " + without_names(text)];
        ++times;
        seed = seed_;
      } else {
        fail(std::string("PackError: ") + text);
      }
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  static std::string without_names(std::string text) {
    for (char& c : text) c = c >= '0' && c <= '9' ? '#' : c;
    return text.substr(0, 160);
  }

  void fail(const std::string& text) {
    ++failures_;
    ADD_FAILURE() << "seed " << seed_ << ", " << contract_ << ", " << profile_.name << ", " << what_ << ": "
                  << text << "\n"
                  << ir_text(network_.main_module());
  }
  static std::string ir_text(const ir::Module& module) {
    const std::string text = text::print(module, {.metadata = false, .inline_elements = 8});
    return text.size() < 6000 ? text : text.substr(0, 6000) + "...";
  }

  void plain() {
    ir::verify(network_.main_module());
    const ir::Module module = canonical(network_.main_module(), {}, profile_);
    const Tensors found = run(module.main(), inputs_);
    if (const std::string text = difference(found, expected_); !text.empty()) {
      fail(text + "\n" + ir_text(module));
    }
    const std::string once = text::print(module), twice = text::print(canonical(module, {}, profile_));
    if (once != twice) fail("canonicalising again changes the module:\n" + once + "\n" + twice);
    digest_ = digest(module, profile_);
    packs_ = true;
  }

  void through_text() {
    const ir::Module parsed = text::parse(text::print(network_.main_module()), "random.relay");
    if (digest(canonical(parsed, {}, profile_), profile_) != digest_)
      fail("another plan than the module's own");
  }

  // The same function with the border that the options ask for.
  void with(const PackOptions& options) {
    const ir::Module module = canonical(network_.main_module(), options, profile_);
    const ir::Function& main = module.main();
    const ir::Ints outwards = options.io_layout == "nhwc" ? ir::Ints{0, 2, 3, 1} : ir::Ints{0, 3, 1, 2};
    const ir::Ints inwards = options.io_layout == "nhwc" ? ir::Ints{0, 3, 1, 2} : ir::Ints{0, 2, 3, 1};
    const bool away = contract_ == "tfl2";
    Tensors inputs = inputs_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::TensorType& type = main.type(main.params()[i]);
      inputs[i] = with_dtype(inputs[i], type.dtype, quantization_of_input(main, i, inputs[i].dtype), away);
      const bool rank4 = !options.io_layout.empty() && type.shape.size() == 4;
      if (rank4 && looks_the_same_turned(inputs[i].shape)) return;
      if (type.shape != inputs[i].shape && rank4) inputs[i] = transposed(inputs[i], outwards);
      if (type.shape != inputs[i].shape) return fail("input " + std::to_string(i) + " has another shape");
    }
    Tensors found = run(main, inputs);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] =
          with_dtype(found[i], expected_[i].dtype, quantization_of_output(main, i, expected_[i].dtype), away);
      const bool same = found[i].shape == expected_[i].shape && found[i].v == expected_[i].v;
      if (options.io_layout.empty() || found[i].shape.size() != 4 || same) continue;
      found[i] = transposed(found[i], inwards);
    }
    if (const std::string text = difference(found, expected_); !text.empty()) {
      fail(text + "\n" + ir_text(module));
    }
  }

  // Then one cannot see whether an option turned it.
  static bool looks_the_same_turned(const ir::Shape& shape) {
    const auto more = std::ranges::count_if(shape, [](int64_t extent) { return extent > 1; });
    return more > 1 && shape[1] == shape[2] && shape[2] == shape[3];
  }

  std::vector<std::string> some_names() {
    std::set<std::string> all;
    for (const passes::Pass& pass : passes::all_passes()) {
      // What stays in float under TFL2 is another arithmetic than what is lowered.
      if (contract_ == "tfl2" && std::string_view(pass.name) == "qdq_to_integer") continue;
      all.insert(pass.name);
      if (pass.rewrites == nullptr) continue;
      for (const pattern::Rewrite& rewrite : pass.rewrites()) all.insert(rewrite.name);
    }
    const std::vector<std::string> names(all.begin(), all.end());
    return {choices_.pick(names), choices_.pick(names), choices_.pick(names)};
  }

  const uint64_t seed_;
  const std::string contract_;
  Refusals* refusals_;
  naive::RandomNetwork network_;
  testing::Random choices_;
  const target::TargetProfile profile_;
  Tensors inputs_, expected_;
  std::string what_, digest_;
  bool packs_ = false;
  size_t failures_ = 0;
};

void run_seeds(const std::string& contract) {
  uint64_t first = 1, count = 120;
  const char* const asked = std::getenv("QPLAN_TEST_SEEDS");
  if (asked != nullptr) {
    char* end = nullptr;
    first = std::strtoull(asked, &end, 10);
    count = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : 1;
  }
  constexpr int kMaxFailures = 3;
  int failures = 0;
  uint64_t packed = 0;
  Refusals refusals;
  for (uint64_t seed = first; seed < first + count && failures < kMaxFailures; ++seed) {
    Trial trial(seed, contract, &refusals);
    failures += trial.run_all() ? 0 : 1;
    packed += trial.packs() ? 1 : 0;
  }
  if (asked != nullptr) {
    std::printf("%llu of %llu packed\n", static_cast<unsigned long long>(packed),
                static_cast<unsigned long long>(count));
    for (const auto& [text, count_and_seed] : refusals) {
      std::printf("%6d, as seed %llu: %s\n", count_and_seed.first,
                  static_cast<unsigned long long>(count_and_seed.second), text.c_str());
    }
  } else {
    EXPECT_EQ(packed, count) << "a network was refused";
  }
}

TEST(RandomNetworks, MeanTheSameInCanonicalFormUnderF32E) { run_seeds("f32e"); }
TEST(RandomNetworks, MeanTheSameInCanonicalFormUnderTFL2) { run_seeds("tfl2"); }

// Each activation in the other 8-bit dtype: with one border the plan is the same.
TEST(RandomNetworks, TheOtherSignednessGivesTheSamePlan) {
  uint64_t compared = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const naive::RandomNetwork network(seed, "f32e"), other(seed, "f32e", /*other_signedness=*/true);
    const target::TargetProfile profile =
        seed % 2 == 0 ? target::parse_target("cpu") : target::reference_profile();
    for (const char* io : {"int8", "uint8", "float"}) {
      PackOptions options;
      options.io = io;
      try {
        const ir::Module a = canonical(network.main_module(), options, profile);
        const ir::Module b = canonical(other.main_module(), options, profile);
        ++compared;
        if (digest(a, profile) == digest(b, profile)) continue;
        ADD_FAILURE() << "seed " << seed << ", io " << io << ":\n"
                      << text::print(network.main_module(), {.metadata = false})
                      << text::print(other.main_module(), {.metadata = false})
                      << text::print(a, {.metadata = false}) << text::print(b, {.metadata = false});
        return;
      } catch (const PackError& error) {
        // Inputs whose scale nobody knows cannot be float.
        EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED) << error.what();
      }
    }
  }
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace qplan::random_networks_test
