// qplan run: inputs from files, one inference, outputs to files or to the terminal.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/npu.h"
#include "tools/number_option.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kShownValues = 8;

struct RunOptions {
  std::string plan;
  std::vector<std::string> inputs;
  std::string output_dir;
  std::string dump_tensors;  // a directory
  std::string labels;
  SessionOptions session;
  std::string trace;
  std::string mean;
  std::string std;
  uint32_t top = 5;
  bool top_given = false;
  bool json = false;
};

// In --output-dir.
std::string output_name(size_t index, size_t run, size_t num_runs) {
  const std::string name = "output" + std::to_string(index) + ".bin";
  return num_runs == 1 ? name : "run" + std::to_string(run) + "_" + name;
}

// Files after --input, for all inputs of one run after the other. Only of a plan that keeps states: of
// another one, more files than inputs are a mistake.
size_t count_runs(const RunOptions& options, const PlanFile& plan, size_t num_inputs) {
  if (num_inputs == 0 || options.inputs.size() <= num_inputs) return 1;
  const Json report = Json::parse(inspect_text(plan.bytes(), plan.size(), plan.path()));
  return report.at("states").empty() ? 1 : options.inputs.size() / num_inputs;
}

struct Output {
  qplan_tensor_info info;
  std::vector<uint8_t> bytes;
};

// Everything after --input, in the memory of the command: the tensors' bytes.
std::vector<std::vector<uint8_t>> load_inputs(const RunOptions& options, const PlanFile& plan,
                                              const PlanMetadata& metadata,
                                              const std::vector<qplan_tensor_info>& infos, size_t num_runs) {
  if (options.inputs.size() != infos.size() * num_runs) {
    std::string needed;
    for (uint32_t i = 0; i < infos.size(); ++i)
      needed += (i == 0 ? ": " : "; ") + describe(QPLAN_INPUT, i, infos[i]);
    throw Failure("plan '" + plan.path() + "' has " + std::to_string(infos.size()) +
                  (infos.size() == 1 ? " input" : " inputs") + ", found " +
                  std::to_string(options.inputs.size()) + " after --input" + needed);
  }
  std::vector<std::vector<uint8_t>> inputs;
  for (size_t file = 0; file < options.inputs.size(); ++file) {
    const auto i = static_cast<uint32_t>(file % infos.size());
    inputs.push_back(load_input(options.inputs[file], infos[i], describe(QPLAN_INPUT, i, infos[i]),
                                metadata.normalisation(i, options.mean, options.std)));
  }
  return inputs;
}

// The output that the labels name: the first whose number of values fits.
uint32_t find_labelled_output(const Labels& labels, const std::vector<qplan_tensor_info>& infos) {
  for (uint32_t i = 0; i < infos.size(); ++i) {
    if (labels.fits(element_count(infos[i]))) return i;
  }
  std::string found;
  for (uint32_t i = 0; i < infos.size(); ++i)
    found += (i == 0 ? "" : "; ") + describe(QPLAN_OUTPUT, i, infos[i]);
  throw Failure("labels '" + labels.path() + "': has " + std::to_string(labels.count()) +
                " names, no output has as many values or one less: " + found);
}

// --labels, or the labels of the first output that the model itself names the classes of.
std::optional<Labels> choose_labels(const RunOptions& options, const PlanMetadata& metadata,
                                    const std::vector<qplan_tensor_info>& infos,
                                    std::optional<uint32_t>* scored) {
  if (!options.labels.empty()) {
    Labels labels(options.labels);
    *scored = find_labelled_output(labels, infos);
    return labels;
  }
  for (uint32_t i = 0; i < infos.size(); ++i) {
    if (metadata.labels(i).empty()) continue;
    Labels labels("of the model", metadata.labels(i));
    if (!labels.fits(element_count(infos[i]))) continue;
    *scored = i;
    return labels;
  }
  return std::nullopt;
}

class Trace {
 public:
  explicit Trace(std::string path) : path_(std::move(path)), trace_(nullptr, qplan_trace_destroy) {
    if (path_.empty()) return;
    trace_.reset(qplan_trace_create());
    if (trace_ == nullptr) throw Failure("trace: out of memory");
  }
  void attach(qplan_platform& platform) {
    if (trace_ != nullptr) qplan_trace_attach(trace_.get(), &platform);
  }
  void write(OutputFiles* outputs) const {
    if (trace_ == nullptr) return;
    outputs->expect(path_);
    qplan_error error = make_error();
    check(qplan_trace_write(trace_.get(), path_.c_str(), &error), error, "");
  }

 private:
  std::string path_;
  std::unique_ptr<qplan_trace, void (*)(qplan_trace*)> trace_;
};

std::string score_text(double score) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", score);
  return text;
}

void print_outputs(const std::vector<Output>& outputs) {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    const uint64_t count = element_count(output.info);
    std::string line = describe(QPLAN_OUTPUT, i, output.info) + ":";
    for (uint64_t k = 0; k < std::min(count, kShownValues); ++k) {
      line += " " + element_text(output.info, output.bytes.data(), k);
    }
    print(line + (count > kShownValues ? " ...\n" : "\n"));
  }
}

void print_top(const Output& output, const std::optional<Labels>& labels, uint32_t count) {
  const uint64_t values = element_count(output.info);
  for (const Score& score : top_scores(output.info, output.bytes.data(), count)) {
    print(score_text(score.score) + "  " +
          (labels ? labels->name(score.index, values) : std::to_string(score.index)) + "\n");
  }
}

struct Run {
  std::vector<Output> outputs;
  uint64_t invoke_ns = 0;
};

Json outputs_json(const RunOptions& options, const std::vector<Output>& outputs,
                  const std::optional<Labels>& labels, std::optional<uint32_t> scored, size_t run,
                  size_t num_runs) {
  Json list = Json::array();
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    Json entry;
    entry["name"] = output.info.name;
    entry["dtype"] = dtype_name(output.info.dtype);
    entry["shape"] = std::vector<int64_t>(output.info.shape, output.info.shape + output.info.ndim);
    entry["bytes"] = output.info.size_bytes;
    if (!options.output_dir.empty()) entry["file"] = output_name(i, run, num_runs);
    Json values = Json::array();
    for (uint64_t k = 0; k < std::min(element_count(output.info), kShownValues); ++k) {
      if (const auto value = element(output.info, output.bytes.data(), k)) {
        // Integers stay integers: element_text writes them in full.
        values.push_back(output.info.dtype.code == kDLFloat
                             ? Json(*value)
                             : Json::parse(element_text(output.info, output.bytes.data(), k)));
      }
    }
    entry["first_values"] = values;
    if (scored == i) {
      const uint64_t count = element_count(output.info);
      entry["top"] = Json::array();
      for (const Score& score : top_scores(output.info, output.bytes.data(), options.top)) {
        Json item;
        item["index"] = score.index;
        if (labels) item["label"] = labels->name(score.index, count);
        item["score"] = score.score;
        entry["top"].push_back(item);
      }
    }
    list.push_back(entry);
  }
  return list;
}

void print_json(const RunOptions& options, const std::vector<Run>& runs, const Session& session,
                const std::optional<Labels>& labels, std::optional<uint32_t> scored) {
  const qplan_session_info info = session.info();
  Json report;
  report["plan"] = options.plan;
  report["isa"] = info.isa_name;
  report["threads"] = info.num_threads;
  const auto add = [&](Json& to, size_t r) {
    to["invoke_ns"] = runs[r].invoke_ns;
    if (r == 0 && runs.size() == 1 && qplan_session_num_regions(session.get()) > 0)
      to["npu"] = npu_json(session.get(), session.verifies());
    to["outputs"] = outputs_json(options, runs[r].outputs, labels, scored, r, runs.size());
  };
  if (runs.size() == 1) {
    add(report, 0);
  } else {
    if (qplan_session_num_regions(session.get()) > 0)
      report["npu"] = npu_json(session.get(), session.verifies());
    report["runs"] = Json::array();
    for (size_t r = 0; r < runs.size(); ++r) {
      Json entry;
      add(entry, r);
      report["runs"].push_back(std::move(entry));
    }
  }
  print(json_page(report));
}

// Nothing that is written may replace what is read, files and jobs of an earlier recording, or another
// output. tensors: the names in --dump-tensors, as far as they are known.
void check_files(const RunOptions& options, size_t num_outputs, size_t num_runs,
                 const std::vector<std::string>& tensors) {
  constexpr auto kInItsFolder = NamedFile::Written::kInItsFolder;
  const NpuOptions& npu = options.session.npu;
  const std::vector<NamedFile> inputs =
      input_files(options.session, {{"plan", options.plan}, {"--labels", options.labels}}, options.inputs);
  std::vector<NamedFile> outputs = {{"--trace", options.trace}, {"--npu-trace", npu.trace}};
  for (size_t i = 0; i < num_outputs * num_runs && !options.output_dir.empty(); ++i) {
    const std::string name = output_name(i % num_outputs, i / num_outputs, num_runs);
    outputs.push_back({"--output-dir", options.output_dir + "/" + name, kInItsFolder});
  }
  for (size_t i = 0; i < tensors.size() && !options.dump_tensors.empty(); ++i)
    outputs.push_back({"--dump-tensors", options.dump_tensors + "/" + tensors[i], kInItsFolder});
  check_outputs(outputs, inputs);
  if (npu.record.empty()) return;
  for (const NamedFile& input : inputs) {
    if (!is_in_recorded_job(npu.record, input.path)) continue;
    throw Failure(
        "--npu-record '" + npu.record + "': " + input.role + " '" + input.path +
        "' is in a job of an earlier recording there, which would be removed; give another directory");
  }
}

void run(const RunOptions& options) {
  parse_isa(options.session.isa);
  const PlanFile plan(options.plan);
  const std::vector<qplan_tensor_info> input_infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  const std::vector<qplan_tensor_info> output_infos = tensor_infos(plan.plan(), QPLAN_OUTPUT);
  const size_t num_runs = count_runs(options, plan, input_infos.size());
  driver_options(options.session.npu);
  check_files(options, output_infos.size(), num_runs, {"tensors.json"});
  check_npu_options(options.session.npu, plan);
  const PlanMetadata metadata(plan);
  std::optional<uint32_t> scored;  // the output whose best values are printed
  const std::optional<Labels> labels = choose_labels(options, metadata, output_infos, &scored);
  if (!scored && options.top_given && !output_infos.empty()) scored = 0;
  if (!options.output_dir.empty()) check_output_directory(options.output_dir);
  if (!options.dump_tensors.empty()) check_output_directory(options.dump_tensors);
  std::vector<std::vector<uint8_t>> inputs = load_inputs(options, plan, metadata, input_infos, num_runs);
  if (!options.session.npu.record.empty()) check_output_directory(options.session.npu.record, "--npu-record");

  OutputFiles files;                        // outlive the session:
  files.expect(options.session.npu.trace);  // devices write theirs when they are closed
  Trace trace(options.trace);
  StepTensors step_tensors;
  TensorFiles tensor_files;
  qplan_platform platform = make_platform(QPLAN_LOG_WARNING);
  if (!options.dump_tensors.empty()) step_tensors.attach(platform);
  trace.attach(platform);
  Session session(plan, options.session, &platform);
  step_tensors.watch(session.get());
  const NpuRecord record(options.session.npu.record, session.get(), &files);
  // One session for all runs: what the model keeps from run to run goes on.
  std::vector<Run> runs(num_runs);
  for (size_t r = 0; r < num_runs; ++r) {
    for (uint32_t i = 0; i < input_infos.size(); ++i)
      session.write(i, packed_tensor(input_infos[i], inputs[r * input_infos.size() + i].data()));
    const uint64_t begin = qplan_host_now_ns(nullptr);
    session.invoke();
    runs[r].invoke_ns = qplan_host_now_ns(nullptr) - begin;
    tensor_files.add(step_tensors.tensors(), num_runs == 1 ? "" : "run" + std::to_string(r) + "_");
    step_tensors.clear();
    std::vector<Output>& outputs = runs[r].outputs;
    for (uint32_t i = 0; i < output_infos.size(); ++i) {
      outputs.push_back({output_infos[i], std::vector<uint8_t>(output_infos[i].size_bytes)});
      session.read(i, packed_tensor(output_infos[i], outputs[i].bytes.data()));
    }
  }
  if (!options.dump_tensors.empty()) tensor_files.finish(plan);
  check_files(options, output_infos.size(), num_runs, tensor_files.names);
  trace.write(&files);
  if (!options.output_dir.empty()) {
    std::vector<NamedBytes> results;
    for (size_t r = 0; r < num_runs; ++r) {
      for (uint32_t i = 0; i < output_infos.size(); ++i) {
        const std::vector<uint8_t>& bytes = runs[r].outputs[i].bytes;
        results.push_back({output_name(i, r, num_runs), bytes.data(), bytes.size()});
      }
    }
    files.write(options.output_dir, results);
  }
  if (!options.dump_tensors.empty()) files.write(options.dump_tensors, tensor_files.files());
  if (options.json) {
    print_json(options, runs, session, labels, scored);
  } else {
    for (size_t r = 0; r < num_runs; ++r) {
      if (num_runs > 1 && (options.output_dir.empty() || scored)) print("run " + std::to_string(r) + "\n");
      if (options.output_dir.empty() && !scored) print_outputs(runs[r].outputs);
      if (scored) print_top(runs[r].outputs[*scored], labels, options.top);
    }
    print(npu_text(session.get(), session.verifies()));
  }
  if (has_mismatches(session.get())) files.keep();  // the outputs are the CPU's
  record.finish(session.get(), session.write_error());
  check_mismatches(session.get());
  session.close();
  files.keep();
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a plan, once or several times");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command
      ->add_option(
          "--input", options->inputs,
          "One per input of the model, in its order: .npy, a picture (.bmp .png .jpg), any other name: the "
          "tensor's raw little-endian bytes. K times as many, where the model keeps states: K runs of one "
          "session, one after the other")
      ->type_name("FILE");
  command
      ->add_option(
          "--output-dir", options->output_dir,
          "Write output0.bin, output1.bin, ... there, raw little-endian, in the model's order; of several "
          "runs run0_output0.bin, ...")
      ->type_name("DIR");
  command
      ->add_option("--dump-tensors", options->dump_tensors,
                   "Write what every step writes there: a .npy file for each tensor under its name in the "
                   "model, and tensors.json, which lists them and what cannot be seen (cascades, regions)")
      ->type_name("DIR");
  command
      ->add_option(
          "--labels", options->labels,
          "Names of the classes, one per line: print the best five with their scores. With one name more "
          "than values the first (background) is skipped. Without it the labels of the model's own "
          "metadata, where it has some")
      ->type_name("FILE");
  CLI::Option* top =
      command->add_option("--top", options->top, "How many of the best values are printed (default 5)")
          ->type_name("K")
          ->transform(whole_number(0, UINT32_MAX));
  command
      ->add_option(
          "--mean", options->mean,
          "Pictures become (byte - mean) / std, then the input's own quantisation; one number or one per "
          "channel: 123.7,116.3,103.5. Without it 8-bit inputs take the byte (int8: byte - 128), others what "
          "the model's metadata states")
      ->type_name("M");
  command->add_option("--std", options->std, "See --mean (default 1)")->type_name("S");
  add_session_options(*command, options->session);
  add_custom_operators_option(*command, options->session.custom_operators);
  add_npu_file_options(*command, options->session.npu);
  command->add_option("--trace", options->trace, "Write every step with its time, for Perfetto")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print outputs, scores and time as JSON");
  command->footer(
      "Pictures are resized to the input's height and width, bilinearly, with half-pixel centres and "
      "without\n"
      "antialiasing; inputs with one channel take grey (ITU-R BT.601).\n"
      "Examples:\n"
      "  qplan run model.qplan --input cat.bmp --labels labels.txt\n"
      "  qplan run model.qplan --input x.npy --output-dir out --threads 2\n"
      "  qplan run model.qplan --input a.bin --input b.bin --isa reference --json\n"
      "  qplan run model.qplan --input x.npy --dump-tensors tensors\n"
      "  qplan run wake_word.qplan --input frame0.bin --input frame1.bin --input frame2.bin --json\n"
      "  qplan run float.qplan --input cat.jpg --mean 127.5 --std 127.5 --trace trace.json\n"
      "  qplan run npu.qplan --input x.npy --npu-verify --npu-options explore=8\n"
      "  qplan run npu.qplan --input x.npy --npu-record jobs && qplan npu replay jobs\n"
      "  qplan run npu.qplan --input x.npy --driver ./libmy_driver.so --on-npu-failure fail");
  command->callback([command, options, top]() {
    refuse_unused_normalisation(*command, options->inputs);
    options->top_given = top->count() > 0;
    run(*options);
  });
}

}  // namespace qplan::tools
