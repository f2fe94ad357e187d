#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

// The pieces between the commas that are in no bracket and no string, up to the bracket that closes what text
// is in; *end: its place.
std::vector<std::string> pieces(std::string_view text, size_t* end) {
  std::vector<std::string> list;
  std::string piece;
  int depth = 0;
  bool in_string = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      piece += c;
      if (c == '\\' && i + 1 < text.size()) {
        piece += text[++i];
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if ((c == ')' || c == ']') && depth-- == 0) break;
    if (c == '(' || c == '[') ++depth;
    in_string = c == '"';
    if (c == ',' && depth == 0) {
      list.push_back(std::move(piece));
      piece.clear();
    } else if (c != ' ' || !piece.empty()) {
      piece += c;
    }
  }
  if (!piece.empty()) list.push_back(std::move(piece));
  *end = i;
  return list;
}

// "  %3 = qnn.conv2d(%2, ..." -> "qnn.conv2d"; "" for what is no such statement.
std::string called_operator(std::string_view line) {
  if (line.substr(0, 3) != "  %") return "";
  const size_t begin = line.find(" = ");
  const size_t end = line.find('(', begin);
  if (begin == std::string_view::npos || end == std::string_view::npos || end <= begin + 3) return "";
  return std::string(line.substr(begin + 3, end - begin - 3));
}

}  // namespace

std::string ir_summary(const std::string& relay) {
  std::string text;
  std::map<std::string, uint64_t> counts;
  uint64_t total = 0;
  const std::string_view all = relay;
  constexpr std::string_view kMain = "def @main(";
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    begin = end + 1;
    if (line == "#[metadata]") break;
    if (line.substr(0, kMain.size()) == kMain) {
      size_t close = 0;
      for (const std::string& piece : pieces(line.substr(kMain.size()), &close)) {
        if (piece[0] == '%') text += "  input      " + one_line(piece.substr(1)) + "\n";
      }
      const std::string_view rest = line.substr(kMain.size() + close);
      const size_t arrow = rest.find("-> ");
      const size_t brace = rest.rfind(" {");
      if (arrow != std::string_view::npos && brace != std::string_view::npos && brace > arrow + 3) {
        text += "  output     " + one_line(std::string(rest.substr(arrow + 3, brace - arrow - 3))) + "\n";
      }
      continue;
    }
    const std::string op = called_operator(line);
    if (op.empty()) continue;
    ++counts[op];
    ++total;
  }
  std::vector<std::pair<std::string, uint64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  text += "  operators  " + std::to_string(total);
  for (size_t i = 0; i < order.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + order[i].first + " " + std::to_string(order[i].second);
  }
  return text + "\n";
}

// qplan import: a model as the packer reads it, as text.

namespace {

struct ImportOptions {
  ModelOptions model;
  bool canonical = false;
  bool body = false;
  bool print = false;
  std::string why_not;
  std::string diff;
};

// Both bodies side by side. The text is printed either way; a difference is a failure that scripts see.
void compare(const ImportOptions& options) {
  PackArguments arguments(options.model);
  std::string text;
  int same = 0;
  qplan_error error = make_error();
  arguments.check(qplan_compare_models(options.model.model.c_str(), options.diff.c_str(),
                                       &arguments.pack_options(), append_to_string, &text, &same, &error),
                  error);
  print(text);
  if (same == 0) {
    throw Failure("'" + options.model.model + "' and '" + options.diff + "' have different canonical bodies");
  }
}

void run(const CLI::App& command, const ImportOptions& options) {
  if (!options.diff.empty()) {
    if (options.print || options.canonical || options.body || !options.why_not.empty())
      throw UsageError(
          "--diff compares canonical bodies; --print, --canonical, --body and --why-not go without it");
    return compare(options);
  }
  if (options.body && !options.canonical)
    throw UsageError("--body is of the canonical form, add --canonical");
  if (!options.canonical && options.why_not.empty()) {
    refuse_without_effect(command,
                          {"--target", "--contract", "--io", "--io-layout", "--keep-float", "--skip"},
                          "without --canonical: nothing is rewritten");
    if (options.model.dump_after != "import" && options.model.dump_after != "all")
      refuse_without_effect(command, {"--dump-after"}, "without --canonical, except import and all");
  }
  PackArguments arguments(options.model);
  qplan_pack_options& pack_options = arguments.pack_options();
  pack_options.canonical_body = options.body ? 1 : 0;
  pack_options.why_not = options.why_not.empty() ? nullptr : options.why_not.c_str();
  std::string text;
  qplan_error error = make_error();
  arguments.check(qplan_import_text(options.model.model.c_str(), &pack_options, options.canonical ? 1 : 0,
                                    append_to_string, &text, &error),
                  error);
  if (options.print || pack_options.why_not != nullptr) {
    print(text);
  } else if (options.model.dump_after.empty()) {  // a dump is all that was asked for
    print(std::string(options.canonical ? "canonical form of '" : "imported '") +
          one_line(options.model.model) + "'\n" + ir_summary(text));
  }
}

}  // namespace

void add_import_command(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Read a model: what is in it, or its IR");
  add_model_options(*command, options->model);
  command->add_flag("--canonical", options->canonical, "After all rewrites; without it as imported");
  command->add_flag("--print", options->print,
                    "Print the IR as Relay text; without it inputs, outputs and the number of operators");
  command->add_flag(
      "--body", options->body,
      "With --canonical: the body alone, inside the conversions at inputs and outputs, without names and "
      "contracts: one text for all sources of a network");
  command
      ->add_option("--diff", options->diff,
                   "Compare the canonical body with that of another model: print which scale, zero point, "
                   "attribute or constant differs; exit status 1 when one does")
      ->type_name("OTHER");
  command
      ->add_option("--why-not", options->why_not,
                   "Print where this rewrite does not apply after all passes, and what was missing")
      ->type_name("REWRITE");
  command->footer(
      "Examples:\n"
      "  qplan import model.onnx\n"
      "  qplan import model.onnx --print\n"
      "  qplan import model.tflite --canonical --body --print\n"
      "  qplan import model.tflite --diff model.onnx\n"
      "  qplan import layer.relay --input-shape input=1x3x224x224:float32 --print\n"
      "  qplan import model.onnx --why-not lower_conv2d\n"
      "  qplan import model.onnx --canonical --log-level debug");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
