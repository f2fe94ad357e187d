// A plan as C that calls kernels: their arguments are constants, and nothing is verified or looked up at run
// time. They are filled by the code that fills them in a session, with addresses that stand for the model's
// memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "format/memory_layout.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/cpu.h"
#include "kernels/spatial/spatial.h"
#include "src/packer/emit/direct_text.h"
#include "src/packer/emit/emit.h"
#include "src/packer/emit/number_text.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/runtime/cascade.h"

namespace qplan::emit {
namespace {

using format::PlanView;

// Where the memory and each tensor are while arguments are filled. Nothing is read or written there.
constexpr uintptr_t kMemory = uintptr_t{1} << 40;
// States of a model that shares its memory.
constexpr uintptr_t kKept = uintptr_t{1} << 41;
// Memory area i + 1, and the most bytes that an area has, the first one too.
constexpr uint64_t kMaxAreaBytes = uint64_t{1} << 40;
constexpr uintptr_t address_of_area(size_t i) { return (i + 2) * (uintptr_t{1} << 41); }

class DirectCalls {
 public:
  DirectCalls(const PlanView& view, const EmitOptions& options)
      : view_(view),
        options_(options),
        main_(*view.find_function(nullptr)),
        memory_(options.arena.empty() ? "memory" : options.arena + "_memory"),
        areas_(other_areas(view)),
        isa_(choose_isa()),
        forms_(form_variants(view, isa_, true)) {
    for (uint32_t i = 0; i < view.num_banks(); ++i) {
      const format::Bank& bank = view.bank(i);
      if (bank.kind() != format::BankKind_ARENA || bank.size() <= kMaxAreaBytes) continue;
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("emit-c --aot: memory ", i, " has ", bank.size(),
                          " bytes of activations, expected at most ", kMaxAreaBytes));
    }
    for (uint32_t t = 0; t < view.num_tensors(); ++t) {
      data_.push_back(view.is_constant(t) ? const_cast<void*>(view.constant_data(t))  // NOLINT: not written
                                          : reinterpret_cast<void*>(bank_address(view.tensor(t).bank()) +
                                                                    view.tensor(t).offset()));
    }
    const auto* copies = view.plan().copies();
    for (uint32_t i = 0; i < format::count_of(copies); ++i)
      copies_[data_[copies->Get(i)->tensor()]] = copies->Get(i);
    arena_bytes_ = round_up(view.bank(view.main_bank()).size(), format::kArenaAlignment);
    if (has_arena()) keep_states();
  }

  std::vector<EmittedFile> run(ArenaBytes* arena) {
    for (uint32_t i = 0; i < main_.num_steps(); ++i) step(main_.first_step() + i);
    states();
    find_places("input", main_.inputs(), &input_places_);
    find_places("output", main_.outputs(), &output_places_);
    const std::string memory = cat(arena_bytes_ + scratch_bytes_, "u"), kept = cat(kept_bytes_, "u");
    *arena = {arena_bytes_ + scratch_bytes_, arena_bytes_ + scratch_bytes_};
    const std::string& name = options_.name;
    const std::string& own = has_arena() ? kept : memory;
    return {{name + ".h", header_text(view_, options_, {own, own, memory, memory})}, {name + ".c", source()}};
  }

 private:
  [[noreturn]] void fail(uint32_t index, const std::string& why) const {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("emit-c --aot: step ", index, " '", view_.step_name(index), "': ", why,
                        "; without --aot the plan is written as an array, which runs every kernel"));
  }

  bool has_arena() const { return !options_.arena.empty(); }

  // Out of the arena, whose other models would write over them; as src/runtime/session.cc does it.
  void keep_states() {
    for (uint32_t i = 0; i < format::count_of(main_.states()); ++i) {
      const format::State& state = *main_.states()->Get(i);
      void* const at = reinterpret_cast<void*>(kKept + kept_bytes_);
      if (format::same_range(view_.tensor(state.input()), view_.tensor(state.output())))
        data_[state.output()] = at;
      data_[state.input()] = at;
      kept_bytes_ += round_up(view_.tensor(state.input()).size(), format::kArenaAlignment);
    }
  }

  uintptr_t bank_address(uint32_t bank) const {
    const auto area = std::ranges::find(areas_, bank);
    return area == areas_.end() ? kMemory : address_of_area(static_cast<size_t>(area - areas_.begin()));
  }

  // "memory + 64u"
  std::string memory_text(uint64_t offset) const { return cat(memory_, " + ", offset, "u"); }
  // The same of an address; "kept + 64u" of a state in an arena, "area1 + 64u" in an area; "" of a
  // constant's.
  std::string address_text(uintptr_t address) const {
    if (address >= kMemory && address - kMemory < arena_bytes_) return memory_text(address - kMemory);
    if (address >= kKept && address - kKept < kept_bytes_) return cat("kept + ", address - kKept, "u");
    for (size_t i = 0; i < areas_.size(); ++i) {
      const uintptr_t begin = address_of_area(i);
      if (address >= begin && address - begin < view_.bank(areas_[i]).size())
        return cat(area_name(i), " + ", address - begin, "u");
    }
    return "";
  }
  std::string place_text(uint32_t tensor) const {
    return address_text(reinterpret_cast<uintptr_t>(data_[tensor]));
  }

  // The instruction set that every processor of the plan's architecture has: a direct call cannot choose.
  uint32_t choose_isa() const {
    if (options_.isa != 0) return options_.isa;
    const std::vector<uint32_t> isas = inspect::target_isas(view_);
    if (isas.empty() || isa_has_vectors(isas.back())) return QPLAN_ISA_REFERENCE;
    return isas.back();
  }

  // ---- one step ----

  struct Call {
    const KernelFamily* family;
    const KernelVariant* variant;
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  };

  Call bind(uint32_t index, const StepView& step, uint32_t isa, size_t scratch_limit) const {
    const qplan_kernel_set& all = *qplan_kernels_all();
    const uint16_t kernel = step.step->kernel();
    Call call;
    call.family = kernel < all.num_families ? all.families[kernel] : nullptr;
    if (call.family == nullptr || args_fields(kernel).empty()) {
      fail(index, cat("kernel '", inspect::kernel_name(kernel), "' has no arguments in C yet"));
    }
    Error error;
    if (call.family->bind(step, true, call.args, &error) < 0) fail(index, error.text());
    call.variant = choose_variant(*call.family, call.args, isa, scratch_limit, step.step->schedule());
    const auto form = forms_.find(kernel);
    if (form != forms_.end() && call.variant->isa == form->second->isa) call.variant = form->second;
    return call;
  }

  void step(uint32_t index) {
    if (view_.npu_step(index) != nullptr) fail(index, "it runs on a device");
    StepView view = StepView::without_addresses(view_.plan(), view_.step(index), view_.bytes());
    view.data = data_.data();
    calls_ += cat("  /* step ", index, comment_of(index), " */\n");
    if (view.step->kernel() == kKernel_chain) return cascade(index, view);
    const Call call = bind(index, view, isa_, planned_scratch(index));
    use_variant(call, view.step->kernel());
    arguments(cat("step", index), call, view.step->kernel());
    need_scratch(index, call.variant->scratch_bytes(call.args), call.variant->name);
    const uint32_t work_items = call.variant->work_items(call.args);
    calls_ += cat("  QPLAN_RUN(qplan_", call.variant->name, "_run, &step", index, ", ", work_items, "u, ",
                  work_items_per_call(*call.variant, call.family->work(call.args), kYieldWork, work_items),
                  "u, ", memory_text(scratch_of(index)), ");\n");
  }

  std::string comment_of(uint32_t index) const {
    std::string text = cat(": ", inspect::kernel_name(view_.step(index).kernel()));
    const std::string name = view_.step_name(index);
    if (name.empty()) return text;
    text += " '";
    for (const char c : name) text += (c >= ' ' && c <= '~' && c != '*' && c != '?' && c != '\\') ? c : '_';
    return text + "'";
  }

  void cascade(uint32_t index, const StepView& view) {
    has_cascades_ = true;
    Error error;
    alignas(kArgsAlignment) uint8_t storage[kMaxArgsBytes];
    if (kCascadeFamily.bind(view, true, storage, &error) < 0) fail(index, error.text());
    const auto& args = *reinterpret_cast<const CascadeArgs*>(storage);
    const bool fits = cascade_scratch_bytes(args, isa_) <= planned_scratch(index);
    const uint32_t isa = fits ? isa_ : uint32_t{QPLAN_ISA_REFERENCE};
    std::vector<Call> layers;
    for (uint32_t i = 0; i < args.num_layers; ++i) {
      const StepView layer = cascade_layer(view, i);
      const uint16_t kernel = layer.step->kernel();
      if (kernel != kKernel_conv2d && kernel != kKernel_depthwise_conv2d && !is_pool(kernel)) {
        fail(index, cat("layer ", i, ", ", inspect::kernel_name(kernel),
                        ", is neither a convolution nor a pool; pack the model with --fuse off"));
      }
      layers.push_back(bind(index, layer, isa, SIZE_MAX));
    }
    const uint32_t block_rows = cascade_block_rows(args.output_h, args.output_w, args.wanted_rows, isa);
    std::vector<uint64_t> tiles(layers.size(), 0);
    uint32_t rows = block_rows;
    for (size_t i = layers.size(); i-- > 0;) {
      tiles[i] = rows;
      const StepView layer = cascade_layer(view, static_cast<uint32_t>(i));
      const KernelFamily& family = *kCascadeLayerFamilies.find(layer.step->kernel());
      rows = cascade_input_rows(layer.input(0), family, layers[i].args, rows);
    }
    uint64_t at = 0;
    std::string table = cat("static const struct cascade_layer step", index, "[] = {\n");
    uint64_t scratch = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      Call& call = layers[i];
      const uint16_t kernel = cascade_layer(view, static_cast<uint32_t>(i)).step->kernel();
      const std::string name = cat("step", index, "_layer", i);
      use_variant(call, kernel);
      std::string function = cat("qplan_", call.variant->name);
      if (is_pool(kernel)) {
        function = pool_layer(name, call, kernel);
      } else {
        arguments(name, call, kernel);
      }
      const bool is_last = i + 1 == layers.size();
      const Conv2dArgs rows_of = layer_rows(call, kernel);
      const uint64_t row = uint64_t{rows_of.output_w} * rows_of.output_c;
      table += cat("    {&", name, ", ", function, "_run, ", function, "_work_items, ",
                   uint64_t{rows_of.input_w} * rows_of.input_c, "u, ", row, "u, ",
                   is_last ? std::string("NULL") : memory_text(scratch_of(index) + at), "},\n");
      if (!is_last) at += round_up(tiles[i] * row, 64);
      // As many rows as the layer makes at once: no family takes more scratch for fewer.
      const RowCut& row_cut = *kCascadeLayerFamilies.find(kernel)->row_cut;
      const Rows all = {0, static_cast<uint32_t>(tiles[i])};
      row_cut.cut(cascade_layer(view, static_cast<uint32_t>(i)),
                  {0, row_cut.window(call.args), 0, all, nullptr, nullptr}, call.args);
      scratch = std::max<uint64_t>(scratch, call.variant->scratch_bytes(call.args));
    }
    tables_ += table + "};\n\n";
    need_scratch(index, at + scratch, cat("a cascade of ", block_rows, " rows at a time"));
    calls_ += cat("  run_cascade(step", index, ", ", layers.size(), "u, ", block_rows, "u, ",
                  memory_text(scratch_of(index) + at), ");\n");
  }

  static bool is_pool(uint16_t kernel) {
    return kernel == kKernel_avg_pool2d || kernel == kKernel_max_pool2d;
  }

  // The convolution whose rows are those of a layer: itself, or one with a pool's window.
  static Conv2dArgs layer_rows(const Call& call, uint16_t kernel) {
    if (!is_pool(kernel)) return *reinterpret_cast<const Conv2dArgs*>(call.args);
    const Pool2dArgs& pool = *reinterpret_cast<const Pool2dArgs*>(call.args);
    Conv2dArgs rows;
    rows.input = pool.input;
    rows.output = pool.output;
    rows.batch = pool.batch;
    rows.input_h = pool.input_h;
    rows.input_w = pool.input_w;
    rows.input_c = rows.output_c = pool.channels;
    rows.output_h = pool.output_h;
    rows.output_w = pool.output_w;
    rows.kernel_h = pool.pool_h;
    rows.stride_h = pool.stride_h;
    rows.dilation_h = 1;
    rows.pad_top = pool.pad_top;
    return rows;
  }

  // Writes `name`, its rows, `name`_pool, its arguments, and the functions that the loop calls: "name".
  std::string pool_layer(const std::string& name, const Call& call, uint16_t kernel) {
    arguments(cat(name, "_pool"), call, kernel);
    Call rows = {};
    new (rows.args) Conv2dArgs(layer_rows(call, kernel));
    structs_.insert(kKernel_conv2d);
    arguments(name, rows, kKernel_conv2d);
    pool_layers_.insert(call.variant->name);
    const std::string args = "(const struct qplan_conv2d_args *rows";
    const std::string cut =
        cat("  const struct qplan_pool2d_args args = pool_rows(&", name, "_pool, rows);\n");
    tables_ += cat("static void ", name, "_run", args, ", uint32_t begin, uint32_t end, void *scratch) {\n",
                   cut, "  qplan_", call.variant->name, "_run(&args, begin, end, scratch);\n}\n\n");
    tables_ += cat("static uint32_t ", name, "_work_items", args, ") {\n", cut, "  return qplan_",
                   call.variant->name, "_work_items(&args);\n}\n\n");
    return name;
  }

  // Kernels with vectors may read scratch by whole vectors, which the arena of a small device does not align.
  bool has_scratch_in_arena() const {
    return format::count_of(main_.scratch_offsets()) != 0 && !isa_has_vectors(isa_);
  }
  // Bytes that the plan has for the step's scratch.
  size_t planned_scratch(uint32_t index) const {
    return has_scratch_in_arena() ? main_.scratch_sizes()->Get(index - main_.first_step()) : SIZE_MAX;
  }
  // Where the step's scratch begins in the memory: in the arena, if the plan says so, or after it.
  uint64_t scratch_of(uint32_t index) const {
    return has_scratch_in_arena() ? main_.scratch_offsets()->Get(index - main_.first_step()) : arena_bytes_;
  }
  void need_scratch(uint32_t index, uint64_t bytes, const std::string& who) {
    if (!has_scratch_in_arena()) {
      scratch_bytes_ = std::max(scratch_bytes_, round_up(bytes, 64));
    } else if (bytes > planned_scratch(index)) {
      fail(index, cat(who, " needs ", bytes, " bytes of scratch, the plan provides ", planned_scratch(index),
                      "; pack the model again, for the instruction set '", qplan_isa_name(isa_), "'"));
    }
  }

  void use_variant(const Call& call, uint16_t kernel) {
    structs_.insert(kernel);
    variants_[call.variant->name] = args_struct(kernel);
  }

  // ---- arguments ----

  // One definition; fields of value 0 are left out, as C makes them 0.
  void arguments(const std::string& name, const Call& call, uint16_t kernel) {
    std::string text = cat("static const struct ", args_struct(kernel), " ", name, " = {\n");
    for (const ArgsField& field : args_fields(kernel)) {
      const std::string value = value_text(name, field, call.args + field.offset);
      if (!value.empty()) text += cat("    .", field.name, " = ", value, ",\n");
    }
    tables_ += text + "};\n\n";
  }

  // "" for what is 0.
  std::string value_text(const std::string& step, const ArgsField& field, const uint8_t* at) {
    if (field.kind == ArgsField::kInput || field.kind == ArgsField::kOutput) {
      const uint8_t* pointer = nullptr;
      std::memcpy(&pointer, at, sizeof(pointer));
      return pointer == nullptr ? "" : pointer_text(step, field, pointer);
    }
    std::string list;
    bool has_value = false;
    for (uint32_t i = 0; i < field.count; ++i) {
      has_value =
          has_value || std::string_view(reinterpret_cast<const char*>(at + i * field.size), field.size)
                               .find_first_not_of('\0') != std::string_view::npos;
      list += (i > 0 ? ", " : "") +
              element_text(field.kind == ArgsField::kFloat, field.is_signed, field.size, at + i * field.size);
    }
    if (!has_value) return "";
    return field.count > 1 ? "{" + list + "}" : list;
  }

  static std::string element_text(bool is_float, bool is_signed, uint32_t size, const uint8_t* at) {
    if (is_float) {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return hex_float(value);
    }
    uint64_t bits = 0;
    std::memcpy(&bits, at, size);
    if (!is_signed) return size == 8 ? cat(bits, "ull") : cat(bits, "u");
    const unsigned shift = 64 - 8 * size;
    const int64_t value = static_cast<int64_t>(bits << shift) >> shift;
    // -2^31 is no constant of C: the minus is an operator.
    if (value == INT32_MIN) return "(-2147483647 - 1)";
    return std::to_string(value);
  }

  std::string pointer_text(const std::string& step, const ArgsField& field, const uint8_t* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const std::string place = address_text(address);
    if (!place.empty()) return place;
    const auto copied = copies_.find(pointer);
    if (copied == copies_.end()) return array_text(step, field, pointer);
    const std::string copy = copy_text(step, field, *copied->second, pointer);
    const bool is_any = std::strcmp(field.c_type, "void") == 0;
    return is_any ? copy : cat("(const ", field.c_type, " *)(const void *)(", copy, ")");
  }

  // Where the copy of a constant is, which init makes of its array. The array is asked for once: steps that
  // read the copy as another type need no array of that type.
  std::string copy_text(const std::string& step, const ArgsField& field, const format::ConstantCopy& copy,
                        const uint8_t* pointer) {
    const std::string place = address_text(bank_address(copy.bank()) + copy.offset());
    if (copied_.insert(copy.tensor()).second) {
      inits_ += cat("  memcpy(", place, ", ", array_text(step, field, pointer), ", ",
                    view_.tensor(copy.tensor()).size(), "u);\n");
    }
    return place;
  }

  // The array of a constant, which is written where it is first asked for. Constants of equal bytes share
  // their place in a plan whatever their types are, and an array of C has one type: there is one for each
  // type that steps read. Any of them will do where bytes of no type are read.
  std::string array_text(const std::string& step, const ArgsField& field, const uint8_t* pointer) {
    const bool is_any = std::strcmp(field.c_type, "void") == 0;
    const std::string type = is_any ? "int8_t" : field.c_type;
    std::map<std::string, std::string>& arrays = arrays_[pointer];
    const auto known = is_any ? arrays.begin() : arrays.find(type);
    if (known != arrays.end()) return known->second;
    const std::string name = cat(step, "_", field.name);
    arrays[type] = name;
    const bool is_float = type == "float", is_signed = type[0] != 'u';
    const uint32_t size = is_float ? 4 : size_of(type.c_str());
    const uint64_t bytes = bytes_behind(pointer);
    constants_ +=
        cat("QPLAN_FLASH QPLAN_ALIGNED(16) static const ", type, " ", name, "[", bytes / size, "] = {");
    const uint32_t per_line = size == 1 ? 24 : 8;
    for (uint64_t i = 0; i < bytes / size; ++i) {
      constants_ += i % per_line == 0 ? "\n    " : " ";
      constants_ += element_text(is_float, is_signed, size, pointer + i * size) + ",";
    }
    constants_ += "\n};\n\n";
    return name;
  }

  static uint32_t size_of(const char* c_type) {
    if (std::strstr(c_type, "int8") != nullptr) return 1;
    return std::strstr(c_type, "int16") != nullptr ? 2 : std::strstr(c_type, "int64") != nullptr ? 8 : 4;
  }

  // From an address in the plan's file to the end of the constant, or of the list of the plan, that is there.
  uint64_t bytes_behind(const uint8_t* pointer) const {
    for (uint32_t t = 0; t < view_.num_tensors(); ++t) {
      if (view_.is_constant(t) && data_[t] == pointer) return view_.tensor(t).size();
    }
    const uint64_t at = static_cast<uint64_t>(pointer - view_.bytes());
    if (at < sizeof(format::Header) + 4 || at >= sizeof(format::Header) + view_.header().root_size) {
      throw PackError(QPLAN_INTERNAL,
                      "emit-c: an argument refers to nothing of the plan; this is a defect of the packer");
    }
    uint32_t count = 0;  // of a list of float: its length stands before it
    std::memcpy(&count, pointer - 4, 4);
    return uint64_t{count} * 4;
  }

  // ---- states ----

  // Their first bytes, and the copies after the last step.
  void states() {
    for (uint32_t i = 0; i < format::count_of(main_.states()); ++i) {
      const format::State& state = *main_.states()->Get(i);
      const std::string to = place_text(state.input()), from = place_text(state.output());
      const uint64_t size = view_.tensor(state.input()).size();
      if (from != to) calls_ += cat("  memcpy(", to, ", ", from, ", ", size, "u); /* state ", i, " */\n");
      if (state.initial() == format::kNoTensorIndex) {
        resets_ += cat("  memset(", to, ", ", uint32_t{state.fill()}, ", ", size, "u);\n");
        continue;
      }
      const ArgsField bytes = {"initial", "void", ArgsField::kInput, 1, 1, 0, true, 1};
      const auto* initial = static_cast<const uint8_t*>(view_.constant_data(state.initial()));
      resets_ += cat("  memcpy(", to, ", ", array_text(cat("state", i), bytes, initial), ", ", size, "u);\n");
    }
  }

  // Where inputs or outputs are.
  void find_places(const char* what, const flatbuffers::Vector<uint32_t>* tensors,
                   std::vector<std::string>* places) {
    for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
      const uint32_t tensor = tensors->Get(i);
      places->push_back(place_text(tensor));
      if (!places->back().empty()) continue;
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("emit-c --aot: ", what, " ", i, " '", view_.tensor_name(tensor), "' of ",
                          view_.tensor(tensor).size(),
                          " bytes is in no memory; without --aot the plan is written as an array"));
    }
  }

  // ---- files ----

  static std::string struct_text(uint16_t kernel) {
    std::string text = cat("struct ", args_struct(kernel), " {\n");
    size_t at = 0;
    uint32_t paddings = 0;
    for (const ArgsField& field : args_fields(kernel)) {
      // A struct within the arguments begins at a multiple of its alignment; the same whatever a pointer's
      // size is, as the field before it is no pointer.
      const size_t natural = round_up(at, field.size), begin = round_up(at, field.alignment);
      if (begin != natural) text += cat("  uint8_t reserved", paddings++, "[", begin - at, "];\n");
      at = begin + size_t{field.size} * field.count;
      const bool is_pointer = field.kind == ArgsField::kInput || field.kind == ArgsField::kOutput;
      text +=
          cat("  ", field.kind == ArgsField::kInput ? "const " : "", field.c_type, is_pointer ? " *" : " ",
              field.name, field.count > 1 ? cat("[", field.count, "]") : std::string(), ";\n");
    }
    return text + "};\n\n";
  }

  std::string source() const {
    const std::string& name = options_.name;
    const std::string upper = upper_case(name);
    std::string text = first_lines(view_, options_);
    text += cat("#include \"", name, ".h\"\n\n", arena_include(options_),
                "#include <qplan/firmware.h>\n#include <string.h>\n\n");
    text += "/* ---- the arguments of the kernels, as the library has them ---- */\n";
    std::set<std::string> written;
    for (const uint16_t kernel : structs_) {
      if (written.insert(args_struct(kernel)).second) text += struct_text(kernel);
    }
    text +=
        "/* Work items [begin, end); scratch: aligned to 16 bytes, to 64 where kernels have vectors. */\n";
    for (const auto& [variant, args] : variants_) {
      text += cat("void qplan_", variant, "_run(const struct ", args,
                  " *args, uint32_t begin, uint32_t end, void *scratch);\n");
      if ((has_cascades_ && args == "qplan_conv2d_args") || pool_layers_.contains(variant)) {
        text += cat("uint32_t qplan_", variant, "_work_items(const struct ", args, " *args);\n");
      }
    }
    text += cat("\n/* ---- memory: ", arena_bytes_, " bytes of activations and scratch ---- */\n");
    if (!has_arena() || kept_bytes_ != 0)
      text += area_arrays(view_, options_, has_arena() ? "kept" : "memory");
    text += arena_assert(options_);
    text += kPiecesText;
    if (has_cascades_) text += kCascadeText;
    if (!pool_layers_.empty()) text += kPoolText;
    text += "/* ---- constants ---- */\n" + constants_;
    text += "/* ---- steps ---- */\n" + tables_;
    if (has_states(view_)) text += cat("void ", name, "_reset_state(void) {\n", resets_, "}\n\n");
    const std::string model = has_arena() ? model_macro(options_) : "";
    text += cat("int32_t ", name, "_init(void) {\n",
                has_arena() ? cat("  if (", options_.arena, "_take(", model, ") < 0) return -2;\n") : "",
                inits_, has_states(view_) ? cat("  ", name, "_reset_state();\n") : std::string(),
                "  /* A library with other arguments does not have this symbol. */\n", "  return ",
                kKernelsSymbol, " == 1u ? 0 : -18;\n}\n\n");
    const std::string begin =
        has_arena() ? cat("  if (", options_.arena, "_begin(", model, ") < 0) return -2;\n") : "";
    const std::string end = has_arena() ? cat("  ", options_.arena, "_end(0);\n") : "";
    text += cat("int32_t ", name, "_run(void) {\n", begin, calls_, end, "  return 0;\n}\n");
    const std::string takes = has_arena() ? cat(options_.arena, "_ask(", model, ", index) < 0") : "";
    const std::string lacks = has_arena() ? cat(options_.arena, "_has(", model, ") == 0") : "";
    text += accessor("void *", "_input", takes, input_places_);
    text += accessor("const void *", "_output", lacks, output_places_);
    return text;
  }

  // refuses: a condition of C, or "".
  std::string accessor(const char* type, const char* suffix, const std::string& refuses,
                       const std::vector<std::string>& places) const {
    std::string text = cat("\n", type, options_.name, suffix, "(uint32_t index) {\n");
    if (!refuses.empty()) text += cat("  if (", refuses, ") return NULL;\n");
    text += "  switch (index) {\n";
    for (size_t i = 0; i < places.size(); ++i) {
      text += cat("    case ", i, "u:\n      return ", places[i], ";\n");
    }
    return text + "    default:\n      return NULL;\n  }\n}\n";
  }

  const PlanView& view_;
  const EmitOptions& options_;
  const format::Function& main_;
  const std::string memory_;           // the array's name
  const std::vector<uint32_t> areas_;  // banks
  const uint32_t isa_;
  const std::map<uint16_t, const KernelVariant*> forms_;
  std::vector<void*> data_;
  uint64_t arena_bytes_ = 0, scratch_bytes_ = 0, kept_bytes_ = 0;
  bool has_cascades_ = false;
  std::set<std::string> pool_layers_;            // variants that are a layer of a cascade
  std::set<uint16_t> structs_;                   // kernels whose arguments are written
  std::map<std::string, std::string> variants_;  // and the struct that each reads
  // Constants by address, and by the type of their elements.
  std::map<const uint8_t*, std::map<std::string, std::string>> arrays_;
  std::map<const void*, const format::ConstantCopy*> copies_;  // by the address of the constant
  std::set<uint32_t> copied_;                                  // tensors whose copy init makes
  std::string constants_, tables_, calls_, resets_, inits_;
  std::vector<std::string> input_places_, output_places_;  // expressions of C
};

}  // namespace

std::vector<EmittedFile> emit_direct_calls(const PlanView& view, const EmitOptions& options,
                                           ArenaBytes* arena) {
  return DirectCalls(view, options).run(arena);
}

}  // namespace qplan::emit
