// qplan report: a plan as a page, a graph, a table.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/host.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/embedded.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

struct ReportFiles {
  ReportOptions report;
  std::string html, dot, csv;
  bool json = false;
};

void run(const ReportFiles& options) {
  if (options.html.empty() && options.dot.empty() && options.csv.empty() && !options.json)
    throw UsageError("nothing to write; expected -o FILE.html, --dot FILE, --csv FILE or --json");
  parse_isa(options.report.session.isa);
  check_outputs({{"--output", options.html}, {"--dot", options.dot}, {"--csv", options.csv}},
                input_files(options.report.session, {{"plan", options.report.plan}}, options.report.inputs));
  const PlanFile plan(options.report.plan);
  check_npu_options(options.report.session.npu, plan);
  const nlohmann::ordered_json data = report_data(plan, options.report);
  OutputFiles outputs;
  if (!options.html.empty()) outputs.write(options.html, report_html(data));
  if (!options.dot.empty()) outputs.write(options.dot, report_dot(data));
  if (!options.csv.empty()) outputs.write(options.csv, report_csv(data));
  outputs.keep();
  if (options.json) print(json_page(data));
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportFiles>();
  CLI::App* command =
      app.add_subcommand("report", "Write a page about a plan: time, memory, graph, placement");
  command->add_option("PLAN", options->report.plan, "Plan file")->required()->type_name("");
  command
      ->add_option("-o,--output", options->html,
                   "The page: one HTML file that loads nothing else; it is replaced as a whole or not at all")
      ->type_name("FILE");
  command->add_option("--dot", options->dot, "The graph, for Graphviz")->type_name("FILE");
  command->add_option("--csv", options->csv, "A line for each step")->type_name("FILE");
  command->add_flag("--json", options->json, "Print the data of the page as JSON");
  command
      ->add_option("--runs", options->report.runs,
                   "Measure the steps in so many runs, or as many as 10 seconds allow (default 30); 0: run "
                   "nothing and estimate their times from MACs and bytes")
      ->type_name("N")
      ->transform(whole_number())
      ->check(CLI::Range(0, 1000000).description(""));
  command
      ->add_option("--input", options->report.inputs,
                   "Inputs as those of `qplan run`, in place of random ones")
      ->type_name("FILE");
  command->add_option("--mean", options->report.mean, "Of pictures after --input: see `qplan run`")
      ->type_name("M");
  command->add_option("--std", options->report.std, "See --mean")->type_name("S");
  add_session_options(*command, options->report.session);
  add_custom_operators_option(*command, options->report.session.custom_operators);
  command->footer(
      "The page shows the graph, the time of each step, a roofline, the arena over time with the tensors "
      "alive\n"
      "at each step and the step that sets the peak, constants by layer, ranges of the quantised tensors, "
      "and\n"
      "what runs where and why.\n"
      "Examples:\n"
      "  qplan report model.qplan -o report.html\n"
      "  qplan report model.qplan -o report.html --threads 2 --runs 200\n"
      "  qplan report model.qplan --runs 0 --dot graph.dot --csv steps.csv && dot -Tsvg graph.dot -o "
      "graph.svg");
  command->callback([command, options]() {
    refuse_unused_normalisation(*command, options->report.inputs);
    run(*options);
  });
}

// ---- the page, the graph and the table

namespace {

using Json = nlohmann::ordered_json;

// Text of an element: what a name holds can neither end it nor begin another one.
std::string element_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

// JSON inside a script element: these characters occur in its strings only.
std::string script_escaped(const std::string& json) {
  std::string result;
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else if (c == '>') {
      result += "\\u003e";
    } else if (c == '&') {
      result += "\\u0026";
    } else {
      result += c;
    }
  }
  return result;
}

// A quoted string of Graphviz.
std::string dot_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return result + "\"";
}

}  // namespace

std::string report_html(const Json& data) {
  std::string result;
  std::string_view page = embedded::kReportHtml;
  for (size_t begin; (begin = page.find("{{")) != std::string_view::npos;) {
    const size_t end = page.find("}}", begin);
    result += page.substr(0, begin);
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    if (name == "title")
      result += element_escaped(Json::parse(json_text(data.at("title"))).get<std::string>());
    if (name == "explain.css") result += embedded::kExplainCss;
    if (name == "report.css") result += embedded::kReportCss;
    if (name == "data") result += script_escaped(json_text(data));
    if (name == "page.js") result += embedded::kPageJs;
    if (name == "explain_layout.js") result += embedded::kExplainLayoutJs;
    if (name == "report.js") result += embedded::kReportJs;
    page.remove_prefix(end + 2);
  }
  return result += page;
}

std::string report_dot(const Json& data) {
  std::string text = "digraph plan {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  const auto name_of = [&](size_t tensor, const char* otherwise) {
    const auto name = data.at("tensors").at(tensor).at("name").get<std::string>();
    return name.empty() ? std::string(otherwise) : short_name(name);
  };
  std::vector<std::string> writer(data.at("tensors").size());
  for (const Json& input : data.at("inputs")) {
    const auto tensor = input.get<size_t>();
    writer[tensor] = "t" + std::to_string(tensor);
    text += "  " + writer[tensor] + " [shape=ellipse, label=" + dot_text(name_of(tensor, "input")) + "];\n";
  }
  for (const Json& step : data.at("steps")) {
    if (step.at("alternative").get<bool>()) continue;
    const std::string node = "s" + std::to_string(step.at("index").get<uint32_t>());
    const auto name = step.at("name").get<std::string>();
    text += "  " + node + " [label=" +
            dot_text(std::to_string(step.at("index").get<uint32_t>()) + " " +
                     step.at("op").get<std::string>() + ": " + short_name(name)) +
            ", tooltip=" + dot_text(name) + "];\n";
    for (const Json& input : step.at("inputs")) {
      const auto tensor = input.get<size_t>();
      if (writer[tensor].empty()) continue;  // a constant
      text += "  " + writer[tensor] + " -> " + node +
              " [label=" + dot_text(data.at("tensors").at(tensor).at("type").get<std::string>()) + "];\n";
    }
    for (const Json& output : step.at("outputs")) writer[output.get<size_t>()] = node;
  }
  for (const Json& output : data.at("outputs")) {
    const auto tensor = output.get<size_t>();
    const std::string node = "o" + std::to_string(tensor);
    text += "  " + node + " [shape=ellipse, label=" + dot_text(name_of(tensor, "output")) + "];\n";
    if (!writer[tensor].empty()) text += "  " + writer[tensor] + " -> " + node + ";\n";
  }
  return text + "}\n";
}

std::string report_csv(const Json& data) {
  std::string text = "step,op,kernel,target,name,ns,estimated,macs,bytes,constant_bytes,alive_bytes\n";
  for (const Json& step : data.at("steps")) {
    const auto index = step.at("index").get<size_t>();
    text += std::to_string(index);
    for (const char* key : {"op", "kernel", "target", "name"})
      text += "," + csv_text(step.at(key).get<std::string>());
    text += "," + std::to_string(step.at("ns").get<uint64_t>());
    text += step.at("estimated").get<bool>() ? ",1" : ",0";
    for (const char* key : {"macs", "bytes", "constants"})
      text += "," + std::to_string(step.at(key).get<uint64_t>());
    text += "," + std::to_string(data.at("memory").at("live").at(index).get<uint64_t>()) + "\n";
  }
  return text;
}

}  // namespace qplan::tools
