// Texts that are wrong: a message with line, column and the line itself, and never a crash.
#include <gtest/gtest.h>

#include <random>

#include "src/packer/error.h"
#include "src/packer/text/text.h"

namespace qplan::text::hostile_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse(text, "t");
  } catch (const PackError& error) {
    return error.what();
  }
  return "";
}

// In the second line of a function with parameters %x and %y.
std::string body_refusal(const std::string& body) {
  return refusal("def @main(%x: Tensor[(4), int8], %y: Tensor[(4), int8]) {\n" + body + "\n}");
}

TEST(TextErrors, TellPlaceAndLine) {
  EXPECT_EQ(body_refusal("  %0 = clip(%x, a_min=0f, a_max=6f;"),
            "t:2:35: expected ')', found ';': `%0 = clip(%x, a_min=0f, a_max=6f;`");
  EXPECT_EQ(body_refusal("  %0 = relu(%x); %0"), "t:2:8: unknown operator 'relu': `%0 = relu(%x); %0`");
  EXPECT_EQ(body_refusal("  %3"), "t:2:3: '%3' is not defined: `%3`");
  EXPECT_EQ(body_refusal("%0 = %x; %0 = %y; %0"), "t:2:10: '%0' is defined twice: `%0 = %x; %0 = %y; %0`");
  EXPECT_EQ(body_refusal("%0 = transpose(%x, axes=[1]); %0"),
            "t:2:6: transpose (node 0): attribute 'axes' is [1], expected a permutation of 0 to 0: `%0 = "
            "transpose(%x, axes=[1]); %0`");
  EXPECT_EQ(body_refusal("clip(%x, a_min=0f, a_min=1f)"),
            "t:2:20: attribute 'a_min' is there twice: `clip(%x, a_min=0f, a_min=1f)`");
  EXPECT_EQ(body_refusal("clip(%x, a_min=%y)"),
            "t:2:16: expected an attribute's value, found '%y': `clip(%x, a_min=%y)`");
  EXPECT_EQ(body_refusal("%x.0.1"), "t:2:1: '%x.0.1' is not defined: `%x.0.1`");
  EXPECT_EQ(body_refusal("%x.1"), "t:2:1: there is no '%x.1', '%x' has 1 result: `%x.1`");
  EXPECT_EQ(body_refusal("(%x, %y).2"), "t:2:10: there is no '2' in a tuple of 2: `(%x, %y).2`");
  EXPECT_EQ(body_refusal("%x ^"), "t:2:4: unexpected character: `%x ^`");
  EXPECT_EQ(body_refusal("fn (%z) { %z }"), "t:2:1: 'fn' is not supported here: `fn (%z) { %z }`");
  EXPECT_EQ(body_refusal("(%x, (%y, %x))"), "t:2:6: a tuple in a tuple is not supported: `(%x, (%y, %x))`");
  EXPECT_EQ(
      body_refusal("clip((%x, %y), a_min=0f, a_max=1f)"),
      "t:2:6: a tuple cannot be an operand here, take one of it: %0.0: `clip((%x, %y), a_min=0f, a_max=1f)`");
  EXPECT_EQ(
      body_refusal("concatenate(%x, %y)"),
      "t:2:17: operator 'concatenate' takes one tuple: concatenate((%0, %1), ...): `concatenate(%x, %y)`");
}

TEST(TextErrors, Headers) {
  EXPECT_EQ(refusal(""), "t:1:1: there is no function, expected 'def @main(...) { ... }': ``");
  EXPECT_EQ(refusal("fn (%x) {}"), "t:1:10: expected an expression, found '}': `fn (%x) {}`");
  EXPECT_EQ(
      refusal("#[version = \"0.0.4\"]"),
      "t:1:13: unknown version '\"0.0.4\"' of the text format, expected \"0.0.5\": `#[version = \"0.0.4\"]`");
  EXPECT_EQ(
      refusal("def @f(%x) { %x }"),
      "t:1:8: the type of '%x' is unknown: neither the text nor its uses state it; write it after the name, "
      "%x: Tensor[(1, 3), float32]: `def @f(%x) { %x }`");
  EXPECT_EQ(refusal("def @f(%x: int8, %x: int8) { %x }"),
            "t:1:18: '%x' is defined twice: `def @f(%x: int8, %x: int8) { %x }`");
  EXPECT_EQ(refusal("def @f(%x: int7) { %x }"), "t:1:12: unknown dtype 'int7': `def @f(%x: int7) { %x }`");
  EXPECT_EQ(
      refusal("def @f(%x: Tensor[(0), int8]) { %x }"),
      "t:1:12: extent 0 of Tensor[(0), int8] must be at least 1: `def @f(%x: Tensor[(0), int8]) { %x }`");
  EXPECT_EQ(refusal("def @f(%x: Tensor[(4294967296, 4294967296), int8]) { %x }").substr(0, 82),
            "t:1:12: Tensor[(4294967296, 4294967296), int8] is larger than 1099511627776 bytes:");
  EXPECT_EQ(refusal("def @f(%x: Tensor[(?), int8]) { %x }"),
            "t:1:20: unexpected character: `def @f(%x: Tensor[(?), int8]) { %x }`");
  EXPECT_EQ(refusal("def @f(%x: int8) -> int32 { %x }"),
            "t:1:29: the result is int8, which is not the type that '->' declares: `def @f(%x: int8) -> "
            "int32 { %x }`");
  EXPECT_EQ(refusal("def @f(%x: int8) { %x } def @f(%x: int8) { %x }").substr(0, 41),
            "t:1:29: function '@f' is defined twice: `");
  EXPECT_EQ(refusal("def @f(%x: int8, a=1, a=2) { %x }").substr(0, 42),
            "t:1:23: attribute 'a' is there twice: `def");
  EXPECT_EQ(refusal("def @f(%x: int8, output_names=[\"a\", \"b\"]) { %x }").substr(0, 48),
            "t:1:5: there are 2 output names for 1 outputs: `");
}

TEST(TextErrors, Calls) {
  EXPECT_EQ(body_refusal("@f(%x)"),
            "t:2:1: there is no function '@f' above, and none that declares its result: def @f(...) -> type: "
            "`@f(%x)`");
  EXPECT_EQ(refusal("def @main(%x: int8) -> int8 { @main(%x) }"),
            "function 'main': it is part of, or called from, a circle of calls");
  EXPECT_EQ(refusal("def @f(%x: int8) { %x }\ndef @main(%x: int32) { @f(%x) }"),
            "function 'main': call of '@f' (node 0): operand 0 is int32, expected int8");
}

TEST(TextErrors, Literals) {
  const auto not_value = [](const std::string& literal, const std::string& dtype) {
    EXPECT_EQ(refusal("def @f() {\n" + literal + "}"),
              "t:2:1: '" + literal + "' is not a value of " + dtype + ": `" + literal + "}`");
  };
  not_value("2147483648", "int32");
  not_value("128i8", "int8");
  not_value("-1u8", "uint8");
  not_value("1e39f", "float32");
  not_value("18446744073709551616u64", "uint64");
  for (const std::string literal : {"1g", "1.5i8", "0x10", "1e", "1f16", "1..5", "1.5.5"}) {
    EXPECT_EQ(refusal("def @f() {\n" + literal + "}"),
              "t:2:1: '" + literal + "' is not a number: `" + literal + "}`");
  }
  EXPECT_EQ(refusal("def @f() {\nconst(Tensor[(2), int8], [1, 2, 3])}"),
            "t:2:7: the constant has 3 elements, expected 2 for Tensor[(2), int8]: `const(Tensor[(2), int8], "
            "[1, 2, "
            "3])}`");
  EXPECT_EQ(refusal("def @f() {\nconst(Tensor[(2), int8], [1, 200])}"),
            "t:2:30: '200' is not a value of int8: `const(Tensor[(2), int8], [1, 200])}`");
  EXPECT_EQ(refusal("def @f() {\nconst(Tensor[(1), float16], [1])}"),
            "t:2:30: '1' is not a value of float16: `const(Tensor[(1), float16], [1])}`");
  EXPECT_EQ(refusal("def @f() {\nconst(Tensor[(1000000000000), int8], [1])}"),
            "t:2:7: the constant has 1 elements, expected 1000000000000 for Tensor[(1000000000000), int8]: "
            "`const(Tensor[(1000000000000), int8], [1])}`");
}

TEST(TextErrors, StringsAndComments) {
  EXPECT_EQ(body_refusal("cast(%x, dtype=\"int32)"),
            "t:2:16: this string has no end, expected '\"' on the same line: `cast(%x, dtype=\"int32)`");
  EXPECT_EQ(body_refusal("cast(%x, dtype=\"in\\q\")"),
            "t:2:19: unknown escape, expected one of \\\" \\\\ \\n \\t \\xHH: `cast(%x, dtype=\"in\\q\")`");
  EXPECT_EQ(body_refusal("%x /* /* */"), "t:2:4: this comment has no end, expected '*/': `%x /* /* */`");
}

TEST(TextErrors, LongLinesAreCutAroundThePlace) {
  const std::string many(10000, ' ');
  const std::string message = body_refusal("clip(%x," + many + "a_min=0f ^" + many + ")");
  EXPECT_LT(message.size(), 250u);
  EXPECT_NE(message.find("unexpected character: `"), std::string::npos) << message;
}

TEST(TextErrors, Metadata) {
  const auto metadata = [](const std::string& json) {
    const std::string message = refusal("def @f() {\nmeta[relay.Constant][0] }\n#[metadata]\n" + json);
    return message.substr(0, message.find(": `"));
  };
  const auto with_array = [&](const std::string& base64) {
    return metadata(R"({"root": 1, "nodes": [{"type_key": ""}, {"keys": ["relay.Constant"], "data": [2]},
        {"data": [3]}, {"type_key": "relay.Constant", "attrs": {"data": "0"}}], "b64ndarrays": [")" +
                    base64 + "\"]}");
  };
  EXPECT_EQ(metadata("{"), "t:3:3: metadata: the text after '#[metadata]' is not JSON (byte 3)");
  EXPECT_EQ(metadata("[]"), "t:3:3: metadata: 'nodes' is missing");
  EXPECT_EQ(metadata(R"({"nodes": [], "root": 0})"),
            "t:3:3: metadata: an index into 'nodes' is not a number below 0");
  EXPECT_EQ(metadata(R"({"nodes": [{"keys": ["relay.Constant"], "data": [-1]}], "root": 0})"),
            "t:3:3: metadata: an index into 'nodes' is not a number below 1");
  EXPECT_EQ(metadata(R"({"nodes": [{"keys": ["relay.Constant"], "data": []}], "root": 0})"),
            "t:3:3: metadata: 'keys' and 'data' of the root are not arrays of one length");
  EXPECT_EQ(metadata(R"({"nodes": [{"keys": [], "data": []}], "root": 0})"),
            "t:2:1: section #[metadata] has 0 constants, there is no 0");
  EXPECT_EQ(with_array("*"), "t:3:3: metadata: meta[relay.Constant][0] is not base64");
  EXPECT_EQ(with_array(""), "t:3:3: metadata: meta[relay.Constant][0] is cut off");
  EXPECT_EQ(with_array("AAAAAAAAAAA="),
            "t:3:3: metadata: meta[relay.Constant][0] does not begin with the magic number of an NDArray");
  // The array of ReadsTvm with other ranks and sizes.
  EXPECT_EQ(with_array("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAA/////wIgAQA="),
            "t:3:3: metadata: meta[relay.Constant][0] has rank -1, expected 0 to 8");
  EXPECT_EQ(
      with_array("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQABAAAAAAAAAAUAAAAAAAAAAACAPwA="),
      "t:3:3: metadata: meta[relay.Constant][0] says that it has 5 bytes of data, and has 5; expected 4 for "
      "Tensor[(1), float32]");
}

TEST(TextHostile, UsesOfTuplesAreBounded) {
  const std::string bounded = "the tuples of the text have more than 1000000 values";
  std::string tuple = "%t = (%x", names, splits;
  for (int i = 0; i < 2000; ++i) tuple += ", %x";
  for (int i = 0; i < 1000; ++i) {
    names += "%" + std::to_string(i) + " = %t;\n";
    splits += "%" + std::to_string(i) + " = split(%x, indices_or_sections=4096);\n";
  }
  EXPECT_NE(body_refusal(tuple + ");\n" + names + "%x").find(bounded), std::string::npos);
  EXPECT_NE(body_refusal(splits + "%x").find(bounded), std::string::npos);
}

TEST(TextHostile, DepthIsBounded) {
  const std::string open(200000, '('), list(200000, '[');
  EXPECT_NE(body_refusal(open + "%x").find("expressions are nested too deeply"), std::string::npos);
  EXPECT_NE(body_refusal("reshape(%x, newshape=" + list).find("expected an integer, found '['"),
            std::string::npos);
  std::string calls;
  for (int i = 0; i < 100000; ++i) calls += "clip(";
  EXPECT_NE(body_refusal(calls).find("expressions are nested too deeply"), std::string::npos);
  std::string comments;
  for (int i = 0; i < 100000; ++i) comments += "/*";
  EXPECT_NE(body_refusal(comments).find("this comment has no end"), std::string::npos);
  EXPECT_NE(refusal("def @f() { 1 }\n#[metadata]\n" + list)
                .find("metadata: the text after '#[metadata]' nests more than 64 deep"),
            std::string::npos);
  EXPECT_NE(refusal("def @f() { 1 }\n#[metadata]\n{\"a\": 1e999}")
                .find("the text after '#[metadata]' has a number that no double holds"),
            std::string::npos);
  EXPECT_NE(refusal("def @f" + open).find("expected ')', found the end"), std::string::npos);
}

TEST(TextHostile, AttributesAreBounded) {
  std::string attrs;
  for (int i = 0; i < 100000; ++i) attrs += ", a" + std::to_string(i) + "=1";
  EXPECT_NE(body_refusal("clip(%x" + attrs + ")").find("more than 1000 attributes"), std::string::npos);
  EXPECT_NE(refusal("def @f(%x: int8" + attrs + ") { %x }").find("more than 1000 attributes"),
            std::string::npos);
}

const char kSample[] =
    "#[version = \"0.0.5\"]\n"
    "def @f(%p0: Tensor[(2, 3), int8], Compiler=\"vta\", Primitive=1) -> (Tensor[(2, 1), int8], Tensor[(2, "
    "2), int8]) {\n"
    "  %0 = split(%p0, indices_or_sections=[1], axis=1) /* ty=(Tensor[(2, 1), int8], Tensor[(2, 2), int8]) "
    "*/;\n"
    "  (%0.0, %0.1)\n"
    "}\n"
    "def @main(%x: Tensor[(2, 3), float32], %\"odd \\x41\": int8) -> Tensor[(2, 2), int32] { // comment\n"
    "  %0 = qnn.quantize(%x, const(Tensor[(3), float32], [0.5, 1e-3, 2]), -3, axis=-1, name=\"q\");\n"
    "  %1 = @f(%0);\n"
    "  let %y = (%1.1, %1.1);\n"
    "  %3 = nn.pad(concatenate(%y, axis=1), 114f, pad_width=[[0, 0], [1, 1]]);\n"
    "  %4 = split(%3, indices_or_sections=3, axis=1);\n"
    "  qnn.dense(%4.0, meta[relay.Constant][0], 0, 0, 1f, 1f)\n"
    "}\n"
    "#[metadata]\n"
    R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
 {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant", "attrs": {"data": "0"}}],
 "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAAIAQACAAAAAAAAAAIAAAAAAAAABAAAAAAAAAABAgME"]})";

TEST(TextHostile, TruncatedAtEveryByte) {
  const std::string text = kSample;
  ASSERT_EQ(refusal(text), "");
  const size_t f_ends = text.find("}\n") + 1;
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string prefix = text.substr(0, size);
    // A text that ends with the first function, or in the line break after it, is a module.
    const bool complete = size == f_ends || size == f_ends + 1;
    EXPECT_EQ(refusal(prefix).empty(), complete) << size << ": " << prefix;
  }
}

TEST(TextHostile, ChangedBytesNeverCrash) {
  constexpr uint32_t kSeed = 2;
  std::mt19937 random(kSeed);
  const std::string text = kSample;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = text;
    for (uint32_t i = random() % 3 + 1; i > 0; --i) {
      const size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0:
          changed[at] = static_cast<char>(random());
          break;
        case 1:
          changed[at] = text[random() % text.size()];
          break;
        case 2:
          changed.erase(at, random() % 8 + 1);
          break;
        default:
          changed.insert(at, text.substr(random() % text.size(), random() % 16));
      }
    }
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    try {
      const std::string printed = print(parse(changed, "t"));
      ASSERT_EQ(print(parse(printed, "t")), printed);
    } catch (const PackError&) {
    }
  }
}

}  // namespace
}  // namespace qplan::text::hostile_test
