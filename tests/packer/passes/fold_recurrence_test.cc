#include <string>
#include <vector>

#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fold_recurrence_test {
namespace {

// Lines of a body, each of which makes one value.
class Lines {
 public:
  std::string add(const std::string& call) {
    const std::string name = "%" + std::to_string(count_++);
    text_ += "  " + name + " = " + call + ";\n";
    return name;
  }
  std::string finish(const std::string& result) const { return text_ + "  " + result + "\n"; }

 private:
  std::string text_;
  int count_ = 0;
};

// One cell and two channels, so that every gate is one row.
constexpr char kInputWeights[] = "const(Tensor[(4, 2), float32], [1, 2, 3, 4, 5, 6, 7, 8])";
constexpr char kRecurrentWeights[] = "const(Tensor[(4, 1), float32], [10, 20, 30, 40])";
constexpr char kBias[] = "const(Tensor[(4), float32], [0.1, 0.2, 0.3, 0.4])";
constexpr char kSequence[] =
    "%x: Tensor[(3, 1, 2), float32], %h: Tensor[(1, 1), float32], %c: Tensor[(1, 1), float32]";

std::string element(Lines& lines, int position) {
  const std::string part = lines.add("strided_slice(%x, begin=[" + std::to_string(position) + "], end=[" +
                                     std::to_string(position + 1) + "], axes=[0])");
  return lines.add("reshape(" + part + ", newshape=[1, 2])");
}

std::string call(const char* op, const std::string& a) { return std::string(op) + "(" + a + ")"; }
std::string call(const char* op, const std::string& a, const std::string& b) {
  return std::string(op) + "(" + a + ", " + b + ")";
}

// h and c after a round on x; gate: what comes before the forget gate's sigmoid.
void lstm_round(Lines& lines, const std::string& x, std::string* h, std::string* c,
                const std::string& sigmoid = "sigmoid", const char* input_weights = kInputWeights,
                const char* recurrent_weights = kRecurrentWeights) {
  const std::string in = lines.add(call("nn.dense", x, input_weights));
  const std::string state = lines.add(call("nn.dense", *h, recurrent_weights));
  const std::string sum = lines.add(call("add", lines.add(call("add", in, state)), kBias));
  const std::string gates = lines.add("split(" + sum + ", indices_or_sections=4, axis=1)");
  const std::string input = lines.add(call("sigmoid", gates + ".0"));
  const std::string forget = lines.add(call(sigmoid.c_str(), gates + ".1"));
  const std::string candidate = lines.add(call("tanh", gates + ".2"));
  const std::string output = lines.add(call("sigmoid", gates + ".3"));
  const std::string kept = lines.add(call("multiply", forget, *c));
  *c = lines.add(call("add", kept, lines.add(call("multiply", input, candidate))));
  *h = lines.add(call("multiply", output, lines.add(call("tanh", *c))));
}

std::string folded(const std::string& body) { return run_pass("fold_recurrence", kSequence, body); }

const std::string kLstmWeights =
    "const(Tensor[(4, 2), float32], [1, 2, 3, 4, 5, 6, 7, 8]), "
    "const(Tensor[(4, 1), float32], [10, 20, 30, 40]), "
    "const(Tensor[(4), float32], [0.1, 0.2, 0.3, 0.4]), "
    "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1])";

TEST(FoldRecurrence, RoundsOfAnLstmAreOneLayer) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 0; i < 3; ++i) lstm_round(lines, element(lines, i), &h, &c);
  EXPECT_EQ(folded(lines.finish("(" + h + ", " + c + ")")),
            "%0 = nn.lstm(%x, " + kLstmWeights + ", %h, %c, time_major=True);\n(%0.1, %0.2)\n");
}

TEST(FoldRecurrence, StatesThatOthersReadAreElementsOfTheSequence) {
  Lines lines;
  std::string h = "%h", c = "%c";
  lstm_round(lines, element(lines, 0), &h, &c);
  const std::string first = h;
  lstm_round(lines, element(lines, 1), &h, &c);
  EXPECT_EQ(folded(lines.finish("(" + first + ", " + h + ")")),
            "%0 = strided_slice(%x, begin=[0], end=[2], strides=[1], axes=[0]);\n"
            "%1 = nn.lstm(%0, " +
                kLstmWeights +
                ", %h, %c, time_major=True);\n"
                "%2 = strided_slice(%1.0, begin=[0], end=[1], axes=[0]);\n"
                "%3 = reshape(%2, newshape=[1, 1]);\n"
                "%4 = strided_slice(%1.0, begin=[1], end=[2], axes=[0]);\n"
                "%5 = reshape(%4, newshape=[1, 1]);\n(%3, %5)\n");
}

TEST(FoldRecurrence, ASequenceMayBeReadBackwards) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 2; i >= 0; --i) lstm_round(lines, element(lines, i), &h, &c);
  EXPECT_EQ(folded(lines.finish(h)),
            "%0 = strided_slice(%x, begin=[2], end=[-4], strides=[-1], axes=[0]);\n"
            "%1 = nn.lstm(%0, " +
                kLstmWeights + ", %h, %c, time_major=True);\n%1.1\n");
}

// [batch, steps, k]: two samples, whose steps are parts of a split.
TEST(FoldRecurrence, SamplesMayStandBeforeSteps) {
  Lines lines;
  const std::string parts = lines.add("split(%x, indices_or_sections=2, axis=1)");
  std::string h = "%h", c = "%c";
  for (const char* part : {".0", ".1"})
    lstm_round(lines, lines.add("reshape(" + parts + part + ", newshape=[2, 2])"), &h, &c);
  EXPECT_EQ(run_pass("fold_recurrence",
                     "%x: Tensor[(2, 2, 2), float32], %h: Tensor[(2, 1), float32], "
                     "%c: Tensor[(2, 1), float32]",
                     lines.finish(h)),
            "%0 = nn.lstm(%x, " + kLstmWeights + ", %h, %c);\n%0.1\n");
}

// As TensorFlow's first cells did: one product of data and state, gates i, g, f, o, and 1 added to f.
TEST(FoldRecurrence, OneProductOfDataAndStateIsTakenApart) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 0; i < 2; ++i) {
    const std::string both = lines.add("concatenate((" + element(lines, i) + ", " + h + "), axis=1)");
    const std::string sum = lines.add(
        call("nn.dense", both, "const(Tensor[(4, 3), float32], [1, 2, 10, 5, 6, 30, 3, 4, 20, 7, 8, 40])"));
    const std::string biased = lines.add("nn.bias_add(" + sum + ", " + kBias + ", axis=1)");
    const std::string gates = lines.add("split(" + biased + ", indices_or_sections=4, axis=1)");
    const std::string input = lines.add(call("sigmoid", gates + ".0"));
    const std::string candidate = lines.add(call("tanh", gates + ".1"));
    const std::string forget = lines.add(call("sigmoid", lines.add(call("add", gates + ".2", "1f"))));
    const std::string output = lines.add(call("sigmoid", gates + ".3"));
    const std::string added = lines.add(call("multiply", candidate, input));
    c = lines.add(call("add", added, lines.add(call("multiply", c, forget))));
    h = lines.add(call("multiply", lines.add(call("tanh", c)), output));
  }
  EXPECT_EQ(folded(lines.finish(h)),
            "%0 = strided_slice(%x, begin=[0], end=[2], strides=[1], axes=[0]);\n"
            "%1 = nn.lstm(%0, const(Tensor[(4, 2), float32], [1, 2, 3, 4, 5, 6, 7, 8]), "
            "const(Tensor[(4, 1), float32], [10, 20, 30, 40]), "
            "const(Tensor[(4), float32], [0.1, 1.3, 0.2, 0.4]), "
            "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1]), %h, %c, time_major=True);\n%1.1\n");
}

TEST(FoldRecurrence, InputsThatAreNoSequenceAreJoined) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (const int i : {0, 2}) lstm_round(lines, lines.add(call("negative", element(lines, i))), &h, &c);
  EXPECT_EQ(folded(lines.finish(h)),
            "%0 = strided_slice(%x, begin=[0], end=[1], axes=[0]);\n"
            "%1 = reshape(%0, newshape=[1, 2]);\n%2 = negative(%1);\n"
            "%3 = strided_slice(%x, begin=[2], end=[3], axes=[0]);\n"
            "%4 = reshape(%3, newshape=[1, 2]);\n%5 = negative(%4);\n"
            "%6 = reshape(%2, newshape=[1, 1, 2]);\n%7 = reshape(%5, newshape=[1, 1, 2]);\n"
            "%8 = concatenate((%6, %7));\n"
            "%9 = nn.lstm(%8, " +
                kLstmWeights + ", %h, %c, time_major=True);\n%9.1\n");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The second input is made of the first state: each round is a layer of one step.
TEST(FoldRecurrence, InputsThatDependOnTheStateKeepRoundsApart) {
  Lines lines;
  std::string h = "%h", c = "%c", x = element(lines, 0);
  for (int i = 0; i < 2; ++i) {
    lstm_round(lines, x, &h, &c);
    x = lines.add("concatenate((" + h + ", " + h + "), axis=1)");
  }
  const std::string result = folded(lines.finish(h));
  EXPECT_EQ(count(result, "nn.lstm("), 2u) << result;
  EXPECT_EQ(count(result, "sigmoid("), 0u) << result;
}

// A cell that others read is a value of its own: two layers, of which the second begins with it.
TEST(FoldRecurrence, ACellThatOthersReadEndsTheLayer) {
  Lines lines;
  std::string h = "%h", c = "%c", middle;
  for (int i = 0; i < 3; ++i) {
    lstm_round(lines, element(lines, i), &h, &c);
    if (i == 0) middle = c;
  }
  const std::string result = folded(lines.finish("(" + h + ", " + middle + ")"));
  EXPECT_EQ(count(result, "nn.lstm("), 2u) << result;
  EXPECT_EQ(count(result, "sigmoid("), 0u) << result;
}

TEST(FoldRecurrence, AnotherGateFunctionStays) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 0; i < 2; ++i) lstm_round(lines, element(lines, i), &h, &c, "hard_sigmoid");
  EXPECT_EQ(folded(lines.finish(h)), "unchanged");
}

TEST(FoldRecurrence, OtherWeightsAreAnotherLayer) {
  Lines lines;
  std::string h = "%h", c = "%c";
  lstm_round(lines, element(lines, 0), &h, &c);
  std::string body = lines.finish("");
  Lines rest = lines;
  lstm_round(rest, element(rest, 1), &h, &c);
  std::string second = rest.finish(h).substr(body.size() - 3);
  const size_t at = second.find("[10, 20, 30, 40]");
  second.replace(at, 16, "[10, 20, 30, 41]");
  const std::string result = folded(body.substr(0, body.size() - 3) + second);
  EXPECT_EQ(count(result, "nn.lstm("), 2u) << result;
}

// Layers of one cell: the first on `steps` elements of a sequence, each other one on the states below it.
std::string stacked(int layers, int steps, const char* between = "") {
  constexpr char kUpperWeights[] = "const(Tensor[(4, 1), float32], [1, 2, 3, 4])";
  Lines lines;
  std::vector<std::string> x;
  for (int i = 0; i < steps; ++i) x.push_back(element(lines, i));
  for (int layer = 0; layer < layers; ++layer) {
    std::string h = "%h", c = "%c";
    for (std::string& value : x) {
      const std::string in = layer > 0 && *between != '\0' ? lines.add(call(between, value)) : value;
      lstm_round(lines, in, &h, &c, "sigmoid", layer == 0 ? kInputWeights : kUpperWeights);
      value = h;
    }
  }
  return run_pass("fold_recurrence",
                  "%x: Tensor[(" + std::to_string(steps) +
                      ", 1, 2), float32], %h: Tensor[(1, 1), float32], %c: Tensor[(1, 1), float32]",
                  lines.finish(x.back()));
}

TEST(FoldRecurrence, StackedLayersReadEachOthersSequences) {
  EXPECT_EQ(stacked(2, 3),
            "%0 = nn.lstm(%x, " + kLstmWeights +
                ", %h, %c, time_major=True);\n"
                "%1 = nn.lstm(%0.0, const(Tensor[(4, 1), float32], [1, 2, 3, 4]), "
                "const(Tensor[(4, 1), float32], [10, 20, 30, 40]), "
                "const(Tensor[(4), float32], [0.1, 0.2, 0.3, 0.4]), "
                "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1]), %h, %c, time_major=True);\n%1.1\n");
}

TEST(FoldRecurrence, StackedLayersFoldAtAnyLength) {
  for (const int steps : {64, 65, 200}) EXPECT_EQ(count(stacked(3, steps), "nn.lstm("), 3u) << steps;
  EXPECT_EQ(count(stacked(120, 2), "nn.lstm("), 120u);
}

// What has too many inputs of other kinds waits for the layer below, and keeps its operators in this run.
TEST(FoldRecurrence, NothingIsTakenApartWhereOtherLayersFold) {
  const std::string result = stacked(2, 65, "negative");
  EXPECT_EQ(count(result, "nn.lstm("), 1u);
  EXPECT_EQ(count(result, "sigmoid("), 3u * 65);
}

// [batch, steps, k], the upper layer from the last state of the lower one to the first.
TEST(FoldRecurrence, AnUpperLayerMayReadBackwards) {
  Lines lines;
  const std::string parts = lines.add("split(%x, indices_or_sections=2, axis=1)");
  std::string h = "%h", c = "%c";
  std::vector<std::string> states;
  for (const char* part : {".0", ".1"}) {
    lstm_round(lines, lines.add("reshape(" + parts + part + ", newshape=[2, 2])"), &h, &c);
    states.push_back(h);
  }
  h = "%h", c = "%c";
  for (const int i : {1, 0}) {
    lstm_round(lines, states[static_cast<size_t>(i)], &h, &c, "sigmoid",
               "const(Tensor[(4, 1), float32], [1, 2, 3, 4])");
  }
  EXPECT_EQ(run_pass("fold_recurrence",
                     "%x: Tensor[(2, 2, 2), float32], %h: Tensor[(2, 1), float32], "
                     "%c: Tensor[(2, 1), float32]",
                     lines.finish(h)),
            "%0 = nn.lstm(%x, " + kLstmWeights +
                ", %h, %c);\n"
                "%1 = strided_slice(%0.0, begin=[1], end=[-3], strides=[-1], axes=[1]);\n"
                "%2 = nn.lstm(%1, const(Tensor[(4, 1), float32], [1, 2, 3, 4]), "
                "const(Tensor[(4, 1), float32], [10, 20, 30, 40]), "
                "const(Tensor[(4), float32], [0.1, 0.2, 0.3, 0.4]), "
                "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1]), %h, %c);\n%2.1\n");
}

TEST(FoldRecurrence, FloatsThatAreKeptStay) {
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 0; i < 2; ++i) lstm_round(lines, element(lines, i), &h, &c);
  passes::PassContext context;
  context.keep_float = true;
  EXPECT_EQ(run_pass("fold_recurrence", kSequence, lines.finish(h), context), "unchanged");
}

// ---- GRU ----

constexpr char kGruInput[] = "const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6])";
constexpr char kGruBias[] = "const(Tensor[(3), float32], [0.1, 0.2, 0.3])";
constexpr char kGruSequence[] = "%x: Tensor[(3, 1, 2), float32], %h: Tensor[(1, 1), float32]";

std::string gru_end(Lines& lines, const std::string& z, const std::string& candidate, const std::string& h,
                    const std::string& one) {
  const std::string rest = lines.add(call("subtract", one, z));
  const std::string kept = lines.add(call("multiply", z, h));
  return lines.add(call("add", kept, lines.add(call("multiply", rest, lines.add(call("tanh", candidate))))));
}

std::string gru_after(Lines& lines, const std::string& x, const std::string& h,
                      const std::string& one = "1f") {
  const std::string in =
      lines.add("split(" + lines.add(call("add", lines.add(call("nn.dense", x, kGruInput)), kGruBias)) +
                ", indices_or_sections=3, axis=1)");
  const std::string state = lines.add(
      "split(" +
      lines.add(call("add", lines.add(call("nn.dense", h, "const(Tensor[(3, 1), float32], [10, 20, 30])")),
                     "const(Tensor[(3), float32], [0.25, 0.5, 0.75])")) +
      ", indices_or_sections=3, axis=1)");
  const std::string z = lines.add(call("sigmoid", lines.add(call("add", in + ".0", state + ".0"))));
  const std::string r = lines.add(call("sigmoid", lines.add(call("add", in + ".1", state + ".1"))));
  const std::string reset = lines.add(call("multiply", r, state + ".2"));
  return gru_end(lines, z, lines.add(call("add", in + ".2", reset)), h, one);
}

TEST(FoldRecurrence, RoundsOfAGruAreOneLayer) {
  Lines lines;
  std::string h = "%h";
  for (int i = 0; i < 3; ++i) h = gru_after(lines, element(lines, i), h);
  EXPECT_EQ(run_pass("fold_recurrence", kGruSequence, lines.finish(h)),
            "%0 = nn.gru(%x, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6]), "
            "const(Tensor[(3, 1), float32], [10, 20, 30]), "
            "const(Tensor[(3), float32], [0.35, 0.7, 0.3]), const(Tensor[(3), float32], [0, 0, 0.75]), %h, "
            "time_major=True, reset_after=True);\n%0.1\n");
}

TEST(FoldRecurrence, TheResetMayComeBeforeTheProduct) {
  Lines lines;
  std::string h = "%h";
  for (int i = 0; i < 3; ++i) {
    const std::string in = lines.add(
        "split(" +
        lines.add(call("add", lines.add(call("nn.dense", element(lines, i), kGruInput)), kGruBias)) +
        ", indices_or_sections=3, axis=1)");
    const std::string state =
        lines.add("split(" + lines.add(call("nn.dense", h, "const(Tensor[(2, 1), float32], [10, 20])")) +
                  ", indices_or_sections=2, axis=1)");
    const std::string z = lines.add(call("sigmoid", lines.add(call("add", in + ".0", state + ".0"))));
    const std::string r = lines.add(call("sigmoid", lines.add(call("add", in + ".1", state + ".1"))));
    const std::string inner = lines.add(
        call("nn.dense", lines.add(call("multiply", r, h)), "const(Tensor[(1, 1), float32], [30])"));
    h = gru_end(lines, z, lines.add(call("add", in + ".2", inner)), h, "1f");
  }
  EXPECT_EQ(run_pass("fold_recurrence", kGruSequence, lines.finish(h)),
            "%0 = nn.gru(%x, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6]), "
            "const(Tensor[(3, 1), float32], [10, 20, 30]), "
            "const(Tensor[(3), float32], [0.1, 0.2, 0.3]), const(Tensor[(3), float32], [0, 0, 0]), %h, "
            "time_major=True);\n%0.1\n");
}

// A decoder reads its own state as x: what r multiplies tells the candidate's weights apart, in any order.
TEST(FoldRecurrence, TheInputOfAGruMayBeItsState) {
  const auto dense = [](Lines& lines, const std::string& x, const char* weight) {
    return lines.add("nn.dense(" + x + ", const(Tensor[(1, 1), float32], [" + weight + "]))");
  };
  for (const bool is_reset_first : {false, true}) {
    Lines lines;
    const auto gate = [&](const char* input, const char* recurrent) {
      const std::string in = dense(lines, "%h", input);
      return lines.add(call("sigmoid", lines.add(call("add", in, dense(lines, "%h", recurrent)))));
    };
    const std::string z = gate("1", "10"), r = gate("2", "20");
    const std::string reset = dense(lines, lines.add(call("multiply", r, "%h")), "30");
    const std::string in = dense(lines, "%h", "3");
    const std::string sum = lines.add(is_reset_first ? call("add", reset, in) : call("add", in, reset));
    EXPECT_EQ(run_pass("fold_recurrence", "%h: Tensor[(1, 1), float32]",
                       lines.finish(gru_end(lines, z, sum, "%h", "1f"))),
              "%0 = reshape(%h, newshape=[1, 1, 1]);\n"
              "%1 = nn.gru(%0, const(Tensor[(3, 1), float32], [1, 2, 3]), "
              "const(Tensor[(3, 1), float32], [10, 20, 30]), "
              "const(Tensor[(3), float32], [0, 0, 0]), const(Tensor[(3), float32], [0, 0, 0]), %h, "
              "time_major=True);\n%1.1\n")
        << is_reset_first;
  }
}

// Data and state are multiplied by the same constant: the weights do not tell which is which.
TEST(FoldRecurrence, DataAndStateMayHaveTheSameWeights) {
  constexpr char kWeights[] = "const(Tensor[(4, 1), float32], [1, 2, 3, 4])";
  Lines lines;
  std::string h = "%h", c = "%c";
  for (int i = 0; i < 3; ++i) {
    const std::string part = lines.add("strided_slice(%x, begin=[" + std::to_string(i) + "], end=[" +
                                       std::to_string(i + 1) + "], axes=[0])");
    const std::string x = lines.add("reshape(" + part + ", newshape=[1, 1])");
    lstm_round(lines, x, &h, &c, "sigmoid", kWeights, kWeights);
  }
  EXPECT_EQ(
      run_pass("fold_recurrence",
               "%x: Tensor[(3, 1, 1), float32], %h: Tensor[(1, 1), float32], "
               "%c: Tensor[(1, 1), float32]",
               lines.finish(h)),
      "%0 = nn.lstm(%x, const(Tensor[(4, 1), float32], [1, 2, 3, 4]), "
      "const(Tensor[(4, 1), float32], [1, 2, 3, 4]), const(Tensor[(4), float32], [0.1, 0.2, 0.3, 0.4]), "
      "const(Tensor[(8), float32], [1, 1, 1, 1, 1, 1, 1, 1]), %h, %c, time_major=True);\n%0.1\n");
}

TEST(FoldRecurrence, AComplementOfAnotherNumberStays) {
  Lines lines;
  std::string h = "%h";
  for (int i = 0; i < 2; ++i) h = gru_after(lines, element(lines, i), h, "2f");
  EXPECT_EQ(run_pass("fold_recurrence", kGruSequence, lines.finish(h)), "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::fold_recurrence_test
