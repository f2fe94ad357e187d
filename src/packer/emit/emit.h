// A plan as C99 (`qplan emit-c`): an array that the runtime opens, or direct calls of kernels.
#ifndef QPLAN_SRC_PACKER_EMIT_EMIT_H_
#define QPLAN_SRC_PACKER_EMIT_EMIT_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "kernels/kernel.h"
#include "src/runtime/bind/family.h"

namespace qplan::emit {

struct EmitOptions {
  std::string name;  // of the functions and files; an identifier of C
  bool is_aot = false;
  uint32_t isa =
      0;  // QPLAN_ISA_* of kernels that are called directly; 0: what every processor of the plan's has
  // The name of an arena that the model shares with others; "": its memory is its own.
  std::string arena = {};
};

struct EmittedFile {
  std::string name;  // "kws.c"
  std::string text;
};

// NAME.h, NAME.c and, of a plan as an array, NAME_plan.c. PackError (QPLAN_INVALID_ARGUMENT) for a name that
// check_name refuses and an instruction set that check_isa refuses, (QPLAN_MODEL_UNSUPPORTED) naming the
// first step that cannot be written as a direct call.
std::vector<EmittedFile> emit_c(const format::PlanView& view, std::span<const uint8_t> plan,
                                const EmitOptions& options);

// A plan among those that share an arena, and the name of its model.
struct LinkedPlan {
  const format::PlanView& view;
  std::span<const uint8_t> bytes;
  std::string name;
};

// What a model takes of the arena, by the size of pointers.
struct ArenaBytes {
  uint64_t bits_32 = 0, bits_64 = 0;
};
// emit_c of a model that shares the arena of options.arena.
std::vector<EmittedFile> emit_model(const format::PlanView& view, std::span<const uint8_t> plan,
                                    const EmitOptions& options, ArenaBytes* arena);
// The files of each plan, and those of the arena that they share, which has options.name. PackError as
// emit_c, and (QPLAN_INVALID_ARGUMENT) where two names are the same.
std::vector<EmittedFile> emit_linked(std::span<const LinkedPlan> plans, const EmitOptions& options);

// ---- parts of both forms ----
// QPLAN_YIELD is called after pieces of so many elementary operations, at most twice as many (docs/work.md).
inline constexpr uint32_t kYieldWork = 1u << 17;
// The plan's ARENA banks after the first: memory areas that have activations alone.
std::vector<uint32_t> other_areas(const format::PlanView& view);
// "area1": of the one at position 0 of other_areas.
std::string area_name(size_t position);
// The memories of areas, each with attributes that a macro sets. memory: of the first one.
std::string area_arrays(const format::PlanView& view, const EmitOptions& options, const std::string& memory);
// Bytes as expressions of C, by the size of pointers.
struct HeaderFigures {
  std::string memory_32_bit, memory_64_bit;  // bytes that are the model's own
  std::string arena_32_bit, arena_64_bit;    // bytes of the shared arena; empty without a shared arena
};
// The header: sizes, descriptors of inputs and outputs, the functions.
std::string header_text(const format::PlanView& view, const EmitOptions& options,
                        const HeaderFigures& figures);
std::string upper_case(const std::string& name);
// "#define KWS_MEMORY_BYTES 1184u", which depends on the size of pointers where the values do.
std::string define_by_width(const std::string& macro, const std::string& bits_32, const std::string& bits_64);
// Throws for what is no identifier, or a name that a header of the C library or of qplan has, or that makes
// names which the C library or the files themselves have.
void check_name(const std::string& name);
// Throws where options.isa would change nothing: in the array form, or without kernels of it.
void check_isa(const EmitOptions& options);
// What the model's source includes of its arena, and the assertion that it fits; "" without an arena.
std::string arena_include(const EmitOptions& options);
std::string arena_assert(const EmitOptions& options);
// The model among those of its arena: "ARENA_MODEL_KWS".
std::string model_macro(const EmitOptions& options);
bool has_states(const format::PlanView& view);
// "of a plan for arch=cortex-m4,isa=dsp"
std::string first_lines(const format::PlanView& view, const EmitOptions& options);

// The variants <family>_dsp_form, which are smaller than <family>_dsp, by the families of the main function
// whose steps, layers of cascades too, they all compute. has_direct_layers: layers are called by the
// variants' names; otherwise a cascade's family names its layers' kernels, which are others.
std::map<uint16_t, const KernelVariant*> form_variants(const format::PlanView& view, uint32_t isa,
                                                       bool has_direct_layers);

// ---- direct calls ----
std::vector<EmittedFile> emit_direct_calls(const format::PlanView& view, const EmitOptions& options,
                                           ArenaBytes* arena);

// A field of a kernel's arguments, which are plain data: structs within them are flattened.
struct ArgsField {
  const char* name;
  const char* c_type;  // "uint32_t"; of pointers what they point to, "int32_t" or "void"
  enum Kind : uint8_t { kInteger, kFloat, kInput, kOutput } kind;
  uint32_t size;   // bytes of an element
  uint32_t count;  // 1, or entries of an array
  size_t offset;   // in the packer's own struct
  bool is_signed;
  uint32_t alignment;  // its size, but of the first field of a struct within
};
// The symbol of libraries whose kernels read these arguments, and the fingerprint of the arguments for which
// it got its number (kernel_calls.cc).
constexpr const char* kKernelsSymbol = "qplan_firmware_kernels_3";
constexpr uint32_t kArgsFingerprint = 3915482435;
// The fields of the family's arguments, in their order; empty for families that are not called directly.
std::span<const ArgsField> args_fields(uint16_t kernel);
// The name of its struct: "qplan_conv2d_args"; families with the same arguments share one.
const char* args_struct(uint16_t kernel);

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_EMIT_EMIT_H_
