// qplan report: a plan as a page, a graph, a table.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "qplan/host.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/report_page.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

struct ReportFiles {
  ReportOptions report;
  std::string html, dot, csv;
  bool json = false;
};

void write_report(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  qplan_error error = make_error();
  check(qplan_file_write(path.c_str(), text.data(), text.size(), &error), error, "");
}

void run(const ReportFiles& options) {
  if (options.html.empty() && options.dot.empty() && options.csv.empty() && !options.json)
    throw UsageError("nothing to write; expected -o FILE.html, --dot FILE, --csv FILE or --json");
  parse_isa(options.report.session.isa);
  check_outputs({{"--output", options.html}, {"--dot", options.dot}, {"--csv", options.csv}},
                {{"plan", options.report.plan}});
  const PlanFile plan(options.report.plan);
  const nlohmann::ordered_json data = report_data(plan, options.report);
  write_report(options.html, options.html.empty() ? "" : report_html(data));
  write_report(options.dot, options.dot.empty() ? "" : report_dot(data));
  write_report(options.csv, options.csv.empty() ? "" : report_csv(data));
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
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
