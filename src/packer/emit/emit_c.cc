#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/cpu.h"
#include "src/packer/emit/emit.h"
#include "src/packer/emit/number_text.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/runtime/cascade.h"

namespace qplan::emit {
namespace {

using format::PlanView;

// Text of a model in a comment or string of C: no end of either, no character that a compiler could mind.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '*' && c != '?';
    result += is_plain ? c : '_';
  }
  return result;
}

std::string element_type(const format::Tensor& tensor) {
  const std::string dtype = inspect::dtype_text(tensor);
  return dtype == "float32" ? "float" : dtype == "bool" ? "uint8_t" : dtype + "_t";
}

template <typename Vector, typename Text>
std::string list_text(const Vector* values, const Text& text) {
  std::string list = "{";
  for (uint32_t i = 0; i < format::count_of(values); ++i) {
    if (i > 0) list += ", ";
    list += text(values->Get(i));
  }
  return list + "}";
}

// Macros of one input or output: what a program needs to fill or read it.
std::string tensor_macros(const PlanView& view, const std::string& prefix, uint32_t index) {
  const format::Tensor& tensor = view.tensor(index);
  std::string text = cat("/* ", plain(view.tensor_name(index)), ": ", inspect::dtype_text(tensor), " ",
                         inspect::shape_text(tensor), " */\n");
  const auto define = [&](const char* what, const std::string& value) {
    text += "#define " + prefix + what + " " + value + "\n";
  };
  define("_TYPE", element_type(tensor));
  define("_BYTES", cat(tensor.size(), "u"));
  define("_ELEMENTS", cat(tensor.size() / std::max<uint64_t>(format::element_bytes(tensor), 1), "u"));
  define("_RANK", cat(format::rank_of(tensor), "u"));
  if (format::rank_of(tensor) > 0) {
    define("_SHAPE", list_text(tensor.shape(), [](int64_t extent) { return std::to_string(extent); }));
  }
  const format::Quantization* q = tensor.quantization();
  const uint32_t scales = q == nullptr ? 0 : format::count_of(q->scales());
  define("_NUM_SCALES", cat(scales, "u"));
  if (scales == 1) {
    define("_SCALE", hex_float(q->scales()->Get(0)) + " /* " + decimal_text(q->scales()->Get(0)) + " */");
    define("_ZERO_POINT", cat("(", q->zero_points()->Get(0), ")"));
  } else if (scales > 1) {
    define("_SCALES", list_text(q->scales(), hex_float));
    define("_ZERO_POINTS", list_text(q->zero_points(), [](int32_t zero) { return std::to_string(zero); }));
    define("_QUANTIZED_AXIS", std::to_string(q->axis()));
  }
  return text;
}

// What init of the array form takes, in one memory or, with an arena, in two.
struct SessionBytes {
  uint64_t own = 0, arena = 0;
};
SessionBytes session_bytes(const PlanView& view, uint64_t pointer_size, bool has_arena) {
  format::MemoryLayout layout;
  const format::Function& main = *view.find_function(nullptr);
  if (!format::memory_layout(view.memory_counts(main, pointer_size), pointer_size, 1, &layout)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "emit-c: the plan's memory does not fit into 64 bits");
  }
  if (!has_arena) return {layout.total, 0};
  const format::SharedLayout shared = format::shared_layout(layout, view.state_bytes(main, pointer_size));
  return {shared.own, shared.arena};
}

std::string bytes_text(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 5 + bytes.size() / 16);
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += i % 20 == 0 ? "  0x" : "0x";
    text += kDigits[bytes[i] / 16];
    text += kDigits[bytes[i] % 16];
    text += i % 20 == 19 || i + 1 == bytes.size() ? ",\n" : ",";
  }
  return text;
}

// Families of a plan by number, with the suffix of the descriptor that has the variants which the plan needs.
struct Family {
  uint16_t id = 0;
  // "", "_reference", "_optimized" or "_form"; of cascades also "_plain", "_plain_reference", "_pools",
  // "_pools_reference"
  std::string suffix;
};

// What the families' variants are on the best core of the plan's target.
class FamilyUse {
 public:
  explicit FamilyUse(const PlanView& view) : view_(view), isas_(inspect::target_isas(view)) {}

  std::vector<Family> find() {
    const format::Function& main = *view_.find_function(nullptr);
    for (uint32_t i = 0; i < main.num_steps(); ++i) {
      const uint32_t index = main.first_step() + i;
      if (view_.npu_step(index) != nullptr) {
        throw PackError(QPLAN_MODEL_UNSUPPORTED,
                        cat("emit-c: step ", index, " '", view_.step_name(index),
                            "' runs on a device; pack the model with --target cpu,...; of one that Vela "
                            "has compiled, pack the file that Vela was given"));
      }
      use(StepView::without_addresses(view_.plan(), view_.step(index), view_.bytes()), false);
    }
    std::vector<Family> families;
    const auto forms = form_variants(view_, isas_.empty() ? 0 : isas_.back(), false);
    for (uint16_t id = 0; id < kMaxKernels; ++id) {
      if (uses_[id] == 0) continue;
      if (uses_[id] == kOptimized && forms.count(id) != 0) {
        families.push_back({id, "_form"});
        continue;
      }
      const char* const of_layers = id == kKernel_chain ? layers_suffix() : "";
      const bool is_optimized = uses_[id] == kOptimized && *of_layers == '\0';
      families.push_back({id, cat(of_layers, uses_[id] == kReference ? "_reference"
                                             : is_optimized          ? "_optimized"
                                                                     : "")});
    }
    return families;
  }

 private:
  static constexpr uint16_t kMaxKernels = 64;
  enum : uint8_t { kReference = 1, kOptimized = 2, kAny = 4 };
  enum : uint8_t { kConvolution = 1, kPool = 2, kElementwise = 4, kOther = 8 };

  // A cascade names its layers' families itself.
  void use(const StepView& step, bool is_layer) {
    const uint16_t kernel = step.step->kernel();
    if (kernel >= kMaxKernels) return;
    const uint8_t use = use_of(step);
    if (!is_layer) uses_[kernel] |= use;
    const format::CascadeParams* cascade = step.step->params_as_CascadeParams();
    if (cascade == nullptr) return;
    for (const format::KernelStep* layer : *cascade->layers()) layers_ |= kind_of(layer->kernel());
  }

  static uint8_t kind_of(uint16_t kernel) {
    if (kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d) return kConvolution;
    if (kernel == kKernel_avg_pool2d || kernel == kKernel_max_pool2d) return kPool;
    const bool is_elementwise = kernel == kKernel_add || kernel == kKernel_sub || kernel == kKernel_lut8;
    return is_elementwise ? kElementwise : kOther;
  }

  // The smallest set of layers' families that all cascades do with (src/runtime/bind/family.h). Those with
  // the optimized variants of convolutions alone have no elementwise ones.
  const char* layers_suffix() const {
    const bool is_any = (uses_[kKernel_chain] & kAny) != 0;
    if ((layers_ & kPool) != 0) return (layers_ & ~(kConvolution | kPool)) == 0 && !is_any ? "_pools" : "";
    if (uses_[kKernel_chain] == kOptimized) return "";
    return (layers_ & kOther) == 0 ? "_plain" : "";
  }

  uint8_t use_of(const StepView& step) {
    const qplan_kernel_set& all = *qplan_kernels_all();
    const uint16_t kernel = step.step->kernel();
    const bool has_choice = kernel == kKernel_conv2d || kernel == kKernel_depthwise_conv2d ||
                            kernel == kKernel_fully_connected || kernel == kKernel_chain;
    const uint32_t best = isas_.empty() ? 0 : isas_.back();
    if (best == 0 || isa_has_vectors(best)) return kAny;  // the device decides
    if (best == QPLAN_ISA_REFERENCE || kernel >= all.num_families || all.families[kernel] == nullptr)
      return kReference;
    const format::CascadeParams* cascade = step.step->params_as_CascadeParams();
    if (cascade != nullptr) {
      for (uint32_t i = 0; i < cascade->layers()->size(); ++i) {
        const StepView layer = cascade_layer(step, i);
        const uint8_t kind = kind_of(layer.step->kernel());
        if (kind != kConvolution && kind != kPool) return kAny;
        if (kind == kConvolution && use_of(layer) != kOptimized) return kAny;
      }
      return kOptimized;
    }
    const KernelFamily& family = *all.families[kernel];
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    if (family.bind(step, true, args, &error) < 0) return kAny;
    const KernelVariant* variant = choose_variant(family, args, best, SIZE_MAX, step.step->schedule());
    if (variant->isa == QPLAN_ISA_REFERENCE) return kReference;
    return has_choice ? kOptimized : kAny;
  }

  const PlanView& view_;
  const std::vector<uint32_t> isas_;
  uint8_t uses_[kMaxKernels] = {};
  uint8_t layers_ = 0;  // kinds of those of all cascades
};

constexpr const char* kFamilyNames[] = {
    "",
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) #family,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

std::string array_init(const PlanView& view, const EmitOptions& options) {
  const std::vector<uint32_t> areas = other_areas(view);
  const bool has_copies = format::count_of(view.plan().copies()) > 0;
  if (areas.empty() && !has_copies) {
    return cat("int32_t ", options.name,
               "_init(void) { return qplan_firmware_init(&model, memory, sizeof(memory)); }\n\n");
  }
  std::string memories = "{memory, sizeof(memory)}";
  for (size_t i = 0; i < areas.size(); ++i) {
    const std::string name = area_name(i);
    memories += view.bank(areas[i]).size() == 0 ? ", {NULL, 0u}" : cat(", {", name, ", sizeof(", name, ")}");
  }
  return cat("int32_t ", options.name, "_init(void) {\n  static const qplan_firmware_memory memories[] = {",
             memories, "};\n  return qplan_firmware_init_", has_copies ? "with_copies" : "in_areas",
             "(&model, memories, ", areas.size() + 1, "u);\n}\n\n");
}

std::string array_source(const PlanView& view, const EmitOptions& options) {
  const std::string& name = options.name;
  const std::string upper = upper_case(name);
  const std::vector<Family> families = FamilyUse(view).find();
  std::string text = first_lines(view, options);
  text += cat("#include \"", name, ".h\"\n\n", arena_include(options), "#include <qplan/firmware.h>\n\n");
  text += cat("extern const uint8_t ", name, "_plan[", upper, "_PLAN_BYTES];\n\n");
  text += arena_assert(options);
  text += "/* The kernel families of this plan: the linker drops all others. */\n";
  for (const Family& family : families) {
    text +=
        cat("extern const qplan_kernel_family qplan_family_", kFamilyNames[family.id], family.suffix, ";\n");
  }
  text += "\nstatic const qplan_kernel_family *const families[] = {\n";
  uint16_t next = 0;
  for (const Family& family : families) {
    for (; next < family.id; ++next) text += "    NULL,\n";
    text += cat("    &qplan_family_", kFamilyNames[family.id], family.suffix, ",\n");
    ++next;
  }
  if (families.empty()) text += "    NULL,\n";  // of a plan without steps; an array of C has an element
  text += cat("};\n\nstatic const qplan_firmware_model model = {", name, "_plan, ", upper,
              "_PLAN_BYTES, families, sizeof(families) / sizeof(families[0])};\n\n");
  text += area_arrays(view, options, "memory");
  const std::string run_yielding =
      cat("qplan_firmware_run_yielding(memory, ", kYieldWork, "u, ", name, "_yield, NULL)");
  const std::string input = "qplan_firmware_tensor(memory, 0, index)";
  const std::string output = "qplan_firmware_tensor(memory, 1, index)";
  const std::string reset =
      cat("void ", name, "_reset_state(void) { qplan_firmware_reset_state(memory); }\n\n");
  text += cat("#if defined(QPLAN_YIELD)\nstatic void ", name,
              "_yield(void *user) {\n  (void)user;\n  QPLAN_YIELD();\n}\n");
  if (!options.arena.empty()) {
    const std::string &arena = options.arena, model = model_macro(options);
    text +=
        cat("#define RUN() ", run_yielding, "\n#else\n#define RUN() qplan_firmware_run(memory)\n#endif\n\n");
    text += cat("int32_t ", name, "_init(void) {\n  if (", arena, "_take(", model,
                ") < 0) return -2;\n  return qplan_firmware_init_in_arena(&model, memory, sizeof(memory), ",
                arena, "_memory, ", upper, "_ARENA_BYTES);\n}\n\n");
    text += cat("int32_t ", name, "_run(void) {\n  int32_t status;\n  if (", arena, "_begin(", model,
                ") < 0) return -2;\n  status = RUN();\n  ", arena, "_end(status);\n  return status;\n}\n\n");
    if (has_states(view)) text += reset;
    text +=
        cat("void *", name, "_input(uint32_t index) {\n  void *const bytes = ", input,
            ";\n  return bytes == NULL || ", arena, "_ask(", model, ", index) < 0 ? NULL : bytes;\n}\n\n");
    text += cat("const void *", name, "_output(uint32_t index) {\n  return ", arena, "_has(", model, ") ? ",
                output, " : NULL;\n}\n");
    return text;
  }
  text += cat("int32_t ", name, "_run(void) { return ", run_yielding, "; }\n#else\n");
  text += cat("int32_t ", name, "_run(void) { return qplan_firmware_run(memory); }\n#endif\n\n");
  text += array_init(view, options);
  if (has_states(view)) text += reset;
  text += cat("void *", name, "_input(uint32_t index) { return ", input, "; }\n\n");
  text += cat("const void *", name, "_output(uint32_t index) { return ", output, "; }\n");
  return text;
}

std::string plan_source(const PlanView& view, std::span<const uint8_t> plan, const EmitOptions& options) {
  const std::string upper = upper_case(options.name);
  std::string text = first_lines(view, options);
  text += cat("#include \"", options.name, ".h\"\n\n#include <qplan/firmware.h>\n\n");
  text += cat("extern const uint8_t ", options.name, "_plan[", upper, "_PLAN_BYTES];\n");
  text += cat("QPLAN_FLASH QPLAN_ALIGNED(64) const uint8_t ", options.name, "_plan[", upper,
              "_PLAN_BYTES] = {\n");
  text += bytes_text(plan);
  text += cat("};\nQPLAN_STATIC_ASSERT(", options.name, "_plan_is_whole, sizeof(", options.name,
              "_plan) == ", upper, "_PLAN_BYTES);\n");
  return text;
}

}  // namespace

std::string upper_case(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

std::vector<uint32_t> other_areas(const PlanView& view) {
  std::vector<uint32_t> banks;
  for (uint32_t i = 0; i < view.num_banks(); ++i) {
    if (view.bank(i).kind() == format::BankKind_ARENA && i != view.main_bank()) banks.push_back(i);
  }
  return banks;
}

std::string area_name(size_t position) { return cat("area", position + 1); }

std::string area_arrays(const PlanView& view, const EmitOptions& options, const std::string& memory) {
  std::string text = cat("QPLAN_RAM QPLAN_ALIGNED(64) static uint8_t ", memory, "[", upper_case(options.name),
                         "_MEMORY_BYTES];\n");
  const std::vector<uint32_t> areas = other_areas(view);
  for (size_t i = 0; i < areas.size(); ++i) {
    const std::string name = area_name(i), macro = "QPLAN_" + upper_case(name);
    if (view.bank(areas[i]).size() == 0) continue;
    text += cat("#if !defined(", macro, ")\n#define ", macro, "\n#endif\n", macro, " QPLAN_ALIGNED(",
                view.bank(areas[i]).alignment(), ") static uint8_t ", name, "[", upper_case(options.name),
                "_", upper_case(name), "_BYTES];\n");
  }
  return text + "\n";
}

std::string define_by_width(const std::string& macro, const std::string& bits_32,
                            const std::string& bits_64) {
  if (bits_32 == bits_64) return cat("#define ", macro, " ", bits_32, "\n");
  return cat("#if UINTPTR_MAX > 0xffffffffu\n#define ", macro, " ", bits_64, "\n#else\n#define ", macro, " ",
             bits_32, "\n#endif\n");
}

std::string model_macro(const EmitOptions& options) {
  return cat(upper_case(options.arena), "_MODEL_", upper_case(options.name));
}

std::string arena_include(const EmitOptions& options) {
  return options.arena.empty() ? "" : cat("#include \"", options.arena, ".h\"\n");
}

std::string arena_assert(const EmitOptions& options) {
  if (options.arena.empty()) return "";
  return cat("QPLAN_STATIC_ASSERT(", options.name, "_fits_", options.arena, ", ", upper_case(options.name),
             "_ARENA_BYTES <= ", upper_case(options.arena), "_BYTES);\n\n");
}

bool has_states(const PlanView& view) { return format::count_of(view.find_function(nullptr)->states()) > 0; }

std::string first_lines(const PlanView& view, const EmitOptions& options) {
  std::string target;
  if (format::count_of(view.plan().targets()) > 0 && view.plan().targets()->Get(0)->options() != nullptr) {
    target = view.plan().targets()->Get(0)->options()->str();
  }
  return cat("/* Written by qplan emit-c", options.is_aot ? " --aot" : "", " of the plan with digest\n * ",
             inspect::content_digest(view), ", packed for ", plain(target), ". C99. */\n");
}

std::string header_text(const PlanView& view, const EmitOptions& options, const HeaderFigures& figures) {
  const format::Function& main = *view.find_function(nullptr);
  const std::string upper = upper_case(options.name);
  const std::string guard = "QPLAN_EMITTED_" + upper + "_H_";
  std::string text = first_lines(view, options);
  text += cat("#ifndef ", guard, "\n#define ", guard, "\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
  text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  if (!options.is_aot) text += cat("#define ", upper, "_PLAN_BYTES ", view.header().file_size, "u\n");
  const bool has_arena = !options.arena.empty();
  text +=
      has_arena
          ? "/* Memory that the model keeps for itself, and what it takes of the arena while it runs. */\n"
          : "/* All memory that a run takes, but the stack. */\n";
  text += define_by_width(upper + "_MEMORY_BYTES", figures.memory_32_bit, figures.memory_64_bit);
  const std::vector<uint32_t> areas = other_areas(view);
  if (!areas.empty())
    text += "/* Bytes in memory areas after the first, in the order of the target file. */\n";
  for (size_t i = 0; i < areas.size(); ++i)
    text +=
        cat("#define ", upper, "_", upper_case(area_name(i)), "_BYTES ", view.bank(areas[i]).size(), "u\n");
  if (has_arena) text += define_by_width(upper + "_ARENA_BYTES", figures.arena_32_bit, figures.arena_64_bit);
  for (const bool is_output : {false, true}) {
    const auto* tensors = is_output ? main.outputs() : main.inputs();
    const std::string noun = is_output ? "_OUTPUT" : "_INPUT";
    text += cat("\n#define ", upper, noun, "S ", format::count_of(tensors), "u\n");
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      text += tensor_macros(view, cat(upper, noun, i), tensors->Get(i));
    }
  }
  if (has_arena) {
    text += cat("\n/* Inputs and outputs are in an arena that other models use, too: ", options.arena,
                ".h says when they are gone. */\n");
  }
  text += cat("\n/* Once, before everything else. 0, or a negative QPLAN_* status of qplan.h. */\nint32_t ",
              options.name, "_init(void);\n");
  text += cat("/* The bytes of an input, to be written before each run; NULL beyond the last one",
              has_arena ? " and while a model runs" : "", ". */\nvoid *", options.name,
              "_input(uint32_t index);\n");
  text += cat("/* 0, or a negative status", has_arena ? ": -2 where an input is not there" : "",
              ". */\nint32_t ", options.name, "_run(void);\n");
  if (has_states(view)) {
    text += cat("/* What the model keeps from run to run becomes what it is after init. */\nvoid ",
                options.name, "_reset_state(void);\n");
  }
  text += cat("/* The bytes of an output, until the next run",
              has_arena ? " or call of _input; NULL when they are gone" : "", ". */\nconst void *",
              options.name, "_output(uint32_t index);\n");
  text += cat("\n/* What the program relies on. */\ntypedef char ", options.name,
              "_is_for_bytes_of_8_bits[((uint8_t)-1 == 255u && sizeof(float) == 4u) ? 1 : -1];\n");
  text += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return text;
}

std::vector<EmittedFile> emit_model(const PlanView& view, std::span<const uint8_t> plan,
                                    const EmitOptions& options, ArenaBytes* arena) {
  check_name(options.name);
  check_isa(options);
  const std::string refusal = options.arena.empty() ? "" : inspect::arena_refusal(view);
  if (!refusal.empty()) throw PackError(QPLAN_MODEL_UNSUPPORTED, refusal);
  if (options.is_aot) return emit_direct_calls(view, options, arena);
  const SessionBytes small = session_bytes(view, 4, !options.arena.empty());
  const SessionBytes large = session_bytes(view, 8, !options.arena.empty());
  *arena = {small.arena, large.arena};
  const HeaderFigures figures = {cat(small.own, "u"), cat(large.own, "u"), cat(small.arena, "u"),
                                 cat(large.arena, "u")};
  return {{options.name + ".h", header_text(view, options, figures)},
          {options.name + ".c", array_source(view, options)},
          {options.name + "_plan.c", plan_source(view, plan.subspan(0, view.header().file_size), options)}};
}

std::vector<EmittedFile> emit_c(const PlanView& view, std::span<const uint8_t> plan,
                                const EmitOptions& options) {
  ArenaBytes arena;
  return emit_model(view, plan, options, &arena);
}

}  // namespace qplan::emit
