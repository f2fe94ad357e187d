// Two nodes with the same operator, operands and attributes compute the same: the first one's results serve
// both.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "src/packer/passes/passes.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::Rebuild;

template <typename T>
void append_bytes(std::string* key, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  key->append(bytes, sizeof(T));
}

void append_ints(std::string* key, const ir::Ints& values) {
  append_bytes(key, values.size());
  for (const int64_t value : values) append_bytes(key, value);
}

void append_value(std::string* key, const ir::AttrValue& value) {
  append_bytes(key, value.index());
  if (const auto* flag = std::get_if<bool>(&value)) append_bytes(key, *flag);
  if (const auto* integer = std::get_if<int64_t>(&value)) append_bytes(key, *integer);
  if (const auto* real = std::get_if<double>(&value)) append_bytes(key, *real);
  if (const auto* text = std::get_if<std::string>(&value)) {
    append_bytes(key, text->size());
    key->append(*text);
  }
  if (const auto* ints = std::get_if<ir::Ints>(&value)) append_ints(key, *ints);
  if (const auto* lists = std::get_if<std::vector<ir::Ints>>(&value)) {
    append_bytes(key, lists->size());
    for (const ir::Ints& list : *lists) append_ints(key, list);
  }
}

// Equal for equal computations. An attribute counts with its fallback, so that a written default changes
// nothing.
std::string key_of(Rebuild& r, PreNode node) {
  std::string key;
  append_bytes(&key, node.op());
  append_bytes(&key, node.num_operands());
  for (const PostValue operand : r.operands(node)) append_bytes(&key, operand.id.index);
  for (const op::AttrDef& def : node.op()->attrs) {
    const ir::AttrValue* value = node.attrs().find(def.name);
    if (value == nullptr && def.fallback) value = &*def.fallback;
    append_bytes(&key, value != nullptr);
    if (value != nullptr) append_value(&key, *value);
  }
  return key;
}

}  // namespace

std::unique_ptr<ir::Function> run_common_subexpressions(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  std::unordered_map<std::string, PreNode> seen;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (node.op() == nullptr) return false;
    const auto [first, inserted] = seen.try_emplace(key_of(r, node), node);
    if (inserted) return false;
    for (size_t i = 0; i < node.num_results(); ++i) r.replace(node.result(i), r[first->second.result(i)]);
    context.fired("common_subexpressions", node.name(), "the same as '" + first->second.name() + "'");
    return true;
  });
}

}  // namespace qplan::passes
