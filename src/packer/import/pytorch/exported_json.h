// Checked access to the JSON of exported programs, which is untrusted: a member that is missing or of another
// kind is an error that names it.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_JSON_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_JSON_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/packer/import/pytorch/value.h"
#include "src/packer/ir/json.h"

namespace qplan::pt {

// The document of an entry. PackError where it is larger than kMaxJsonBytes or kMaxJsonValues, or no JSON.
ir::Json parse_entry(std::span<const uint8_t> bytes, const std::string& entry);

// PackError (QPLAN_MODEL_INVALID) unless the object has the member, of that kind.
const ir::Json& member(const ir::Json& object, const char* name);
const ir::Json& object_member(const ir::Json& object, const char* name);
const ir::Json& list_member(const ir::Json& object, const char* name);
std::string text_member(const ir::Json& object, const char* name);
int64_t integer_member(const ir::Json& object, const char* name);
bool boolean_member(const ir::Json& object, const char* name);
// The member that a union has, the only one: {"as_int": 3}.
struct UnionMember {
  std::string kind;
  const ir::Json& value;
};
UnionMember union_member(const ir::Json& object);

int64_t as_integer(const ir::Json& value);
std::string as_text(const ir::Json& value);
// JSON has no infinities: they are strings.
double as_double(const ir::Json& value);
// The numbers that exported programs have for element types, which are other ones than code has. Unsupported
// for a type that qplan does not read.
ScalarType exported_scalar_type(int64_t number);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_JSON_H_
