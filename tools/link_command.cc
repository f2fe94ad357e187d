// qplan link: several plans that run one after another in one memory.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "tools/emitted_files.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/plan_facts.h"
#include "tools/words.h"

namespace qplan::tools {
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

// Bytes on a device whose pointers have so many bits ("32_bit").
struct Sizes {
  uint64_t kept = 0;   // by the models, each for itself
  uint64_t arena = 0;  // the most that one of them takes
  uint64_t apart = 0;  // of models that share nothing
};

Sizes sizes_of(const std::vector<Json>& memories, const std::string& width) {
  Sizes sizes;
  for (const Json& memory : memories) {
    const Json& shared = memory.at("shared_arena").at(width);
    sizes.kept += shared.at("kept_bytes").get<uint64_t>();
    sizes.arena = std::max(sizes.arena, shared.at("arena_bytes").get<uint64_t>());
    sizes.apart += memory.at("session_bytes").at(width).at("1").get<uint64_t>();
  }
  return sizes;
}

std::string bits_of(const std::string& width) { return width.substr(0, 2) + " bit"; }

// kws: keeps 1,184 bytes and takes 8,288 of the arena; 9,472 alone
// arena: 32,032 bytes, with what is kept 35,216; apart 43,504
std::string page_of(const std::vector<std::string>& names, const std::vector<Json>& memories) {
  std::string page;
  for (const std::string width : {"32_bit", "64_bit"}) {
    page += bits_of(width) + ", one worker:\n";
    for (size_t i = 0; i < names.size(); ++i) {
      const Json& shared = memories[i].at("shared_arena").at(width);
      page += "  " + names[i] + ": keeps " + grouped(shared.at("kept_bytes").get<uint64_t>()) +
              " bytes and takes " + grouped(shared.at("arena_bytes").get<uint64_t>()) + " of the arena; " +
              grouped(memories[i].at("session_bytes").at(width).at("1").get<uint64_t>()) + " alone\n";
    }
    const Sizes sizes = sizes_of(memories, width);
    page += "  arena " + grouped(sizes.arena) + " bytes, with what is kept " +
            grouped(sizes.arena + sizes.kept) + "; apart " + grouped(sizes.apart) + "\n";
  }
  return page;
}

Json json_of(const LinkOptions& options, const std::vector<std::string>& names,
             const std::vector<Json>& memories) {
  Json json = {{"plans", Json::array()}};
  for (size_t i = 0; i < names.size(); ++i) {
    Json plan = {{"name", names[i]}, {"plan", options.plans[i]}};
    for (const std::string width : {"32_bit", "64_bit"}) {
      plan[width] = memories[i].at("shared_arena").at(width);
      plan[width]["session_bytes"] = memories[i].at("session_bytes").at(width).at("1");
    }
    json["plans"].push_back(std::move(plan));
  }
  for (const std::string width : {"32_bit", "64_bit"}) {
    const Sizes sizes = sizes_of(memories, width);
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
        error, "link");
  return files;
}

void run(const LinkOptions& options) {
  if (options.directory.empty() && (options.aot || !options.isa.empty()))
    throw UsageError("--aot and --isa are about the C that --output writes");
  if (!options.directory.empty()) check_output_directory(options.directory);
  std::deque<PlanFile> plans;
  std::vector<std::string> names;
  std::vector<Json> memories;
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
    const size_t areas = facts.at("memory").at("areas").size();
    if (areas != 0) {
      throw Failure("'" + path + "': the plan has activations in " + std::to_string(areas + 1) +
                    " memory areas, of which none can be shared; pack the model without areas");
    }
    memories.push_back(facts.at("memory"));
  }
  if (options.json) {
    print(json_page(json_of(options, names, memories)));
  } else if (!options.aot) {
    print(page_of(names, memories));
  }
  if (options.directory.empty()) return;
  const std::string wrote = write_emitted(emit(options, plans, names), options.directory);
  if (!options.json) print(wrote);
}

}  // namespace

void add_link_command(CLI::App& app) {
  auto options = std::make_shared<LinkOptions>();
  CLI::App* command =
      app.add_subcommand("link", "Let several plans share memory: they run one after another");
  command->add_option("PLAN", options->plans, "Plan files")->required()->expected(2, 255)->type_name("");
  command->add_option("-o,--output", options->directory, "Folder for C of all plans and the arena")
      ->type_name("DIR");
  command->add_option("--name", options->name, "Of the arena and its files (default: arena)")
      ->type_name("NAME");
  command->add_flag("--aot", options->aot, "With -o: direct calls of the kernels, as `emit-c --aot`");
  command->add_option("--isa", options->isa, "With --aot: as of `emit-c`")->type_name("ISA");
  command->add_flag("--json", options->json, "The figures as JSON");
  command->footer(
      "Without -o, prints what each plan keeps from run to run, its states included, and what it takes of "
      "the\n"
      "arena, which is as large as the largest of them. With -o, writes each plan as `emit-c` does, and\n"
      "NAME.h and NAME.c with the arena. Models are named after their plans' files.\n"
      "Examples:\n"
      "  qplan link kws.qplan person.qplan\n"
      "  qplan link kws.qplan person.qplan -o models");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
