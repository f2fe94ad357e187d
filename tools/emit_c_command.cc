// qplan emit-c and qplan link: a plan as C for firmware, and several plans that run one after another in one
// memory.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

// ---- the C that the library writes

using EmittedFiles = std::vector<std::pair<std::string, std::string>>;  // names and contents

// A qplan_write_file_fn; user is an EmittedFiles.
void append_file(void* user, const char* name, const char* bytes, size_t size) {
  static_cast<EmittedFiles*>(user)->emplace_back(name, std::string(bytes, size));
}

// The file's name without extensions, as an identifier: "kws-v2.qplan" gives "kws_v2".
std::string identifier_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = name.substr(0, name.find('.'));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "model_" + name;
  return name;
}

// QPLAN_ISA_* of --isa, QPLAN_ISA_AUTO for "". UsageError.
uint32_t emitted_isa(const std::string& name) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (!name.empty() && qplan_isa_from_name(name.c_str(), &isa) < 0) {
    throw UsageError("--isa: '" + name + "' is not known; `qplan inspect` prints those of the plan");
  }
  return isa;
}

// Writes the files; returns "wrote kws.h, kws.c to 'DIR'\n". Failure where one would replace a plan, or where
// the folder has the plan as an array of a model whose files now do without: builds that take all sources of
// the folder would not compile.
std::string write_emitted(const EmittedFiles& files, const std::string& directory,
                          const std::vector<std::string>& plans) {
  std::vector<NamedFile> inputs;
  for (const std::string& plan : plans) inputs.push_back({"plan", plan});
  std::vector<NamedFile> outputs;
  std::set<std::string> names;
  for (const auto& [file, bytes] : files) {
    outputs.push_back({"--output", directory + "/" + file, NamedFile::Written::kInItsFolder});
    names.insert(file);
  }
  check_outputs(outputs, inputs);
  for (const std::string& file : names) {
    if (!file.ends_with(".h")) continue;
    const std::string array = file.substr(0, file.size() - 2) + "_plan.c";
    const std::string path = directory + "/" + array;
    if (names.contains(array) || !std::filesystem::exists(path)) continue;
    throw Failure("'" + path + "' is there, the plan as an array, which does not belong to files of --aot; " +
                  "remove it, or give another folder");
  }
  std::vector<NamedBytes> written;
  std::string text = "wrote";
  for (const auto& [file, bytes] : files) {
    written.push_back({file, bytes.data(), bytes.size()});
    text += (written.size() > 1 ? ", " : " ") + file;
  }
  write_files(directory, written);
  return text + " to '" + one_line(directory) + "'\n";
}

// ---- emit-c

struct EmitOptions {
  std::string plan;
  std::string directory;
  std::string name;
  std::string isa;
  bool aot = false;
};

void run(const EmitOptions& options) {
  check_output_directory(options.directory);
  const PlanFile plan(options.plan);
  const std::string name = options.name.empty() ? identifier_of(options.plan) : options.name;
  qplan_emit_options emit_options{};
  emit_options.struct_size = sizeof emit_options;
  emit_options.aot = options.aot ? 1 : 0;
  emit_options.name = name.c_str();
  emit_options.isa = emitted_isa(options.isa);
  EmittedFiles files;
  qplan_error error = make_error();
  check(qplan_emit_c(plan.bytes(), plan.size(), &emit_options, append_file, &files, &error), error,
        "'" + options.plan + "'");
  print(write_emitted(files, options.directory, {options.plan}));
}

}  // namespace

void add_emit_c_command(CLI::App& app) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("emit-c", "Write a plan as C for firmware");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_option("-o,--output", options->directory, "Folder for the files; created where it is missing")
      ->required()
      ->type_name("DIR");
  command->add_flag(
      "--aot", options->aot,
      "Direct calls of the kernels, with constant arguments: nothing is verified or looked up at run "
      "time. Without it, the plan is an array that the runtime opens");
  command->add_option("--name", options->name, "Of files and functions (default: the plan file's)")
      ->type_name("NAME");
  command
      ->add_option("--isa", options->isa,
                   "With --aot: the best instruction set that kernels may have (default: one that every "
                   "processor of the plan's architecture has)")
      ->type_name("ISA");
  command->footer(
      "The files are C99, need include/ of qplan alone and link with libqplan.a. They define NAME_init, "
      "NAME_input,\n"
      "NAME_run and NAME_output; NAME.h has the sizes, types and quantisation of inputs and outputs.\n"
      "Examples:\n"
      "  qplan emit-c kws.qplan -o kws\n"
      "  qplan emit-c kws.qplan -o kws --aot --name keywords");
  command->callback([options]() { run(*options); });
}

// ---- link

namespace {

using Json = nlohmann::ordered_json;

struct LinkOptions {
  std::vector<std::string> plans;
  std::string directory;
  std::string name = "arena";
  std::string isa;
  bool aot = false;
  bool json = false;
};

// Bytes on a device whose pointers have so many bits.
struct Sizes {
  uint64_t kept = 0;   // by models, each for itself
  uint64_t arena = 0;  // that models take of the arena: the most of them
  uint64_t apart = 0;  // of models that share nothing
};
struct Model {
  std::string name;
  std::map<std::string, Sizes> sizes;  // by width
};
constexpr const char* kWidths[] = {"32_bit", "64_bit"};

// The figures of the array form.
Model model_of(const std::string& name, const Json& memory) {
  Model model = {name, {}};
  for (const std::string width : kWidths) {
    const Json& shared = memory.at("shared_arena").at(width);
    model.sizes[width] = {shared.at("kept_bytes").get<uint64_t>(), shared.at("arena_bytes").get<uint64_t>(),
                          memory.at("session_bytes").at(width).at("1").get<uint64_t>()};
  }
  return model;
}

// The value of a macro that is the same for all widths.
uint64_t defined_value(const EmittedFiles& files, const std::string& file, const std::string& macro) {
  const std::string define = "\n#define " + macro + " ";
  for (const auto& [name, text] : files) {
    const size_t at = name == file ? text.find(define) : std::string::npos;
    if (at != std::string::npos) return std::stoull(text.substr(at + define.size(), 20));
  }
  throw Failure("link: '" + file + "' does not define '" + macro + "'; this is a defect of qplan");
}

// The figures of direct calls, whose memory is the same on all devices. A model alone has its states in what
// is the arena here.
Model model_of(const std::string& name, const EmittedFiles& files) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const uint64_t arena = defined_value(files, name + ".h", upper + "_ARENA_BYTES");
  const Sizes sizes = {defined_value(files, name + ".h", upper + "_MEMORY_BYTES"), arena, arena};
  return {name, {{kWidths[0], sizes}, {kWidths[1], sizes}}};
}

Sizes sizes_of(const std::vector<Model>& models, const std::string& width) {
  Sizes all;
  for (const Model& model : models) {
    const Sizes& sizes = model.sizes.at(width);
    all = {all.kept + sizes.kept, std::max(all.arena, sizes.arena), all.apart + sizes.apart};
  }
  return all;
}

// kws: keeps 1,184 bytes and takes 8,288 of the arena; 9,472 alone
// arena: 32,032 bytes, with what is kept 35,216; apart 43,504
std::string page_of(const std::vector<Model>& models, const std::string& width, const std::string& title) {
  std::string page = title + ":\n";
  for (const Model& model : models) {
    const Sizes& sizes = model.sizes.at(width);
    page += "  " + model.name + ": keeps " + grouped(sizes.kept) + " bytes and takes " +
            grouped(sizes.arena) + " of the arena; " + grouped(sizes.apart) + " alone\n";
  }
  const Sizes sizes = sizes_of(models, width);
  return page + "  arena " + grouped(sizes.arena) + " bytes, with what is kept " +
         grouped(sizes.arena + sizes.kept) + "; apart " + grouped(sizes.apart) + "\n";
}

Json json_of(const LinkOptions& options, const std::vector<Model>& models) {
  Json json = {{"plans", Json::array()}};
  for (size_t i = 0; i < models.size(); ++i) {
    Json plan = {{"name", models[i].name}, {"plan", options.plans[i]}};
    for (const std::string width : kWidths) {
      const Sizes& sizes = models[i].sizes.at(width);
      plan[width] = {
          {"kept_bytes", sizes.kept}, {"arena_bytes", sizes.arena}, {"session_bytes", sizes.apart}};
    }
    json["plans"].push_back(std::move(plan));
  }
  for (const std::string width : kWidths) {
    const Sizes sizes = sizes_of(models, width);
    json["shared"][width] = {{"arena_bytes", sizes.arena},
                             {"kept_bytes", sizes.kept},
                             {"bytes", sizes.arena + sizes.kept},
                             {"bytes_apart", sizes.apart}};
  }
  return json;
}

EmittedFiles emit(const LinkOptions& options, const std::deque<PlanFile>& plans,
                  const std::vector<std::string>& names) {
  std::vector<qplan_linked_plan> linked;
  for (size_t i = 0; i < plans.size(); ++i) {
    linked.push_back({sizeof(qplan_linked_plan), 0, plans[i].bytes(), plans[i].size(), names[i].c_str()});
  }
  qplan_emit_options emit_options{};
  emit_options.struct_size = sizeof emit_options;
  emit_options.aot = options.aot ? 1 : 0;
  emit_options.name = options.name.c_str();
  emit_options.isa = emitted_isa(options.isa);
  EmittedFiles files;
  qplan_error error = make_error();
  check(qplan_link_c(linked.data(), static_cast<uint32_t>(linked.size()), &emit_options, append_file, &files,
                     &error),
        error, "");
  return files;
}

void run(const CLI::App& command, const LinkOptions& options) {
  if (options.directory.empty())
    refuse_without_effect(command, {"--name", "--aot", "--isa"}, "without --output: no C is written");
  if (!options.directory.empty()) check_output_directory(options.directory);
  std::deque<PlanFile> plans;
  std::vector<std::string> names;
  std::vector<Model> models;
  for (const std::string& path : options.plans) {
    const PlanFile& plan = plans.emplace_back(path);
    names.push_back(identifier_of(path));
    const Json facts = inspect_plan(plan);
    for (const Json& bank : facts.at("banks")) {
      if (bank.at("kind") != "device") continue;
      throw Failure("'" + path +
                    "': its steps run on a device, whose memory no other plan can use meanwhile; "
                    "pack the model with --target cpu,...");
    }
    const Json& shared = facts.at("memory").at("shared_arena");
    if (shared.contains("refusal"))
      throw Failure("'" + path + "': " + shared.at("refusal").get<std::string>());
    models.push_back(model_of(names.back(), facts.at("memory")));
  }
  EmittedFiles files;
  if (!options.directory.empty()) files = emit(options, plans, names);
  if (options.aot) {
    models.clear();
    for (const std::string& name : names) models.push_back(model_of(name, files));
  }
  const std::string wrote =
      options.directory.empty() ? "" : write_emitted(files, options.directory, options.plans);
  if (options.json) {
    print(json_page(json_of(options, models)));
    return;
  }
  const std::string page = options.aot ? page_of(models, kWidths[0], "direct calls")
                                       : page_of(models, kWidths[0], "32 bit, one worker") +
                                             page_of(models, kWidths[1], "64 bit, one worker");
  print(page + wrote);
}

}  // namespace

void add_link_command(CLI::App& app) {
  auto options = std::make_shared<LinkOptions>();
  CLI::App* command =
      app.add_subcommand("link", "Let several plans share memory: they run one after another");
  command->add_option("PLAN", options->plans, "Two or more plan files")
      ->required()
      ->expected(-2)
      ->type_name("");
  command
      ->add_option("-o,--output", options->directory, "Write all plans and the arena as C into this folder")
      ->type_name("DIR");
  command->add_option("--name", options->name, "The name of the arena and its files (default: arena)")
      ->type_name("NAME");
  command->add_flag("--aot", options->aot,
                    "With -o: each plan is written as direct calls of the kernels, as `emit-c --aot` does");
  command
      ->add_option("--isa", options->isa,
                   "With --aot: the instruction set of the kernels, as `emit-c --isa` takes it")
      ->type_name("ISA");
  command->add_flag("--json", options->json, "Print the figures as JSON");
  command->footer(
      "Without -o, prints what each plan keeps from run to run, its states included, and what it takes of "
      "the\n"
      "arena, which is as large as the largest of them. With -o, writes each plan as `emit-c` does, and\n"
      "NAME.h and NAME.c with the arena. Models are named after their plans' files.\n"
      "Examples:\n"
      "  qplan link kws.qplan person.qplan\n"
      "  qplan link kws.qplan person.qplan -o models");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
