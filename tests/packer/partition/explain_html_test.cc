#include <nlohmann/json.hpp>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/partition/partition_test_support.h"

namespace qplan::partition::explain_html_test {
namespace {

using Json = nlohmann::ordered_json;
using qplan::partition_test::parse_main;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// The data that the page's script reads.
Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

std::string two_operators(const std::string& name) {
  const ir::Module main = parse_main(
      "%x: Tensor[(1, 4), int8]", "  %0 = qnn.softmax(%x, 1f, 0, 0.00390625f, -128, name=\"" + name +
                                      "\");\n  qnn.softmax(%0, 1f, 0, 0.00390625f, -128, name=\"last\")\n");
  return partition(main, pipeline::parse_targets("vta, cpu")).explain.json();
}

TEST(ExplainHtml, HoldsThePlacementAndItsTitle) {
  const std::string json = two_operators("first");
  Json expected = Json::parse(json);
  expected["title"] = "model.tflite";
  expected["cpu_steps"] = Json::array();  // there is no plan
  EXPECT_EQ(data_of(explain_html(json, "model.tflite")), expected);
}

TEST(ExplainHtml, UnitsTellWhoseResultsTheyRead) {
  const Json data = data_of(explain_html(two_operators("first"), ""));
  EXPECT_EQ(data["units"][0]["reads"],
            Json::parse(R"([{"unit": null, "input": "x", "type": "Tensor[(1, 4), int8]", "bytes": 4}])"));
  EXPECT_EQ(data["units"][1]["reads"],
            Json::parse(R"([{"unit": 0, "type": "Tensor[(1, 4), int8]", "bytes": 4}])"));
  EXPECT_EQ(data["units"][0]["makes_output"], false);
  EXPECT_EQ(data["units"][1]["makes_output"], true);
}

TEST(ExplainHtml, NamesCannotEndTheScriptOrBecomeMarkup) {
  const std::string evil = "</script><script>alert(1)</script><!--&amp;";
  const std::string plain = explain_html(two_operators("a"), "a");
  const std::string page = explain_html(two_operators(evil), evil + "\x01\xff");
  for (const char* part : {"<script", "</script>", "<!--", "<body", "<title"})
    EXPECT_EQ(count_of(page, part), count_of(plain, part)) << part;
  const Json data = data_of(page);
  EXPECT_EQ(data["nodes"][0]["name"], evil);
  EXPECT_EQ(data["title"], evil + "\x01\xef\xbf\xbd");
}

TEST(ExplainHtml, AsksForNothingFromElsewhere) {
  const std::string page = explain_html(two_operators("a"), "a");
  EXPECT_NE(page.find("Content-Security-Policy\" content=\"default-src 'none';"), std::string::npos);
  for (const char* part : {" src=", " href=", "url(", "@import", "import(", "fetch("})
    EXPECT_EQ(count_of(page, part), 0u) << part;
  // The one address is a namespace's name.
  EXPECT_EQ(count_of(page, "http"),
            count_of(page, "'http://www.w3.org/2000/svg'") + count_of(page, "http-equiv"));
}

TEST(ExplainHtml, WhatIsNoPlacementIsRefused) {
  for (const char* json : {"", "{", "[]", "{}", "{\"units\": "}) {
    EXPECT_NE(partition_test::refusal([&] { (void)explain_html(json, ""); }, QPLAN_MODEL_INVALID), "")
        << json;
  }
}

// Printing the data recurses: brackets alone would use up the stack.
TEST(ExplainHtml, WhatNestsTooDeeplyIsRefused) {
  const std::string brackets = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string json = "{\"units\": [], \"nodes\": " + brackets + "}";
  EXPECT_NE(partition_test::refusal([&] { (void)explain_html(json, ""); }, QPLAN_MODEL_INVALID), "");
}

}  // namespace
}  // namespace qplan::partition::explain_html_test
