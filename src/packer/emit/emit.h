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
};

struct EmittedFile {
  std::string name;  // "kws.c"
  std::string text;
};

// NAME.h, NAME.c and, of a plan as an array, NAME_plan.c. PackError (QPLAN_INVALID_ARGUMENT) for a name that
// is no identifier, (QPLAN_MODEL_UNSUPPORTED) naming the first step that cannot be written as a direct call.
std::vector<EmittedFile> emit_c(const format::PlanView& view, std::span<const uint8_t> plan,
                                const EmitOptions& options);

// ---- parts of both forms ----
// QPLAN_YIELD is called after pieces of so many elementary operations, at most twice as many (docs/work.md).
inline constexpr uint32_t kYieldWork = 1u << 17;
// The header: sizes, descriptors of inputs and outputs, the functions. memory_bytes: expressions of C.
struct HeaderFigures {
  std::string memory_32_bit, memory_64_bit;  // bytes
  uint32_t alignment;                        // of the memory
};
std::string header_text(const format::PlanView& view, const EmitOptions& options,
                        const HeaderFigures& figures);
std::string upper_case(const std::string& name);
bool has_states(const format::PlanView& view);
// "of a plan for arch=cortex-m4,isa=dsp"
std::string first_lines(const format::PlanView& view, const EmitOptions& options);

// The variants <family>_dsp_form, which are smaller than <family>_dsp, by the families of the main function
// whose steps, layers of cascades too, they all compute. has_direct_layers: layers are called by the
// variants' names; otherwise a cascade's family names its layers' kernels, which are others.
std::map<uint16_t, const KernelVariant*> form_variants(const format::PlanView& view, uint32_t isa,
                                                       bool has_direct_layers);

// ---- direct calls ----
std::vector<EmittedFile> emit_direct_calls(const format::PlanView& view, const EmitOptions& options);

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
// The fields of the family's arguments, in their order; empty for families that are not called directly.
std::span<const ArgsField> args_fields(uint16_t kernel);
// The name of its struct: "qplan_conv2d_args"; families with the same arguments share one.
const char* args_struct(uint16_t kernel);

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_EMIT_EMIT_H_
