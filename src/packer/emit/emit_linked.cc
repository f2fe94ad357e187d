// Plans whose models share an arena, as C (`qplan link`): the files of each, and the arena with what keeps
// two of them from using it at the same time.
#include <algorithm>
#include <set>

#include "src/packer/emit/emit.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::emit {
namespace {

constexpr char kFirstLine[] = "/* Written by qplan link. C99. */\n";

std::string header(std::span<const LinkedPlan> plans, const EmitOptions& options, const ArenaBytes& bytes) {
  const std::string& name = options.name;
  const std::string upper = upper_case(name);
  const std::string guard = "QPLAN_EMITTED_" + upper + "_H_";
  std::string text = cat(kFirstLine, "#ifndef ", guard, "\n#define ", guard, "\n\n#include <stdint.h>\n\n");
  text +=
      "/* Memory of models that run one after another. What a model keeps from run to run is not in it: its "
      "states\n"
      " * and what init has made. A model has the arena from a call of its _init or _input on, until another "
      "one\n"
      " * takes it so. Then its inputs and outputs are gone: its _run returns -2 (QPLAN_INVALID_STATE) until "
      "its\n"
      " * inputs are written again, its _output NULL. While a model runs, none can take the arena: _input "
      "returns\n"
      " * NULL, _init and _run -2. One thread calls these functions, or threads that exclude each other. "
      "*/\n";
  text += define_by_width(upper + "_BYTES", cat(bytes.bits_32, "u"), cat(bytes.bits_64, "u"));
  uint32_t model = 0;
  for (const LinkedPlan& plan : plans) {
    EmitOptions of_plan = options;
    of_plan.arena = name;
    of_plan.name = plan.name;
    text += cat("#define ", model_macro(of_plan), " ", ++model, "u\n");
  }
  text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += "/* For the files of the models. */\n";
  text += cat("extern uint8_t ", name, "_memory[", upper, "_BYTES];\n");
  text += cat("/* The arena becomes the model's: 0, or -2 while a model runs. */\nint32_t ", name,
              "_take(uint32_t model);\n");
  text +=
      cat("/* A run begins: 0, or -2 where the arena is not the model's, or while a model runs. */\nint32_t ",
          name, "_begin(uint32_t model);\nvoid ", name, "_end(void);\n");
  text += cat("/* Whether the arena is the model's, and no model runs. */\nint ", name,
              "_has(uint32_t model);\n");
  return text + "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

std::string source(const EmitOptions& options) {
  const std::string& name = options.name;
  const std::string upper = upper_case(name);
  std::string text = cat(kFirstLine, "#include \"", name, ".h\"\n\n#include <qplan/firmware.h>\n\n");
  text += cat("QPLAN_RAM QPLAN_ALIGNED(64) uint8_t ", name, "_memory[", upper, "_BYTES];\n\n");
  text += "/* The model that has the arena, 0: none. volatile: hooks that a run calls read them. */\n";
  text += "static volatile uint32_t owner;\nstatic volatile uint32_t is_running;\n\n";
  text += cat(
      "int32_t ", name,
      "_take(uint32_t model) {\n  if (is_running != 0u) return -2;\n  owner = model;\n  return 0;\n}\n\n");
  text += cat("int32_t ", name,
              "_begin(uint32_t model) {\n  if (is_running != 0u || owner != model) return -2;\n"
              "  is_running = 1u;\n  return 0;\n}\n\n");
  text += cat("void ", name, "_end(void) { is_running = 0u; }\n\n");
  text += cat("int ", name, "_has(uint32_t model) { return is_running == 0u && owner == model; }\n");
  return text;
}

}  // namespace

std::vector<EmittedFile> emit_linked(std::span<const LinkedPlan> plans, const EmitOptions& options) {
  check_name(options.name);
  std::set<std::string> names = {upper_case(options.name)};
  std::vector<EmittedFile> files;
  const auto add = [&](EmittedFile file) {
    if (std::ranges::find(files, file.name, &EmittedFile::name) != files.end()) {
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("link: two models would write '", file.name,
                          "'; rename a plan's file, or pass another --name for the arena"));
    }
    files.push_back(std::move(file));
  };
  ArenaBytes most;
  for (const LinkedPlan& plan : plans) {
    check_name(plan.name);
    if (!names.insert(upper_case(plan.name)).second) {
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("link: '", plan.name,
                          "' is the name of two models, or of a model and the arena; "
                          "rename a plan's file, or pass another --name for the arena"));
    }
    EmitOptions of_plan = options;
    of_plan.arena = options.name;
    of_plan.name = plan.name;
    ArenaBytes bytes;
    std::vector<EmittedFile> of_model;
    try {
      of_model = emit_model(plan.view, plan.bytes, of_plan, &bytes);
    } catch (const PackError& error) {
      throw PackError(error.status(), cat("'", plan.name, "': ", error.what()));
    }
    for (EmittedFile& file : of_model) add(std::move(file));
    most = {std::max(most.bits_32, bytes.bits_32), std::max(most.bits_64, bytes.bits_64)};
  }
  add({options.name + ".h", header(plans, options, most)});
  add({options.name + ".c", source(options)});
  return files;
}

}  // namespace qplan::emit
