#include "tools/model_options.h"

#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "qplan/host.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

const std::map<std::string, uint32_t>& log_levels() {
  static const std::map<std::string, uint32_t> kLevels = {{"error", QPLAN_LOG_ERROR},
                                                          {"warning", QPLAN_LOG_WARNING},
                                                          {"info", QPLAN_LOG_INFO},
                                                          {"debug", QPLAN_LOG_DEBUG}};
  return kLevels;
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

void on_log(void*, uint32_t level, const char* text) { qplan_host_log(nullptr, level, text); }

// "NAME=value" at the first '='.
std::pair<std::string, std::string> split_named(const std::string& text, const char* option,
                                                const char* expected) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError(std::string(option) + ": found '" + text + "', expected " + expected);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

template <typename T>
bool parse_whole(const std::string& text, T* value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

bool parse_dtype(const std::string& name, DLDataType* dtype) {
  if (name == "bool") {
    *dtype = {kDLUInt, 1, 1};
    return true;
  }
  for (const auto& [prefix, code] :
       {std::pair<const char*, uint8_t>{"int", kDLInt}, {"uint", kDLUInt}, {"float", kDLFloat}}) {
    if (name.rfind(prefix, 0) != 0) continue;
    uint8_t bits = 0;
    if (!parse_whole(name.substr(std::strlen(prefix)), &bits)) return false;
    *dtype = {code, bits, 1};
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
  }
  return false;
}

bool parse_extents(const std::string& text, std::vector<int64_t>* shape) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    int64_t extent = 0;
    if (!parse_whole(text.substr(begin, end - begin), &extent) || extent < 1) return false;
    shape->push_back(extent);
    begin = end + 1;
    if (begin == text.size()) return false;  // a last 'x'
  }
  return true;
}

bool has_extension(const std::string& path, const std::string& extension) {
  return path.size() > extension.size() &&
         path.compare(path.size() - extension.size(), extension.size(), extension) == 0;
}

}  // namespace

void add_model_options(CLI::App& command, ModelOptions& options, const std::string& name,
                       const std::string& what) {
  command
      .add_option(name, options.model, what + ": .tflite, .onnx, .pt, .pt2, Relay text; its content decides")
      ->required()
      ->type_name("");
  command
      .add_option("--target", options.target,
                  "What the plan is for: cpu (default), cpu,isa=reference, cpu,arch=cortex-m, \"vta, cpu\", "
                  "\"vta,sram=quarter, cpu\", ... Options of cpu: arch= x86_64 (default), cortex-m, aarch64 "
                  "or riscv64; isa= the best instruction set of it to use: " +
                      known_isas() + " (default: the best of arch)")
      ->type_name("TARGET");
  command
      .add_option("--contract", options.contract,
                  "Numeric contract of every operator: tfl2, f32e; without it what the model's source means")
      ->type_name("NAME:{tfl2,f32e}");
  command
      .add_option("--io", options.io,
                  "Dtype of inputs and outputs: int8, uint8, float; without it the model's")
      ->type_name("DTYPE:{int8,uint8,float}");
  command
      .add_option("--io-layout", options.io_layout,
                  "Layout of four-dimensional inputs and outputs: nhwc, nchw; without it the model's")
      ->type_name("LAYOUT:{nhwc,nchw}");
  command
      .add_option("--input-shape", options.input_shapes,
                  "Type of an input that the model leaves open, NAME=1x3x224x224:float32 (float32 may be "
                  "left out); may "
                  "be repeated")
      ->type_name("NAME=SHAPE")
      ->allow_extra_args(false);
  command
      .add_option("--bind", options.bindings,
                  "Make a parameter a constant, NAME=FILE: .npy, or raw bytes of the type that "
                  "--input-shape gives; may be repeated")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--end-at", options.end_at,
          "End the network at this tensor of the file, which becomes an output; what does not lead to "
          "it is left out; may be repeated")
      ->type_name("TENSOR")
      ->allow_extra_args(false);
  command
      .add_option("--begin-at", options.begin_at,
                  "Begin the network at this tensor of the file, which becomes an input; what leads to it is "
                  "left out; may be repeated")
      ->type_name("TENSOR")
      ->allow_extra_args(false);
  command
      .add_option(
          "--synthesize-constants", options.seed,
          "Make up data for constants that a text names without giving them; the same for the same seed")
      ->type_name("SEED");
  add_custom_operators_option(command, options.custom_operators);
  command.add_flag("--keep-float", options.keep_float,
                   "Skip rewrites that turn a float pattern into an integer operator");
  command.add_option("--skip", options.skip, "Skip passes or rewrites, by name; may be repeated")
      ->type_name("NAME[,NAME]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--dump-after", options.dump_after,
                  "Print the IR after every pass (all), after one, or as imported (import)")
      ->type_name("PASS");
  CLI::Option* log_level =
      command
          .add_option("--log-level", options.log_level,
                      "error, warning (default), info (what each pass did), debug (each rewrite)")
          ->type_name("LEVEL:{error,warning,info,debug}");
  command.add_flag("-v,--verbose", options.verbose, "As --log-level info")->excludes(log_level);
}

std::vector<NamedFile> input_files(const ModelOptions& options) {
  std::vector<NamedFile> files = {{"model", options.model}, {"--custom-operators", options.custom_operators}};
  for (const std::string& binding : options.bindings) {
    const size_t equals = binding.find('=');
    if (equals != std::string::npos) files.push_back({"--bind", binding.substr(equals + 1)});
  }
  return files;
}

std::vector<NamedFile> input_files(const ModelOptions& model, const PlacementOptions& placement) {
  std::vector<NamedFile> files = input_files(model);
  files.push_back({"--target-file", placement.target_file});
  for (const std::string& library : placement.target_libs) files.push_back({"--target-lib", library});
  return files;
}

void add_placement_options(CLI::App& command, PlacementOptions& options) {
  command
      .add_option("--target-file", options.target_file,
                  "Targets from a JSON file, in place of --target: memories, costs, priorities")
      ->type_name("FILE")
      ->excludes(command.get_option("--target"));
  command
      .add_option("--target-lib", options.target_libs,
                  "Shared library that describes a target, which --target may then name; may be repeated")
      ->type_name("LIB")
      ->allow_extra_args(false);
  command
      .add_option("--placement", options.policy,
                  "soft (default): operators that the preferred target rejects run on the next one; strict: "
                  "that is an "
                  "error")
      ->type_name("POLICY:{soft,strict}");
  command
      .add_option(
          "--pin", options.pins,
          "Run operators on a target, regardless of its priority: NODE is a name of the model, or %NUMBER as "
          "`qplan explain` counts; may be repeated")
      ->type_name("NODE=TARGET")
      ->allow_extra_args(false);
  command
      .add_option(
          "--prefer", options.prefer,
          "When a region is worth its device: npu (default where --target names a device first): when it "
          "relieves the CPU, however slow the device is; latency (else): when it is faster there; energy: "
          "when it takes less there. All by estimates, copies included")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"npu", "latency", "energy"}));
  command.add_flag("--no-cost-gate", options.no_cost_gate,
                   "Keep all regions on their devices, regardless of --prefer");
  command
      .add_option(
          "--fallback", options.fallback,
          "cpu (default): regions of a device have CPU steps as a fallback; none: smaller, and nothing runs "
          "without the device")
      ->type_name("WHERE:{cpu,none}");
}

NamedType parse_input_shape(const std::string& text) {
  constexpr const char* kExpected = "NAME=EXTENTS:DTYPE like x=1x3x224x224:float32";
  auto [name, type] = split_named(text, "--input-shape", kExpected);
  const size_t colon = type.rfind(':');
  NamedType result;
  result.name = std::move(name);
  const std::string dtype = colon == std::string::npos ? "float32" : type.substr(colon + 1);
  if (!parse_extents(type.substr(0, colon), &result.shape) || !parse_dtype(dtype, &result.dtype)) {
    throw UsageError("--input-shape: found '" + text + "', expected " + kExpected);
  }
  return result;
}

CLI::Option* add_fuse_option(CLI::App& command, std::string& how) {
  return command
      .add_option("--fuse", how,
                  "Which layers run as one step, a few rows at a time: auto (default): those that save much "
                  "memory and cost little time, or save time by --tuning; memory: those that give the least "
                  "memory, regardless of their time; off: none; all: wherever it can be done, for "
                  "measurements: it may "
                  "take more memory and time than auto")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "off", "all", "memory"}));
}

uint32_t parse_fuse(const std::string& how) {
  if (how == "auto") return QPLAN_FUSE_AUTO;
  if (how == "memory") return QPLAN_FUSE_MEMORY;
  return how == "off" ? QPLAN_FUSE_OFF : QPLAN_FUSE_ALL;
}

uint32_t parse_prefer(const std::string& what) {
  if (what == "npu") return QPLAN_PREFER_NPU;
  if (what == "latency") return QPLAN_PREFER_LATENCY;
  return what == "energy" ? QPLAN_PREFER_ENERGY : QPLAN_PREFER_DEFAULT;
}

PackArguments::PackArguments(const ModelOptions& options) {
  const auto level = log_levels().find(options.log_level);
  if (level == log_levels().end()) {
    throw UsageError("--log-level: found '" + options.log_level +
                     "', expected error, warning, info or debug");
  }
  for (const std::string& text : options.input_shapes) types_.push_back(parse_input_shape(text));
  for (const NamedType& type : types_) {
    named_types_.push_back(
        {type.name.c_str(), type.dtype, static_cast<int32_t>(type.shape.size()), type.shape.data()});
  }
  for (const std::string& text : options.bindings) add_binding(text);
  for (const Binding& binding : bindings_) named_tensors_.push_back({binding.name.c_str(), &binding.tensor});
  for (const std::string& name : options.skip) skip_.push_back(name.c_str());

  options_.struct_size = sizeof options_;
  options_.target = options.target.c_str();
  options_.dump_after = or_null(options.dump_after);
  options_.log_level = options.verbose ? std::max<uint32_t>(level->second, QPLAN_LOG_INFO) : level->second;
  options_.user = this;
  options_.log = on_log;
  options_.dump = write_to_stdout;
  options_.error_text = [](void* user, const char* bytes, size_t size) {
    static_cast<PackArguments*>(user)->error_text_.append(bytes, size);
  };
  options_.progress = [](void* user, const char* stage, uint32_t done, uint32_t total) {
    static_cast<PackArguments*>(user)->progress_.update(stage, done, total);
  };
  options_.contract = or_null(options.contract);
  options_.io = or_null(options.io);
  options_.io_layout = or_null(options.io_layout);
  options_.keep_float = options.keep_float ? 1 : 0;
  options_.skip = skip_.data();
  options_.num_skip = static_cast<uint32_t>(skip_.size());
  for (const std::string& name : options.begin_at) begin_at_.push_back(name.c_str());
  for (const std::string& name : options.end_at) end_at_.push_back(name.c_str());
  options_.begin_at = begin_at_.data();
  options_.num_begin_at = static_cast<uint32_t>(begin_at_.size());
  options_.end_at = end_at_.data();
  options_.num_end_at = static_cast<uint32_t>(end_at_.size());
  options_.bindings = named_tensors_.data();
  options_.num_bindings = static_cast<uint32_t>(named_tensors_.size());
  options_.input_types = named_types_.data();
  options_.num_input_types = static_cast<uint32_t>(named_types_.size());
  const CustomOperators custom(options.custom_operators);
  options_.custom_operators = custom.operators;
  options_.num_custom_operators = custom.count;
  if (options.seed.empty()) return;
  options_.synthesize_constants = 1;
  if (!parse_whole(options.seed, &options_.synthesize_seed)) {
    throw UsageError("--synthesize-constants: found '" + options.seed +
                     "', expected a number from 0 to 2^64 - 1");
  }
}

void PackArguments::place(const PlacementOptions& options) {
  if (options.policy != "soft" && options.policy != "strict") {
    throw UsageError("--placement: found '" + options.policy + "', expected soft or strict");
  }
  if (options.fallback != "cpu" && options.fallback != "none") {
    throw UsageError("--fallback: found '" + options.fallback + "', expected cpu or none");
  }
  for (const std::string& pin : options.pins) {
    (void)split_named(pin, "--pin", "NODE=TARGET like block3/conv=vta");
    pins_.push_back(pin.c_str());
  }
  for (const std::string& path : options.target_libs) target_libs_.push_back(path.c_str());
  options_.target_file = or_null(options.target_file);
  options_.target_libs = target_libs_.data();
  options_.num_target_libs = static_cast<uint32_t>(target_libs_.size());
  options_.placement = options.policy == "strict" ? QPLAN_PLACEMENT_STRICT : QPLAN_PLACEMENT_SOFT;
  options_.pins = pins_.data();
  options_.num_pins = static_cast<uint32_t>(pins_.size());
  options_.prefer = parse_prefer(options.prefer);
  options_.no_cost_gate = options.no_cost_gate ? 1 : 0;
  options_.no_fallback = options.fallback == "none" ? 1 : 0;
  options_.summary = [](void* user, const char* text) { static_cast<PackArguments*>(user)->summary_ = text; };
}

void PackArguments::add_binding(const std::string& text) {
  const auto [name, path] = split_named(text, "--bind", "NAME=FILE like w=w.npy");
  Binding& binding = bindings_.emplace_back();
  binding.name = name;
  binding.file = read_file(path, "binding");
  size_t offset = 0;
  if (has_extension(path, ".npy")) {
    NpyHeader header = parse_npy(binding.file, path, "binding");
    binding.tensor.dtype = header.dtype;
    binding.shape = std::move(header.shape);
    offset = header.data_offset;
  } else {
    const NamedType* type = nullptr;
    for (const NamedType& candidate : types_) {
      if (candidate.name == name) type = &candidate;
    }
    if (type == nullptr) {
      throw UsageError("--bind: '" + path + "' has raw bytes, whose type --input-shape " + name +
                       "=... must give");
    }
    binding.tensor.dtype = type->dtype;
    binding.shape = type->shape;
  }
  binding.tensor.data = binding.file.data() + offset;
  binding.tensor.device = {kDLCPU, 0};
  binding.tensor.ndim = static_cast<int32_t>(binding.shape.size());
  binding.tensor.shape = binding.shape.data();
  uint64_t expected = (binding.tensor.dtype.bits + 7U) / 8U;
  const uint64_t found = binding.file.size() - offset;
  for (const int64_t extent : binding.shape) {
    // Beyond what any file has, a product no longer matters.
    expected =
        static_cast<uint64_t>(extent) > found + 1 ? found + 1 : expected * static_cast<uint64_t>(extent);
    if (expected > found) break;
  }
  if (expected != found) {
    throw Failure("binding '" + path + "': " + std::to_string(found) + " bytes of data do not fit " +
                  dtype_name(binding.tensor.dtype) + shape_text(binding.tensor.shape, binding.tensor.ndim));
  }
}

std::string pack_model(const ModelOptions& model, const PlacementOptions& placement, uint32_t fuse) {
  PackArguments arguments(model);
  arguments.place(placement);
  arguments.pack_options().fuse = fuse;
  std::string plan;
  qplan_error error = make_error();
  arguments.check(
      qplan_pack_file(model.model.c_str(), &arguments.pack_options(), append_to_string, &plan, &error),
      error);
  return plan;
}

void PackArguments::check(qplan_status status, const qplan_error& error) const {
  if (status < 0 && !error_text_.empty()) {
    const std::vector<std::string> lines = split_lines(error_text_);
    const std::vector<std::string> details(lines.begin() + 1, lines.end());
    if (status == QPLAN_MODEL_UNSUPPORTED) throw UnsupportedModel(lines.front(), details);
    throw Failure(lines.front(), details);
  }
  tools::check(status, error, "");
}

}  // namespace qplan::tools
