// qplan run: inputs from files, one inference, outputs to files or to the terminal.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/model_options.h"
#include "tools/npu.h"
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
std::string output_name(size_t index) { return "output" + std::to_string(index) + ".bin"; }

Normalisation parse_normalisation(const RunOptions& options) {
  Normalisation normalisation;
  if (!options.mean.empty()) normalisation.mean = parse_channel_values(options.mean, "--mean");
  if (!options.std.empty()) normalisation.std = parse_channel_values(options.std, "--std");
  if (std::count(normalisation.std.begin(), normalisation.std.end(), 0.0) != 0) {
    throw UsageError("--std: must not be 0");
  }
  return normalisation;
}

struct Output {
  qplan_tensor_info info;
  std::vector<uint8_t> bytes;
};

// Everything after --input, in the memory of the command: the tensors' bytes.
std::vector<std::vector<uint8_t>> load_inputs(const RunOptions& options, const PlanFile& plan,
                                              const std::vector<qplan_tensor_info>& infos) {
  const Normalisation normalisation = parse_normalisation(options);
  if (options.inputs.size() != infos.size()) {
    std::string needed;
    for (uint32_t i = 0; i < infos.size(); ++i)
      needed += (i == 0 ? ": " : "; ") + describe(QPLAN_INPUT, i, infos[i]);
    throw Failure("plan '" + plan.path() + "' has " + std::to_string(infos.size()) +
                  (infos.size() == 1 ? " input" : " inputs") + ", found " +
                  std::to_string(options.inputs.size()) + " after --input" + needed);
  }
  std::vector<std::vector<uint8_t>> inputs;
  for (uint32_t i = 0; i < infos.size(); ++i) {
    inputs.push_back(
        load_input(options.inputs[i], infos[i], describe(QPLAN_INPUT, i, infos[i]), normalisation));
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
  void write() const {
    if (trace_ == nullptr) return;
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

void print_json(const RunOptions& options, const std::vector<Output>& outputs, const Session& session,
                const std::optional<Labels>& labels, std::optional<uint32_t> scored, uint64_t invoke_ns) {
  const qplan_session_info info = session.info();
  Json report;
  report["plan"] = options.plan;
  report["isa"] = info.isa_name;
  report["threads"] = info.num_threads;
  report["invoke_ns"] = invoke_ns;
  if (qplan_session_num_regions(session.get()) > 0) report["npu"] = npu_json(session.get());
  report["outputs"] = Json::array();
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    Json entry;
    entry["name"] = output.info.name;
    entry["dtype"] = dtype_name(output.info.dtype);
    entry["shape"] = std::vector<int64_t>(output.info.shape, output.info.shape + output.info.ndim);
    entry["bytes"] = output.info.size_bytes;
    if (!options.output_dir.empty()) entry["file"] = output_name(i);
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
    report["outputs"].push_back(entry);
  }
  print(report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

// Nothing that is written may replace what is read: files, and jobs of an earlier recording.
void check_files(const RunOptions& options, size_t num_outputs) {
  const NpuOptions& npu = options.session.npu;
  std::vector<NamedFile> inputs = {{"plan", options.plan}, {"--labels", options.labels}};
  for (const std::string& input : options.inputs) inputs.push_back({"--input", input});
  inputs.push_back({"--driver", npu.driver.substr(0, npu.driver.find(','))});
  std::vector<NamedFile> outputs = {{"--trace", options.trace}, {"--npu-trace", npu.trace}};
  for (size_t i = 0; i < num_outputs && !options.output_dir.empty(); ++i) {
    outputs.push_back({"--output-dir", options.output_dir + "/" + output_name(i)});
  }
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
  check_files(options, output_infos.size());
  std::optional<Labels> labels;
  std::optional<uint32_t> scored;  // the output whose best values are printed
  if (!options.labels.empty()) {
    labels.emplace(options.labels);
    scored = find_labelled_output(*labels, output_infos);
  } else if (options.top_given && !output_infos.empty()) {
    scored = 0;
  }
  if (!options.output_dir.empty()) check_output_directory(options.output_dir);
  std::vector<std::vector<uint8_t>> inputs = load_inputs(options, plan, input_infos);
  driver_options(options.session.npu);  // before directories are made
  const NpuRecord record(options.session.npu.record);

  Trace trace(options.trace);
  qplan_platform platform = make_platform(QPLAN_LOG_WARNING);
  trace.attach(platform);
  Session session(plan, options.session, &platform);
  for (uint32_t i = 0; i < inputs.size(); ++i)
    session.write(i, packed_tensor(input_infos[i], inputs[i].data()));
  const uint64_t begin = qplan_host_now_ns(nullptr);
  session.invoke();
  const uint64_t invoke_ns = qplan_host_now_ns(nullptr) - begin;

  std::vector<Output> outputs;
  for (uint32_t i = 0; i < output_infos.size(); ++i) {
    outputs.push_back({output_infos[i], std::vector<uint8_t>(output_infos[i].size_bytes)});
    session.read(i, packed_tensor(output_infos[i], outputs[i].bytes.data()));
  }
  trace.write();
  if (!options.output_dir.empty()) {
    std::vector<NamedBytes> files;
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      files.push_back({output_name(i), outputs[i].bytes.data(), outputs[i].bytes.size()});
    }
    write_files(options.output_dir, files);
  }
  if (options.json) {
    print_json(options, outputs, session, labels, scored, invoke_ns);
  } else {
    if (options.output_dir.empty() && !scored) print_outputs(outputs);
    if (scored) print_top(outputs[*scored], labels, options.top);
    print(npu_text(session.get()));
  }
  record.finish(session.get(), session.write_error());
  check_mismatches(session.get());
  session.close();
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a plan once");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command
      ->add_option(
          "--input", options->inputs,
          "One per input of the model, in its order: .npy, a picture (.bmp .png .jpg), any other name: the "
          "tensor's raw little-endian bytes")
      ->type_name("FILE");
  command
      ->add_option("--output-dir", options->output_dir,
                   "Write output0.bin, output1.bin, ... there, raw little-endian, in the model's order")
      ->type_name("DIR");
  command
      ->add_option(
          "--labels", options->labels,
          "Names of the classes, one per line: print the best five with their scores. With one name more "
          "than values the first (background) is skipped")
      ->type_name("FILE");
  CLI::Option* top =
      command->add_option("--top", options->top, "How many of the best values are printed (default 5)")
          ->type_name("K");
  command
      ->add_option(
          "--mean", options->mean,
          "Pictures become (byte - mean) / std, then the input's own quantisation; one number or one per "
          "channel: 123.7,116.3,103.5. Without it 8-bit inputs take the byte (int8: byte - 128)")
      ->type_name("M");
  command->add_option("--std", options->std, "See --mean (default 1)")->type_name("S");
  add_session_options(*command, options->session);
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
      "  qplan run float.qplan --input cat.jpg --mean 127.5 --std 127.5 --trace trace.json\n"
      "  qplan run npu.qplan --input x.npy --npu-verify --npu-options explore=8\n"
      "  qplan run npu.qplan --input x.npy --npu-record jobs && qplan npu replay jobs\n"
      "  qplan run npu.qplan --input x.npy --driver ./libmy_driver.so --on-npu-failure fail");
  command->callback([options, top]() {
    options->top_given = top->count() > 0;
    run(*options);
  });
}

}  // namespace qplan::tools
