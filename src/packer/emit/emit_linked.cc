// Plans whose models share an arena, as C (`qplan link`): the files of each, and the arena with what keeps
// two of them from using it at the same time.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "src/packer/emit/emit.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::emit {
namespace {

constexpr char kFirstLine[] = "/* Written by qplan link. C99. */\n";

constexpr char kRules[] =
    R"(/* Memory of models that run one after another. States, and what _init has made, are not in it.
 *
 * A model takes the arena by _init, by _input, or by _run if it has no inputs; what another model had there is
 * then gone. A model has an input from the call of _input with its index until another model takes the arena or
 * its own _init is called. An index that no input has takes nothing. _run returns -2 (QPLAN_INVALID_STATE) unless
 * the model has all its inputs. A model has its outputs from a run that returned 0 until another model takes the
 * arena or its own _init, _input or _run is called; without outputs _output returns NULL.
 *
 * While a model runs, _init and _run return -2, _input and _output NULL. Threads and interrupts that call these
 * functions must exclude each other from the first _input of a turn to the last byte of output that is read. */
)";

std::string header(std::span<const LinkedPlan> plans, const EmitOptions& options, const ArenaBytes& bytes) {
  const std::string& name = options.name;
  const std::string upper = upper_case(name);
  const std::string guard = "QPLAN_EMITTED_" + upper + "_H_";
  std::string text = cat(kFirstLine, "#ifndef ", guard, "\n#define ", guard, "\n\n#include <stdint.h>\n\n");
  text += kRules;
  text += define_by_width(upper + "_BYTES", cat(bytes.bits_32, "u"), cat(bytes.bits_64, "u"));
  uint32_t model = 0;
  for (const LinkedPlan& plan : plans) {
    EmitOptions of_plan = options;
    of_plan.arena = name;
    of_plan.name = plan.name;
    text += cat("#define ", model_macro(of_plan), " ", ++model, "u\n");
  }
  text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += "/* ---- for the files of the models ---- */\n";
  text += cat("extern uint8_t ", name, "_memory[", upper, "_BYTES];\n");
  text +=
      cat("/* The arena becomes the model's, which has no input: 0, or -2 while a model runs. */\nint32_t ",
          name, "_take(uint32_t model);\n");
  text += cat("/* The model has the arena, and this input: 0, or -2 while a model runs. */\nint32_t ", name,
              "_ask(uint32_t model, uint32_t input);\n");
  text += cat("/* A run begins: 0, or -2 where the model lacks an input, or while a model runs. */\nint32_t ",
              name, "_begin(uint32_t model);\nvoid ", name, "_end(int32_t status);\n");
  text += cat("/* Whether the model has outputs. */\nint ", name, "_has(uint32_t model);\n");
  return text + "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

// Replaces each "@" by the arena's name.
std::string named(const char* text, const std::string& name) {
  std::string result;
  for (; *text != '\0'; ++text) {
    if (*text == '@') {
      result += name;
    } else {
      result += *text;
    }
  }
  return result;
}

// _begin sets is_running before it looks at the rest: an interrupt that takes the arena comes before, and is
// seen, or after, and is refused.
constexpr char kSource[] =
    R"(/* volatile: hooks that a run calls, and interrupts, read and write them. */
static volatile uint32_t owner;               /* the model that has the arena; 0: none */
static volatile uint8_t is_asked[INPUTS_MAX]; /* the inputs that it has */
static volatile uint32_t num_asked, has_outputs, is_running;

static void give(uint32_t model) {
  uint32_t i;
  owner = model;
  for (i = 0u; i < INPUTS_MAX; ++i) is_asked[i] = 0u;
  num_asked = 0u;
  has_outputs = 0u;
}

int32_t @_take(uint32_t model) {
  if (is_running != 0u) return -2;
  give(model);
  return 0;
}

int32_t @_ask(uint32_t model, uint32_t input) {
  if (is_running != 0u || input >= num_inputs[model]) return -2;
  if (owner != model) give(model);
  has_outputs = 0u;
  if (is_asked[input] == 0u) ++num_asked;
  is_asked[input] = 1u;
  return 0;
}

int32_t @_begin(uint32_t model) {
  const uint32_t was_running = is_running;
  is_running = 1u;
  if (was_running != 0u) return -2;
  if (owner != model && num_inputs[model] == 0u) give(model);
  if (owner == model && num_asked == num_inputs[model]) {
    has_outputs = 0u;
    return 0;
  }
  is_running = 0u;
  return -2;
}

void @_end(int32_t status) {
  has_outputs = status == 0 ? 1u : 0u;
  is_running = 0u;
}

int @_has(uint32_t model) { return is_running == 0u && has_outputs != 0u && owner == model; }
)";

std::string source(std::span<const LinkedPlan> plans, const EmitOptions& options) {
  const std::string& name = options.name;
  uint32_t most = 1;
  std::string counts;
  for (const LinkedPlan& plan : plans) {
    const uint32_t count = format::count_of(plan.view.find_function(nullptr)->inputs());
    most = std::max(most, count);
    counts += cat(", ", count, "u");
  }
  std::string text = cat(kFirstLine, "#include \"", name, ".h\"\n\n#include <qplan/firmware.h>\n\n");
  text += cat("QPLAN_RAM QPLAN_ALIGNED(64) uint8_t ", name, "_memory[", upper_case(name), "_BYTES];\n\n");
  text += cat("#define INPUTS_MAX ", most, "u\nstatic const uint32_t num_inputs[] = {0u", counts,
              "}; /* by model; 0 is none */\n");
  return text + named(kSource, name);
}

// The macros that a header defines.
std::set<std::string> macros_of(const std::string& text) {
  std::set<std::string> macros;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kDefine = "#define ";
    if (line.starts_with(kDefine))
      macros.insert(line.substr(kDefine.size(), line.find(' ', kDefine.size()) - kDefine.size()));
  }
  return macros;
}

// Programs include several of the headers: no two of them define one macro.
void check_macros(const std::vector<EmittedFile>& files) {
  std::map<std::string, std::string> file_of;
  for (const EmittedFile& file : files) {
    if (!file.name.ends_with(".h")) continue;
    for (const std::string& macro : macros_of(file.text)) {
      const auto [other, is_new] = file_of.emplace(macro, file.name);
      if (is_new) continue;
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("link: '", other->second, "' and '", file.name, "' would both define '", macro,
                          "'; rename a plan's file, or pass another --name for the arena"));
    }
  }
}

}  // namespace

std::vector<EmittedFile> emit_linked(std::span<const LinkedPlan> plans, const EmitOptions& options) {
  check_name(options.name);
  std::set<std::string> names = {upper_case(options.name)};
  std::vector<EmittedFile> files;
  const auto add = [&](EmittedFile file) {
    // Upper and lower case are the same to some file systems.
    const auto same = [&](const EmittedFile& other) {
      return upper_case(other.name) == upper_case(file.name);
    };
    if (std::ranges::any_of(files, same)) {
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
  add({options.name + ".c", source(plans, options)});
  check_macros(files);
  return files;
}

}  // namespace qplan::emit
