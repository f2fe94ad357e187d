// Random networks of operators that are no layers: what the plan of one computes, on the reference kernels
// and on those of this machine, is what recurrent_interpreter.h computes, bit for bit (any NaN is a NaN).
// QPLAN_TEST_SEEDS=<first>:<count> runs other seeds than the default ones, and more of them.
#include "tests/packer/pipeline/random_operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "qplan/qplan.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/program.h"
#include "src/packer/text/text.h"
#include "tests/packer/pipeline/recurrent_interpreter.h"

namespace qplan::random_operators_test {
namespace {

using naive::Tensor;
using Tensors = std::vector<Tensor>;

ir::Module canonical(const ir::Module& module, const PackOptions& options,
                     const target::TargetProfile& profile) {
  ir::Module copy;
  for (const auto& function : module.functions()) {
    copy.add_function(function->name());
    copy.replace_function(std::make_unique<ir::Function>(*function));
  }
  target::Target cpu;
  cpu.is_cpu = true;
  cpu.profile = profile;
  pipeline::canonicalize(&copy, {&cpu, 1}, pipeline::Observer(options));
  return copy;
}

// A session of all kernels that this machine has.
class Session {
 public:
  explicit Session(std::span<const uint8_t> bytes) {
    qplan_error error = {};
    error.struct_size = sizeof(error);
    qplan_session_config config = {};
    config.struct_size = sizeof(config);
    config.kernels = qplan_kernels_all();
    qplan_memory_need need = {};
    uint32_t count = 1;
    check(qplan_plan_open(&plan_, bytes.data(), bytes.size(), 0, &error), error);
    check(qplan_session_memory_needs(&plan_, &config, &need, &count, &error), error);
    memory_.resize(static_cast<size_t>(need.size) + static_cast<size_t>(need.alignment));
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    const qplan_memory memory = {
        memory_.data() + (need.alignment - address % need.alignment) % need.alignment,
        static_cast<size_t>(need.size)};
    check(qplan_session_init(&plan_, &config, &memory, 1, &session_, &error), error);
  }
  ~Session() {
    if (session_ != nullptr) qplan_session_deinit(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::vector<ir::ConstantRef> run(const ir::Function& main, const std::vector<ir::ConstantRef>& inputs) {
    for (uint32_t i = 0; i < inputs.size(); ++i)
      std::memcpy(data(QPLAN_INPUT, i), inputs[i]->bytes().data(), inputs[i]->bytes().size());
    qplan_error error = {};
    error.struct_size = sizeof(error);
    const auto status = qplan_session_invoke(session_);
    if (status != QPLAN_OK) qplan_session_last_error(session_, &error);
    check(status, error);
    std::vector<ir::ConstantRef> outputs;
    for (uint32_t i = 0; i < main.outputs().size(); ++i) {
      const ir::TensorType& type = main.type(main.outputs()[i]);
      const uint8_t* const from = data(QPLAN_OUTPUT, i);
      const auto size = static_cast<size_t>(type.num_elements()) * static_cast<size_t>(type.dtype.bits) / 8;
      outputs.push_back(std::make_shared<const ir::Constant>(type, std::vector<uint8_t>(from, from + size)));
    }
    return outputs;
  }

 private:
  static void check(int32_t status, const qplan_error& error) {
    if (status < 0) throw std::runtime_error(std::string("the runtime: ") + error.text);
  }
  uint8_t* data(int direction, uint32_t index) {
    DLTensor view = {};
    if (qplan_session_view(session_, direction, index, &view) < 0) throw std::runtime_error("no such view");
    return static_cast<uint8_t*>(view.data) + view.byte_offset;
  }

  qplan_plan plan_ = {};
  std::vector<uint8_t> memory_;
  qplan_session* session_ = nullptr;
};

std::string describe(const Tensor& t, size_t from) {
  std::string text = ir::to_string(ir::TensorType{t.dtype, t.shape}) + ":";
  for (size_t i = from; i < std::min<size_t>(t.v.size(), from + 16); ++i) {
    char number[40];
    std::snprintf(number, sizeof(number), " %.9g", t.v[i]);
    text += number;
  }
  return text;
}

// Empty when they are the same.
std::string difference(const std::vector<ir::ConstantRef>& outputs, const Tensors& expected) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor found = naive::from_constant(*outputs[i]);
    const bool has_signed_zeros = found.dtype == ir::kFloat32;
    const auto same = [&](double a, double b) {
      if (std::isnan(a) && std::isnan(b)) return true;
      return a == b && (!has_signed_zeros || std::signbit(a) == std::signbit(b));
    };
    if (found.dtype != expected[i].dtype || found.shape != expected[i].shape)
      return "output " + std::to_string(i) + " has another type";
    const auto at = std::ranges::mismatch(found.v, expected[i].v, same).in1 - found.v.begin();
    if (at == std::ssize(found.v)) continue;
    return "output " + std::to_string(i) + ", from element " + std::to_string(at) + "\n  found    " +
           describe(found, static_cast<size_t>(at)) + "\n  expected " +
           describe(expected[i], static_cast<size_t>(at));
  }
  return "";
}

// A network without some rewrites may be refused: kernels take one layout.
struct Report {
  uint64_t packed = 0;
  int failures = 0;
  std::map<std::string, int> operators;                      // in networks that ran
  std::map<std::string, std::pair<int, uint64_t>> refusals;  // by text: how often, the last seed
};

std::vector<std::string> all_rewrites() {
  std::set<std::string> all;
  for (const passes::Pass& pass : passes::all_passes()) {
    if (std::string_view(pass.name) != "simplify") all.insert(pass.name);
    if (pass.rewrites == nullptr) continue;
    for (const pattern::Rewrite& rewrite : pass.rewrites()) all.insert(rewrite.name);
  }
  // The clamp that a maximum with one constant number is keeps a NaN.
  all.erase("maximum_to_clip");
  all.erase("minimum_to_clip");
  return {all.begin(), all.end()};
}

void run_seed(uint64_t seed, Report* report) {
  naive::RandomOperators network(seed);
  testing::Random choices(seed ^ 0x5eed);
  const std::vector<ir::ConstantRef> inputs = network.inputs();
  const Tensors expected =
      naive::RecurrentInterpreter(network.function(), network.tflite_functions()).run(inputs);
  const target::TargetProfile profile =
      choices.chance(0.5) ? target::parse_target("cpu") : target::reference_profile();
  std::string what = "the reference kernels";
  const auto fail = [&](const std::string& text) {
    ++report->failures;
    ADD_FAILURE()
        << "seed " << seed << ", " << profile.name << ", " << what << ": " << text << "\n"
        << text::print(network.module(), {.metadata = false, .inline_elements = 64}).substr(0, 6000);
  };
  try {
    ir::verify(network.module());
    const ir::Module module = canonical(network.module(), {}, profile);
    if (const std::string text = difference(evaluate::run_function(module.main(), inputs), expected);
        !text.empty())
      return fail(text + "\n" + text::print(module, {.metadata = false}).substr(0, 6000));
    what = "all kernels";
    const AlignedBytes plan =
        evaluate::make_plan(target::lower_function(module.main(), profile), profile, {});
    if (const std::string text = difference(Session(plan.span()).run(module.main(), inputs), expected);
        !text.empty())
      return fail(text);
    ++report->packed;
    for (const ir::Node& node : network.function().nodes()) ++report->operators[node.op->name];
    what = "skip";
    PackOptions options;
    static const std::vector<std::string> kNames = all_rewrites();
    for (int i = 0; i < 3; ++i) options.skip.push_back(choices.pick(kNames));
    for (const std::string& name : options.skip) what += " " + name;
    const ir::Module other = canonical(network.module(), options, profile);
    if (const std::string text = difference(evaluate::run_function(other.main(), inputs), expected);
        !text.empty())
      return fail(text + "\n" + text::print(other, {.metadata = false}).substr(0, 6000));
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) return fail(std::string("PackError: ") + error.what());
    std::string text = std::string(what.substr(0, what.find(' '))) + ": " + error.what();
    for (char& c : text) c = c >= '0' && c <= '9' ? '#' : c;
    auto& [times, last] = report->refusals[text.substr(0, 200)];
    ++times;
    last = seed;
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// Operators of src/packer/op/ops.def that random_operators.h does not draw, and why.
const std::map<std::string, std::string> kNotDrawn = {
    {"custom", "the application computes it"},
    {"npu.program", "a device computes it; tests/ethosu compares its simulator with Arm's compiler"},
};

TEST(RandomOperators, MeanTheSameOnEveryKernel) {
  uint64_t first = 1, count = 1000;
  const char* const asked = std::getenv("QPLAN_TEST_SEEDS");
  if (asked != nullptr) {
    char* end = nullptr;
    first = std::strtoull(asked, &end, 10);
    count = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : 1;
  }
  constexpr int kMaxFailures = 3;
  Report report;
  for (uint64_t seed = first; seed < first + count && report.failures < kMaxFailures; ++seed)
    run_seed(seed, &report);
  if (asked == nullptr) {
    EXPECT_EQ(report.packed, count) << "a network was refused";
    for (const op::OpDef* op : op::all_ops()) {
      const auto reason = kNotDrawn.find(op->name);
      EXPECT_NE(report.operators.contains(op->name), reason != kNotDrawn.end())
          << op->name
          << (reason != kNotDrawn.end() ? " is drawn after all, and is in kNotDrawn"
                                        : " is not drawn: give random_operators.h a step with it and "
                                          "operator_interpreter.h its meaning, or kNotDrawn a reason");
    }
    return;
  }
  std::printf("%llu of %llu packed\n", static_cast<unsigned long long>(report.packed),
              static_cast<unsigned long long>(count));
  for (const auto& [text, times] : report.refusals)
    std::printf("%6d, as seed %llu: %s\n", times.first, static_cast<unsigned long long>(times.second),
                text.c_str());
  for (const auto& [name, times] : report.operators) std::printf("%6d %s\n", times, name.c_str());
}

}  // namespace
}  // namespace qplan::random_operators_test
