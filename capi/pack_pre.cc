// qplan_pre_*, qplan_matches_*: what callbacks read.
#include <limits>
#include <string>
#include <utility>

#include "capi/pack_arguments.h"
#include "qplan/pack.h"
#include "src/packer/ir/cat.h"

namespace qplan {

qplan_attr write_attr(const qplan_pre& pre, const std::string& name, const ir::AttrValue& value) {
  qplan_attr attr = {};
  attr.name = name.c_str();
  if (const auto* flag = std::get_if<bool>(&value)) {
    attr.kind = QPLAN_ATTR_BOOL;
    attr.integer = *flag ? 1 : 0;
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    attr.kind = QPLAN_ATTR_INT;
    attr.integer = *integer;
  } else if (const auto* number = std::get_if<double>(&value)) {
    attr.kind = QPLAN_ATTR_FLOAT;
    attr.number = *number;
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attr.kind = QPLAN_ATTR_STRING;
    attr.text = text->c_str();
  } else if (const auto* ints = std::get_if<ir::Ints>(&value)) {
    attr.kind = QPLAN_ATTR_INTS;
    attr.count = static_cast<uint32_t>(ints->size());
    attr.ints = ints->data();
  } else {
    const auto& lists = std::get<std::vector<ir::Ints>>(value);
    std::vector<int64_t>& all = pre.ints.emplace_back();
    std::vector<uint32_t>& sizes = pre.sizes.emplace_back();
    for (const ir::Ints& list : lists) {
      all.insert(all.end(), list.begin(), list.end());
      sizes.push_back(static_cast<uint32_t>(list.size()));
    }
    attr.kind = QPLAN_ATTR_INT_LISTS;
    attr.count = static_cast<uint32_t>(lists.size());
    attr.ints = all.data();
    attr.list_sizes = sizes.data();
  }
  return attr;
}

qplan_value_info value_info(const ir::Function& function, ir::ValueId id) {
  const ir::Value& value = function.value(id);
  qplan_value_info info = {};
  info.kind = value.kind == ir::ValueKind::kParam      ? QPLAN_VALUE_PARAM
              : value.kind == ir::ValueKind::kConstant ? QPLAN_VALUE_CONSTANT
                                                       : QPLAN_VALUE_RESULT;
  info.dtype = {value.type.dtype.code, value.type.dtype.bits, value.type.dtype.lanes};
  info.ndim = static_cast<int32_t>(value.type.shape.size());
  info.shape = value.type.shape.data();
  info.name = value.name.c_str();
  if (value.constant != nullptr) {
    info.data = value.constant->bytes().data();
    info.size_bytes = value.constant->bytes().size();
  }
  return info;
}

namespace {

template <typename Work>
qplan_status reading(const qplan_pre* pre, const Work& work) noexcept {
  if (pre == nullptr) return QPLAN_INVALID_ARGUMENT;
  return reported(&pre->error, work);
}

const ir::Node& node_at(const qplan_pre& pre, qplan_pre_node node) {
  const auto nodes = pre.pre.function().nodes();
  if (node.index >= nodes.size())
    refuse_argument(cat("pre: no node ", node.index, "; there are ", nodes.size()));
  return nodes[node.index];
}

template <typename T>
void check_result(T* result, const char* what) {
  if (result == nullptr) refuse_argument(cat("pre: ", what, " is NULL"));
}

qplan_status get_value(std::span<const ir::ValueId> values, uint32_t index, const char* what,
                       qplan_pre_value* value) {
  check_result(value, "value");
  if (index >= values.size())
    refuse_argument(cat("pre: no ", what, " ", index, "; there are ", values.size()));
  *value = {values[index].index};
  return QPLAN_OK;
}

}  // namespace
}  // namespace qplan

using namespace qplan;  // NOLINT: the functions below belong to no namespace

qplan_status qplan_pre_function_info(const qplan_pre* pre, qplan_function_info* info) {
  return reading(pre, [&] {
    check_result(info, "info");
    const ir::Function& function = pre->pre.function();
    qplan_function_info whole = {};
    whole.num_params = static_cast<uint32_t>(function.params().size());
    whole.num_outputs = static_cast<uint32_t>(function.outputs().size());
    whole.num_nodes = static_cast<uint32_t>(function.nodes().size());
    whole.name = function.name().c_str();
    return copy_info(whole, info);
  });
}

qplan_status qplan_pre_param(const qplan_pre* pre, uint32_t index, qplan_pre_value* value) {
  return reading(pre, [&] { return get_value(pre->pre.function().params(), index, "parameter", value); });
}

qplan_status qplan_pre_output(const qplan_pre* pre, uint32_t index, qplan_pre_value* value) {
  return reading(pre, [&] { return get_value(pre->pre.function().outputs(), index, "output", value); });
}

qplan_status qplan_pre_value_info(const qplan_pre* pre, qplan_pre_value value, qplan_value_info* info) {
  return reading(pre, [&] {
    check_result(info, "info");
    const pattern::PreValue known = read_value(*pre, value);
    qplan_value_info whole = value_info(pre->pre.function(), known.id);
    whole.num_uses = pre->pre.num_uses(known);
    return copy_info(whole, info);
  });
}

qplan_status qplan_pre_producer(const qplan_pre* pre, qplan_pre_value value, qplan_pre_node* node) {
  return reading(pre, [&]() -> qplan_status {
    check_result(node, "node");
    const ir::Value& known = pre->pre.function().value(read_value(*pre, value).id);
    if (known.kind != ir::ValueKind::kResult) {
      pre->error = cat("pre: '", known.name, "' is made by no node");
      return QPLAN_NOT_FOUND;
    }
    *node = {known.producer};
    return QPLAN_OK;
  });
}

qplan_status qplan_pre_node_info(const qplan_pre* pre, qplan_pre_node node, qplan_node_info* info) {
  return reading(pre, [&] {
    check_result(info, "info");
    const ir::Node& known = node_at(*pre, node);
    qplan_node_info whole = {};
    whole.num_operands = static_cast<uint32_t>(known.operands.size());
    whole.num_results = static_cast<uint32_t>(known.results.size());
    whole.num_attrs = static_cast<uint32_t>(known.attrs.size());
    whole.op = known.op != nullptr ? known.op->name.c_str() : "";
    whole.callee = known.callee.c_str();
    whole.name = known.name.c_str();
    return copy_info(whole, info);
  });
}

qplan_status qplan_pre_operand(const qplan_pre* pre, qplan_pre_node node, uint32_t index,
                               qplan_pre_value* value) {
  return reading(pre, [&] { return get_value(node_at(*pre, node).operands, index, "operand", value); });
}

qplan_status qplan_pre_result(const qplan_pre* pre, qplan_pre_node node, uint32_t index,
                              qplan_pre_value* value) {
  return reading(pre, [&] { return get_value(node_at(*pre, node).results, index, "result", value); });
}

qplan_status qplan_pre_attr(const qplan_pre* pre, qplan_pre_node node, const char* name, qplan_attr* attr) {
  return reading(pre, [&]() -> qplan_status {
    check_result(name, "name");
    check_result(attr, "attr");
    const ir::Node& known = node_at(*pre, node);
    for (const auto& [key, value] : known.attrs) {
      if (key != name) continue;
      *attr = write_attr(*pre, key, value);
      return QPLAN_OK;
    }
    if (known.op != nullptr) {
      for (const op::AttrDef& def : known.op->attrs) {
        if (def.name != name || !def.fallback) continue;
        *attr = write_attr(*pre, def.name, *def.fallback);
        return QPLAN_OK;
      }
    }
    pre->error = cat("pre: ", known.op != nullptr ? known.op->name : "call", " '", known.name,
                     "' has no attribute '", name, "'");
    return QPLAN_NOT_FOUND;
  });
}

qplan_status qplan_pre_attr_at(const qplan_pre* pre, qplan_pre_node node, uint32_t index, qplan_attr* attr) {
  return reading(pre, [&] {
    check_result(attr, "attr");
    const ir::Attrs& attrs = node_at(*pre, node).attrs;
    if (index >= attrs.size())
      refuse_argument(cat("pre: no attribute ", index, "; there are ", attrs.size()));
    const auto& [name, value] = *(attrs.begin() + index);
    *attr = write_attr(*pre, name, value);
    return QPLAN_OK;
  });
}

qplan_status qplan_pre_fail(const qplan_pre* pre, qplan_status status, const char* text) {
  const qplan_status kept = reading(pre, [&] {
    pre->error = text != nullptr ? text : "";
    return QPLAN_OK;
  });
  return kept < 0 ? kept : status;
}

const char* qplan_pre_error(const qplan_pre* pre) { return pre != nullptr ? pre->error.c_str() : ""; }

qplan_status qplan_matches_find(const qplan_matches* matches, const char* name, qplan_pre_value* value) {
  if (matches == nullptr) return QPLAN_INVALID_ARGUMENT;
  return reading(&matches->pre, [&]() -> qplan_status {
    check_result(name, "name");
    check_result(value, "value");
    const std::optional<pattern::PreValue> found = matches->matches.find(name);
    if (!found) {
      matches->pre.error = cat("matches: nothing was matched as '", name, "'");
      return QPLAN_NOT_FOUND;
    }
    *value = {found->id.index};
    return QPLAN_OK;
  });
}

qplan_status qplan_matches_root(const qplan_matches* matches, qplan_pre_node* node) {
  if (matches == nullptr) return QPLAN_INVALID_ARGUMENT;
  return reading(&matches->pre, [&] {
    check_result(node, "node");
    *node = {matches->pre.pre.function().value(matches->root.result().id).producer};
    return QPLAN_OK;
  });
}
