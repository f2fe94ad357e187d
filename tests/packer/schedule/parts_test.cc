// Whole models with concatenations and splits along an axis with nothing but ones before it: packed, their
// tensors are parts of each other, and their outputs are what a plain interpreter of the text makes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/runtime/bind/family.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/support/random.h"

namespace qplan::schedule::parts_test {
namespace {

using qplan::testing::lower_text;
using qplan::testing::main_text;
using Values = std::vector<int8_t>;

constexpr int64_t kWidth = 5;  // int8 tensors [1, n, kWidth]

AlignedBytes pack(const std::string& text) {
  return evaluate::make_plan(lower_text(text), target::parse_target("cpu"), {});
}

// How many tensors of concat and split steps are parts of each other, and how many are not.
struct Counts {
  uint32_t inside = 0, apart = 0;
};
Counts count_parts(const AlignedBytes& plan) {
  const inspect::PlanReader reader(plan.span());
  const format::Plan& root = reader.view().plan();
  Counts counts;
  for (const format::Step* step : *root.steps()) {
    const format::KernelStep& body = *step->body_as_KernelStep();
    if (body.kernel() != kKernel_concat && body.kernel() != kKernel_split) continue;
    for (const uint32_t output : *body.outputs()) {
      for (const uint32_t input : *body.inputs()) {
        const bool inside = format::ranges_overlap(*root.tensors()->Get(input), *root.tensors()->Get(output));
        ++(inside ? counts.inside : counts.apart);
      }
    }
  }
  return counts;
}

std::vector<Values> run(const AlignedBytes& plan, const std::vector<Values>& inputs, size_t num_outputs) {
  evaluate::ReferenceSession session(plan.span());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    std::ranges::copy(inputs[i], reinterpret_cast<int8_t*>(session.io(QPLAN_INPUT, i).data()));
  }
  session.invoke();
  std::vector<Values> outputs;
  for (uint32_t o = 0; o < num_outputs; ++o) {
    const auto bytes = session.io(QPLAN_OUTPUT, o);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

TEST(PlanParts, NothingIsCopiedBetweenLayers) {
  const AlignedBytes plan = pack(main_text("%x: Tensor[(1, 8, 5), int8]",
                                           "  %0 = qnn.add(%x, %x, 1f, 0, 1f, 0, 1f, 0);\n"
                                           "  %1 = split(%0, indices_or_sections=[3], axis=1);\n"
                                           "  %2 = qnn.add(%1.0, %1.0, 1f, 0, 1f, 0, 1f, 0);\n"
                                           "  %3 = qnn.add(%1.1, %1.1, 1f, 0, 1f, 0, 1f, 0);\n"
                                           "  %4 = concatenate((%3, %2), axis=1);\n"
                                           "  %5 = qnn.add(%4, %x, 1f, 0, 1f, 0, 1f, 0);\n  %5"));
  const Counts counts = count_parts(plan);
  // The halves change places: they are parts of the split tensor and are copied to the joined one.
  EXPECT_EQ(counts.inside, 2u);
  EXPECT_EQ(counts.apart, 2u);
  Values x(40);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i);
  Values expected;
  for (size_t i = 0; i < x.size(); ++i) {
    expected.push_back(static_cast<int8_t>(std::min<size_t>(127, 4 * ((i + 15) % 40) + i)));
  }
  EXPECT_EQ(run(plan, {x}, 1).at(0), expected);
}

// A network as Relay text, with its values for given inputs.
class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {
    std::string params;
    for (int64_t i = random_.integer(1, 2); i > 0; --i) {
      const std::string name = "%x" + std::to_string(i);
      const int64_t rows = random_.integer(1, 6);
      params += (params.empty() ? "" : ", ") + name + ": " + type(rows);
      inputs.push_back(random_.full_range<int8_t>(static_cast<size_t>(rows * kWidth)));
      values_.push_back({name, inputs.back()});
    }
    for (int64_t s = random_.integer(2, 12); s > 0; --s) step();
    std::string results;
    for (int64_t i = random_.integer(1, 2); i > 0; --i) {
      // Outputs of the function are all computed, none is an input.
      const Value& from = i == 1 ? values_.back() : pick();
      const Value out = add(from, from);
      results += (results.empty() ? "" : ", ") + out.name;
      outputs.push_back(out.values);
    }
    text = main_text(params, body_ + "  (" + results + (outputs.size() == 1 ? ",)" : ")"));
  }

  std::string text;
  std::vector<Values> inputs, outputs;

 private:
  struct Value {
    std::string name;
    Values values;
  };

  static std::string type(int64_t rows) {
    return "Tensor[(1, " + std::to_string(rows) + ", " + std::to_string(kWidth) + "), int8]";
  }
  const Value& pick() {
    const auto count = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(
        random_.integer(random_.chance(0.6) ? std::max<int64_t>(0, count - 3) : 0, count - 1))];
  }
  std::string define(const std::string& expression) {
    const std::string name = "%" + std::to_string(num_names_++);
    body_ += "  " + name + " = " + expression + ";\n";
    return name;
  }
  Value add(const Value& a, const Value& b) {
    Value sum;
    sum.name = define("qnn.add(" + a.name + ", " + b.name + ", 1f, 0, 1f, 0, 1f, 0)");
    for (size_t i = 0; i < a.values.size(); ++i) {
      sum.values.push_back(static_cast<int8_t>(std::clamp(a.values[i] + b.values[i], -128, 127)));
    }
    return sum;
  }

  void step() {
    const int64_t kind = random_.integer(0, 9);
    if (kind < 4) {
      Value joined;
      std::string names;
      for (int64_t i = random_.integer(2, 4); i > 0; --i) {
        const Value& part = pick();
        names += (names.empty() ? "" : ", ") + part.name;
        joined.values.insert(joined.values.end(), part.values.begin(), part.values.end());
      }
      if (joined.values.size() > 1000) return;
      joined.name = define("concatenate((" + names + "), axis=1)");
      values_.push_back(joined);
    } else if (kind < 6) {
      const Value from = pick();
      const auto rows = static_cast<int64_t>(from.values.size()) / kWidth;
      if (rows < 2) return;
      const int64_t at = random_.integer(1, rows - 1);
      const std::string both =
          define("split(" + from.name + ", indices_or_sections=[" + std::to_string(at) + "], axis=1)");
      const auto middle = from.values.begin() + at * kWidth;
      values_.push_back({both + ".0", Values(from.values.begin(), middle)});
      values_.push_back({both + ".1", Values(middle, from.values.end())});
    } else {
      const Value a = pick();
      Value b = pick();
      if (b.values.size() != a.values.size()) b = a;
      values_.push_back(add(a, b));
    }
  }

  qplan::testing::Random random_;
  std::vector<Value> values_;
  std::string body_;
  int num_names_ = 0;
};

TEST(PlanParts, RandomNetworksGiveWhatTheirTextMeans) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    const RandomText network(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + network.text);
    const AlignedBytes plan = pack(network.text);
    const Counts found = count_parts(plan);
    counts.inside += found.inside;
    counts.apart += found.apart;
    EXPECT_EQ(run(plan, network.inputs, network.outputs.size()), network.outputs);
  }
  EXPECT_GT(counts.inside, 400u);
  EXPECT_GT(counts.apart, 400u);  // of function inputs, and where it would cost memory
}

}  // namespace
}  // namespace qplan::schedule::parts_test
