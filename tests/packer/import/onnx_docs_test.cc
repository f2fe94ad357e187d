// docs/onnx-operators.md claims what ops.def has: the same operators with the same versions.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx_test::onnx_docs_test {
namespace {

// "domain.Operator" -> "6 to 13", of the tables below a heading with the domain's name.
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> claims;
  std::ifstream file("docs/onnx-operators.md");
  std::string domain;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) domain = line.substr(3) == "ONNX" ? "" : line.substr(3) + ".";
    std::istringstream cells(line);
    std::string bar, name, versions;
    if (!line.starts_with("| ") || line.starts_with("| operator")) continue;
    std::getline(cells, bar, '|');
    std::getline(cells, name, '|');
    std::getline(cells, versions, '|');
    claims[domain + name.substr(1, name.size() - 2)] = versions.substr(1, versions.size() - 2);
  }
  return claims;
}

TEST(OnnxDocs, ThePageClaimsTheRows) {
  std::map<std::string, std::string> rows;
  for (const onnx::ImportRow& row : onnx::rows()) {
    std::string versions = std::to_string(row.oldest);
    if (row.newest != row.oldest) versions += " to " + std::to_string(row.newest);
    rows[(row.domain.empty() ? "" : std::string(row.domain) + ".") + std::string(row.op_type)] = versions;
  }
  const std::map<std::string, std::string> page = documented();
  for (const auto& [name, versions] : rows)
    EXPECT_EQ(page.count(name), 1u) << "docs/onnx-operators.md: add a row `" << name << "` | " << versions;
  for (const auto& [name, versions] : page)
    EXPECT_EQ(versions, rows.count(name) == 1 ? rows.at(name) : "no row of ops.def")
        << "docs/onnx-operators.md: " << name;
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_docs_test
