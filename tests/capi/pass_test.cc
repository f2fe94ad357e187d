// Rewrites and passes of the caller: pass.hpp against libqplan.so, as an application uses it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <qplan/pass.hpp>
#include <string>
#include <type_traits>

namespace {

using namespace qplan;  // NOLINT: what applications do

// A value of the old function is not an operand of the new one.
static_assert(!std::is_convertible_v<PreValue, PostValue> && !std::is_convertible_v<PostValue, PreValue>);
static_assert(!std::is_constructible_v<PostValue, PreValue> &&
              !std::is_constructible_v<PostValue, qplan_pre_value>);
static_assert(!std::is_invocable_v<decltype(&Post::replace), Post&, PostValue, PostValue>);
static_assert(!std::is_invocable_v<decltype(&Post::replace), Post&, PreValue, PreValue>);
static_assert(!std::is_constructible_v<std::vector<PostValue>, std::initializer_list<PreValue>>);

void append(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

struct Options {
  std::vector<const char*> skip;
  const char* dump_after = nullptr;
};

struct Result {
  qplan_status status;
  std::string text, error, dump;
};

struct Streams {
  std::string error, dump;
};

// The canonical text of a function of %x: Tensor[(1, 4), int8].
Result canonical(const std::string& body, const std::vector<Pass>& list, const Options& options = {}) {
  const std::string path =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".relay";
  std::ofstream(path) << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 4), int8]) {\n" << body << "}\n";
  const Passes passes(list);
  Streams streams;
  qplan_pack_options c_options = {};
  c_options.struct_size = sizeof(c_options);
  c_options.user = &streams;
  c_options.error_text = [](void* user, const char* bytes, size_t size) {
    append(&static_cast<Streams*>(user)->error, bytes, size);
  };
  c_options.dump = [](void* user, const char* bytes, size_t size) {
    append(&static_cast<Streams*>(user)->dump, bytes, size);
  };
  c_options.dump_after = options.dump_after;
  c_options.skip = options.skip.data();
  c_options.num_skip = static_cast<uint32_t>(options.skip.size());
  passes.attach(&c_options);
  Result result;
  result.status = qplan_import_text(path.c_str(), &c_options, 1, append, &result.text, nullptr);
  result.error = streams.error;
  result.dump = streams.dump;
  std::remove(path.c_str());
  return result;
}

const char kClip[] = "  clip(%x, a_min=-5f, a_max=6f, name=\"here\")\n";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// clip to 6 becomes clip to `bound`.
Rewrite widen(double bound, const std::string& name = "widen") {
  return Rewrite(
      name, op("clip")(any().as("data")).attr("a_max", 6), [bound](const Pre&, Post& post, const Matches& m) {
        post.why("because");
        return post.call("clip", {post[m["data"]]}, {{"a_min", -5}, {"a_max", bound}}, m.root().name());
      });
}

TEST(UserPass, ARewriteIsPartOfThePipeline) {
  const Result plain = canonical(kClip, {});
  ASSERT_EQ(plain.status, QPLAN_OK) << plain.error;
  EXPECT_TRUE(contains(plain.text, "a_max=6f")) << plain.text;
  const Result result = canonical(kClip, {Pass("mine", {widen(7)})});
  ASSERT_EQ(result.status, QPLAN_OK) << result.error;
  EXPECT_TRUE(contains(result.text, "a_max=7f")) << result.text;
}

TEST(UserPass, ItIsLeftOutAndDumpedByItsName) {
  const std::vector<Pass> passes = {Pass("mine", {widen(7)}).after("fuse_activation")};
  Options options;
  for (const char* name : {"mine", "widen"}) {
    options.skip = {name};
    const Result result = canonical(kClip, passes, options);
    ASSERT_EQ(result.status, QPLAN_OK) << result.error;
    EXPECT_TRUE(contains(result.text, "a_max=6f")) << name;
  }
  options.skip = {};
  options.dump_after = "mine";
  const Result result = canonical(kClip, passes, options);
  EXPECT_EQ(result.dump.substr(0, 14), "// after mine\n");
  EXPECT_TRUE(contains(result.dump, "a_max=7f"));
}

TEST(UserPass, WhatIsLeftOutDoesNotRun) {
  int runs = 0;
  const Pass pass("mine", [&](const Pre&, Post&) {
    ++runs;
    throw std::runtime_error("boom");
  });
  const auto build = [&](const Pre&, Post&, const Matches&) -> std::optional<PostValue> {
    ++runs;
    throw std::runtime_error("boom");
  };
  Options options;
  options.skip = {"mine"};
  EXPECT_EQ(canonical(kClip, {pass}, options).error, "");
  EXPECT_EQ(canonical(kClip, {Pass("mine", {Rewrite("bad", op("clip"), build)})}, options).error, "");
  options.skip = {"bad"};
  EXPECT_EQ(canonical(kClip, {Pass("mine", {Rewrite("bad", op("clip"), build)})}, options).error, "");
  EXPECT_EQ(runs, 0);
}

// 24 channels, which remove_dead_channels leaves as they are, become 32 where their reader has no weights for
// the new ones: those that remove_dead_channels would take away again.
TEST(UserPass, MayBringChannelsToTheNumberOfItsDevice) {
  const auto weights = [](int rows, int columns) {
    std::string text;
    for (int i = 0; i < rows * columns; ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(i * 37 % 201 - 100);
    }
    return "const(Tensor[(" + std::to_string(rows) + ", " + std::to_string(columns) + "), int8], [" + text +
           "])";
  };
  const std::string body = "  %0 = qnn.dense(%x, " + weights(24, 4) +
                           ", -128, 0, 0.5f, 0.5f);\n  %1 = qnn.requantize(%0, 0.25f, 0, 20f, -128);\n"
                           "  %2 = qnn.dense(%1, " +
                           weights(3, 24) + ", -128, 0, 20f, 0.5f);\n  qnn.requantize(%2, 10f, 0, 900f, 0)\n";
  const Pattern sums = op("qnn.dense").as("sums"), made = op("qnn.requantize")(sums).as("made");
  const auto build = [](const Pre& pre, Post& post, const Matches& m) -> std::optional<PostValue> {
    const PreNode layer = *pre.producer(m["sums"]), requantize = *pre.producer(m["made"]), reader = m.root();
    const Shape shape = pre.type(layer.operand(1)).shape, read = pre.type(reader.operand(1)).shape;
    const int64_t channels = shape[0], more = (channels + 15) / 16 * 16;
    if (channels == more) return std::nullopt;
    auto made_by = pre.elements<int8_t>(layer.operand(1));
    made_by.resize(static_cast<size_t>(more * shape[1]));
    const auto old = pre.elements<int8_t>(reader.operand(1));
    std::vector<int8_t> read_by(static_cast<size_t>(read[0] * more));
    for (size_t i = 0; i < old.size(); ++i) read_by[i / channels * more + i % channels] = old[i];
    const auto with = [&](const PreNode& node, std::vector<PostValue> operands) {
      for (size_t i = operands.size(); i < node.num_operands(); ++i)
        operands.push_back(post[node.operand(i)]);
      Attrs attrs = node.attrs();
      attrs.erase(
          std::remove_if(attrs.begin(), attrs.end(), [](const auto& a) { return a.first == "units"; }),
          attrs.end());
      return post.call(node.op(), operands, attrs, node.name());
    };
    const PostValue wide = with(layer, {post[layer.operand(0)], post.constant(made_by, {more, shape[1]})});
    return with(reader, {with(requantize, {wide}), post.constant(read_by, {read[0], more})});
  };
  const Result result =
      canonical(body, {Pass("mine", {Rewrite("of_16", op("qnn.dense")(made, constant()), build)})});
  ASSERT_EQ(result.status, QPLAN_OK) << result.error;
  EXPECT_TRUE(contains(result.text, "Tensor[(32, 4), int8]")) << result.text;
}

TEST(UserPass, TakesItsPlaceBehindThePassItNames) {
  // The second pass sees what the first one made only when it comes after it.
  const auto second = [](const std::string& after) {
    return Pass("second",
                {Rewrite(
                    "again", op("clip").attr("a_max", 7),
                    [](const Pre&, Post& post, const Matches& m) {
                      return post.call("clip", {post[m.root().operand(0)]}, {{"a_min", -5}, {"a_max", 8}});
                    })})
        .after(after);
  };
  Options options;
  options.dump_after = "second";
  const Result behind = canonical(kClip, {Pass("first", {widen(7)}), second("first")}, options);
  EXPECT_TRUE(contains(behind.dump.substr(0, 200), "a_max=8f")) << behind.dump;
  const Result unknown = canonical(kClip, {second("nonsense")});
  EXPECT_EQ(unknown.status, QPLAN_INVALID_ARGUMENT);
  const std::string expected =
      "user pass 'second' is to run after 'nonsense', which is no pass before it; known: fold_recurrence, ";
  EXPECT_EQ(unknown.error.substr(0, expected.size()), expected);
  const Result twice = canonical(kClip, {Pass("dead_code", {widen(7)})});
  EXPECT_EQ(twice.error, "user pass 'dead_code': there is a pass of that name");
}

TEST(UserPass, WhatARewriteDeclinesStays) {
  const Result result = canonical(
      kClip, {Pass("mine", {Rewrite("never", op("clip"),
                                    [](const Pre&, Post&, const Matches&) { return std::nullopt; })})});
  EXPECT_EQ(result.text, canonical(kClip, {}).text);
}

TEST(UserPass, ExceptionsBecomeTheErrorOfThePack) {
  const auto failing = [](auto exception) {
    return canonical(
        kClip, {Pass("mine", {Rewrite("bad", op("clip"),
                                      [=](const Pre&, Post&, const Matches&) -> std::optional<PostValue> {
                                        throw exception;
                                      })})});
  };
  const Result error = failing(PassError(QPLAN_MODEL_UNSUPPORTED, "no clips please"));
  EXPECT_EQ(error.status, QPLAN_MODEL_UNSUPPORTED);
  EXPECT_EQ(error.error, "rewrite 'bad' at clip 'here': no clips please");
  EXPECT_EQ(failing(std::runtime_error("boom")).error, "rewrite 'bad' at clip 'here': boom");
  EXPECT_EQ(failing(42).error, "rewrite 'bad' at clip 'here': a callback threw what is no std::exception");

  for (const qplan_status status : {QPLAN_OK, QPLAN_PENDING}) {
    const Result no_error = failing(PassError(status, "lost"));
    EXPECT_EQ(no_error.status, QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(no_error.error, "rewrite 'bad' at clip 'here': lost");
  }

  const Result run =
      canonical(kClip, {Pass("mine", [](const Pre&, Post&) { throw std::runtime_error("boom"); })});
  EXPECT_EQ(run.error, "pass 'mine': boom");
  const Result where = canonical(
      kClip,
      {Pass("mine",
            {Rewrite("bad",
                     op("clip").where("that throws",
                                      [](const Pre&, PreValue) -> bool { throw std::runtime_error("boom"); }),
                     [](const Pre&, Post&, const Matches&) { return std::nullopt; })})});
  EXPECT_EQ(where.error, "condition 'that throws' of a pattern: boom");
}

TEST(UserPass, MistakesNameTheRewrite) {
  const auto building = [](Rewrite::Build build) {
    return canonical(kClip, {Pass("mine", {Rewrite("bad", op("clip")(any().as("data")), std::move(build))})})
        .error;
  };
  EXPECT_EQ(building([](const Pre&, Post& post, const Matches& m) {
              return post.call("cast", {post[m["data"]]}, {{"dtype", "int32"}});
            }),
            "rewrite 'bad' at clip 'here': rebuild: clip 'here' (Tensor[(1, 4), int8]) is replaced by a "
            "value of another type, Tensor[(1, 4), int32]");
  EXPECT_EQ(
      building([](const Pre&, Post& post, const Matches& m) { return post.call("clop", {post[m["data"]]}); }),
      "rewrite 'bad' at clip 'here': post: there is no operator 'clop'");
  EXPECT_EQ(building([](const Pre&, Post& post, const Matches& m) { return post[m["nothing"]]; }),
            "rewrite 'bad' at clip 'here': matches: nothing was matched as 'nothing'");
  EXPECT_EQ(building([](const Pre&, Post& post, const Matches& m) {
              return post.call("clip", {post[m["data"]]}, {{"a_min", "low"}, {"a_max", 1}}, "new");
            }),
            "rewrite 'bad' at clip 'here': clip 'new': attribute 'a_min' must be a number");
  EXPECT_NE(building([](const Pre&, Post& post, const Matches& m) {
              return post[m.root().result()];
            }).find("it is what the rewrite replaces, or made from that; build from the node's operands"),
            std::string::npos);
  EXPECT_EQ(building([](const Pre&, Post&, const Matches&) { return PostValue(qplan_post_value{999}); }),
            "rewrite 'bad' at clip 'here': post: no value 999");
}

TEST(UserPass, WhatNeverEndsIsStoppedByName) {
  const Result result = canonical(
      kClip,
      {Pass("mine", {Rewrite("flip", op("clip"), [](const Pre&, Post& post, const Matches& m) {
              const double max = m.root().attr("a_max").as_double();
              return post.call("clip", {post[m.root().operand(0)]}, {{"a_min", -5}, {"a_max", 13 - max}});
            })})});
  EXPECT_EQ(result.status, QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(
      result.error,
      "the passes still change the module after 100 rounds, where each change must come to an end; in the "
      "last one changed: 'mine'");
}

TEST(UserPass, APassReadsAndReplacesAnything) {
  const std::string body =
      "  %0 = clip(%x, a_min=-5f, a_max=6f, name=\"a\");\n  %1 = clip(%0, a_min=-4f, a_max=20f, "
      "name=\"b\");\n"
      "  %2 = nn.pad(%1, 0, pad_width=[[0, 0], [1, 2]]);\n  (%0, %2)\n";
  std::string seen;
  const Pass reader("reader", [&](const Pre& pre, Post&) {
    if (!seen.empty()) return;
    seen = pre.function_name() + ":";
    for (const PreNode& node : pre.nodes()) {
      seen += " " + node.op() + "/" + std::to_string(node.num_operands()) + "/" +
              std::to_string(pre.num_uses(node.result()));
    }
    const PreNode pad = pre.nodes().back();
    const IntLists widths = pad.attr("pad_width").as_int_lists();
    seen += " pad " + std::to_string(widths.at(1).at(1)) + " " + pad.attr("pad_mode").as_string();
    seen += " value " + std::to_string(pre.elements<int32_t>(pad.operand(1)).at(0));
    seen += " first " + pre.producer(pad.operand(0))->name() + ", " +
            std::to_string(pre.type(pre.params()[0]).shape[1]);
    EXPECT_FALSE(pre.producer(pre.params()[0]));
    EXPECT_EQ(pre.outputs()[0], pre.nodes()[0].result());
    EXPECT_THROW(pre.elements<float>(pad.operand(1)), PassError);
    EXPECT_THROW(pad.attr("nonsense"), PassError);
    EXPECT_THROW(pad.operand(5), PassError);
  });
  ASSERT_EQ(canonical(body, {reader}).status, QPLAN_OK);
  EXPECT_EQ(seen, "main: clip/1/2 clip/1/1 nn.pad/2/1 pad 2 constant value 0 first b, 4");

  // Each clip gets a bound one lower, once.
  const Pass lower("lower", [](const Pre& pre, Post& post) {
    for (const PreNode& node : pre.nodes()) {
      if (!node.is("clip") || node.attr("a_min").as_double() != -5) continue;
      Attrs attrs = node.attrs();
      for (auto& [name, value] : attrs) {
        if (name == "a_min") value = value.as_double() - 1;
      }
      post.replace(node.result(), post.call("clip", {post[node.operand(0)]}, attrs, node.name()));
    }
  });
  const Result result = canonical(kClip, {lower});
  ASSERT_EQ(result.status, QPLAN_OK) << result.error;
  EXPECT_TRUE(contains(result.text, "a_min=-6f")) << result.text;
}

TEST(UserPass, ValuesAreReplacedInTheOrderOfTheNodes) {
  const std::string body =
      "  %0 = clip(%x, a_min=-5f, a_max=6f, name=\"a\");\n  clip(%0, a_min=-4f, a_max=20f, name=\"b\")\n";
  const Result result = canonical(body, {Pass("backwards", [](const Pre& pre, Post& post) {
                                    const auto nodes = pre.nodes();
                                    post.replace(nodes[1].result(), post[nodes[1].operand(0)]);
                                    post.replace(nodes[0].result(), post[pre.params()[0]]);
                                  })});
  EXPECT_EQ(result.error,
            "pass 'backwards': edit: clip 'a' (Tensor[(1, 4), int8]) is replaced after clip 'b' was copied "
            "or replaced; "
            "replace values in the order of their nodes");
}

TEST(UserPass, AllResultsOfANodeAreReplacedBeforeOneIsRead) {
  const std::string body = "  %0 = split(%x, indices_or_sections=2, axis=1);\n  (%0.0, %0.1)\n";
  const Result result = canonical(body, {Pass("mine", [](const Pre& pre, Post& post) {
                                    const PreNode split = pre.nodes()[0];
                                    const PostValue half =
                                        post.call("strided_slice", {post[split.operand(0)]},
                                                  {{"begin", Ints{0, 0}}, {"end", Ints{1, 2}}});
                                    post.replace(split.result(0), half);
                                    post.replace(split.result(1), post[split.result(1)]);
                                  })});
  EXPECT_EQ(result.status, QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(result.error,
            "pass 'mine': edit: split (node 0) has 2 results, of which 1 are replaced; replace all before "
            "anything after them is read or replaced");
}

TEST(UserPass, AValueMayBeWrapped) {
  bool done = false;
  const Result wrapped = canonical(
      kClip, {Pass("wrap", [&](const Pre& pre, Post& post) {
        if (done) return;
        done = true;
        const PreValue value = pre.nodes()[0].result();
        const PostValue sum = post.call("concatenate", {post[value], post[value]}, {{"axis", 1}});
        post.replace(value, post.call("strided_slice", {sum}, {{"begin", Ints{0, 2}}, {"end", Ints{1, 6}}}));
      })});
  ASSERT_EQ(wrapped.status, QPLAN_OK) << wrapped.error;
  EXPECT_TRUE(contains(wrapped.text, "concatenate")) << wrapped.text;
}

TEST(UserPass, ConditionsOfPatternsReadTheFunction) {
  const auto rewrite = [](size_t uses) {
    return Pass(
        "mine",
        {Rewrite("widen",
                 op("clip")(any().as("data"))
                     .attr("a_max", 6)
                     .where("read so often",
                            [=](const Pre& pre, PreValue value) { return pre.num_uses(value) == uses; }),
                 [](const Pre&, Post& post, const Matches& m) {
                   return post.call("clip", {post[m["data"]]}, {{"a_min", -5}, {"a_max", 7}});
                 })});
  };
  EXPECT_TRUE(contains(canonical(kClip, {rewrite(1)}).text, "a_max=7f"));
  EXPECT_TRUE(contains(canonical(kClip, {rewrite(2)}).text, "a_max=6f"));
}

TEST(UserPassC, MissingPartsAreRefused) {
  const auto refusal = [](const qplan_user_pass* pass) {
    qplan_pack_options options = {};
    options.struct_size = sizeof(options);
    options.passes = &pass;
    options.num_passes = 1;
    qplan_error error = {};
    error.struct_size = sizeof(error);
    std::string text;
    EXPECT_EQ(qplan_pack_bytes("", 0, "m", &options, append, &text, &error), QPLAN_INVALID_ARGUMENT);
    return std::string(error.text);
  };
  EXPECT_EQ(refusal(nullptr), "pack options: pass 0 is NULL");
  qplan_user_pass pass = {};
  EXPECT_EQ(refusal(&pass), "user pass: struct_size is not set");
  pass.struct_size = sizeof(pass);
  EXPECT_EQ(refusal(&pass), "user pass: it has no name");
  pass.name = "mine";
  EXPECT_EQ(refusal(&pass), "user pass 'mine' needs either rewrites or a function run");
  const qplan_user_rewrite* rewrites[] = {nullptr};
  pass.num_rewrites = 1;
  EXPECT_EQ(refusal(&pass), "user pass 'mine': rewrites is NULL");
  pass.rewrites = rewrites;
  EXPECT_EQ(refusal(&pass), "user pass 'mine': rewrite 0 is NULL");
  qplan_user_rewrite rewrite = {};
  rewrite.struct_size = sizeof(rewrite);
  rewrites[0] = &rewrite;
  EXPECT_EQ(refusal(&pass), "user pass 'mine': a rewrite has no name");
  rewrite.name = "r";
  EXPECT_EQ(refusal(&pass), "user rewrite 'r' has no pattern");
  const Pattern pattern = any();
  rewrite.pattern = pattern.c_pattern();
  EXPECT_EQ(refusal(&pass), "user rewrite 'r' has no function build");
}

TEST(UserPassC, InfosWithoutASizeAreRefused) {
  struct Seen {
    std::vector<qplan_status> statuses;
    std::vector<std::string> texts;
  } seen;
  const auto run = [](void* user, const qplan_pre* pre, qplan_post* post) -> qplan_status {
    auto& seen = *static_cast<Seen*>(user);
    const auto note = [&](qplan_status status) {
      seen.statuses.push_back(status);
      seen.texts.emplace_back(qplan_pre_error(pre));
    };
    qplan_pre_value x = {};
    qplan_post_value new_x = {};
    EXPECT_EQ(qplan_pre_param(pre, 0, &x), QPLAN_OK);
    EXPECT_EQ(qplan_post_value_of(post, x, &new_x), QPLAN_OK);
    for (const uint32_t size : {0u, 4u}) {  // nothing, and what holds the size alone
      qplan_function_info function = {};
      qplan_value_info value = {};
      qplan_node_info node = {};
      function.struct_size = value.struct_size = node.struct_size = size;
      note(qplan_pre_function_info(pre, &function));
      note(qplan_pre_value_info(pre, x, &value));
      note(qplan_pre_node_info(pre, {0}, &node));
      note(qplan_post_value_info(post, new_x, &value));
    }
    qplan_function_info two_fields = {};
    two_fields.struct_size = 8;
    EXPECT_EQ(qplan_pre_function_info(pre, &two_fields), QPLAN_OK);
    EXPECT_EQ(two_fields.num_params, 1u);
    EXPECT_EQ(two_fields.num_outputs, 0u) << "it is beyond the caller's struct";
    EXPECT_EQ(two_fields.struct_size, 8u);
    return QPLAN_OK;
  };
  qplan_user_pass pass = {};
  pass.struct_size = sizeof(pass);
  pass.name = "mine";
  pass.user = &seen;
  pass.run = run;
  const qplan_user_pass* const passes[] = {&pass};
  qplan_pack_options options = {};
  options.struct_size = sizeof(options);
  options.passes = passes;
  options.num_passes = 1;
  const std::string model = std::string("def @main(%x: Tensor[(1, 4), int8]) {\n") + kClip + "}\n";
  std::string plan;
  ASSERT_EQ(qplan_pack_bytes(model.data(), model.size(), "m", &options, append, &plan, nullptr), QPLAN_OK);
  ASSERT_GE(seen.statuses.size(), 8u);
  for (size_t i = 0; i < seen.statuses.size(); ++i) {
    EXPECT_EQ(seen.statuses[i], QPLAN_INVALID_ARGUMENT) << i;
    EXPECT_EQ(seen.texts[i], "info has no struct_size; set it to the size of the struct before the call")
        << i;
  }
}

// ---- the same plan as the built-in pass ----
template <typename T>
PostValue quantized(const Pre& pre, Post& post, const Matches& m) {
  const std::vector<float> data = pre.elements<float>(m["data"]);
  const float scale = pre.elements<float>(m["scale"]).at(0);
  const auto zero_point = static_cast<float>(pre.elements<int32_t>(m["zero_point"]).at(0));
  std::vector<T> result;
  for (const float x : data) {
    const double q = std::round(static_cast<double>(x / scale)) + static_cast<double>(zero_point);
    result.push_back(
        static_cast<T>(std::clamp<double>(q, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
  }
  return post.constant(result, pre.type(m["data"]).shape, pre.name(m["data"]));
}

std::string pack_layer(const Passes& passes, const std::vector<const char*>& skip) {
  const std::string text =
      "%0 = qnn.quantize(%weight, 0.5f, 0, out_dtype=\"int8\");\n"
      "%1 = qnn.dense(%x, %0, 3, 0, 0.25f, 0.5f);\n"
      "%2 = qnn.quantize(%bias, 0.125f, 0, out_dtype=\"int32\");\n"
      "%3 = nn.bias_add(%1, %2, axis=1);\n"
      "qnn.requantize(%3, 0.125f, 0, 0.5f, -1)\n";
  std::vector<float> weight(8 * 4), bias(8);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i * 37 % 101) - 50.25F;
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) * 3.5F;
  int64_t weight_shape[] = {8, 4}, bias_shape[] = {8};
  const int64_t input_shape[] = {1, 4};
  const DLTensor weight_tensor = {weight.data(), {kDLCPU, 0}, 2, kFloat32, weight_shape, nullptr, 0};
  const DLTensor bias_tensor = {bias.data(), {kDLCPU, 0}, 1, kFloat32, bias_shape, nullptr, 0};
  const qplan_named_tensor bindings[] = {{"weight", &weight_tensor}, {"bias", &bias_tensor}};
  const qplan_named_type input = {"x", kInt8, 2, input_shape};
  qplan_pack_options options = {};
  options.struct_size = sizeof(options);
  options.bindings = bindings;
  options.num_bindings = 2;
  options.input_types = &input;
  options.num_input_types = 1;
  options.skip = skip.data();
  options.num_skip = static_cast<uint32_t>(skip.size());
  passes.attach(&options);
  std::string plan;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  const qplan_status status =
      qplan_pack_bytes(text.data(), text.size(), "layer.relay", &options, append, &plan, &error);
  return status == QPLAN_OK ? plan : std::string("error: ") + error.text;
}

TEST(UserPass, QuantisesConstantsAsTheBuiltInPassDoes) {
  const Passes none({});
  const std::string built_in = pack_layer(none, {});
  ASSERT_NE(built_in.substr(0, 5), "error") << built_in;
  EXPECT_EQ(pack_layer(none, {"quantize_constants"}).substr(0, 5), "error");
  const auto node = [] {
    return op("qnn.quantize")(constant().as("data"), constant().as("scale"), constant().as("zero_point"));
  };
  const Passes mine({Pass("mine", {Rewrite("quantize_int8", node().dtype(kInt8), quantized<int8_t>),
                                   Rewrite("quantize_int32", node().dtype(kInt32), quantized<int32_t>)})
                         .after("fold_constants")});
  const std::string plan = pack_layer(mine, {"quantize_constants"});
  EXPECT_TRUE(plan == built_in) << "plans of " << plan.size() << " and " << built_in.size()
                                << " bytes: " << plan.substr(0, 200);
}

}  // namespace
