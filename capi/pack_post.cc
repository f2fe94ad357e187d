// qplan_post_*: what callbacks build.
#include <string>
#include <utility>
#include <vector>

#include "capi/pack_arguments.h"
#include "qplan/pack.h"
#include "src/packer/ir/cat.h"

namespace qplan {

ir::AttrValue read_attr(const qplan_attr& attr) {
  const auto need = [&](const void* pointer, const char* what) {
    if (pointer == nullptr) {
      throw PackError(QPLAN_INVALID_ARGUMENT, cat("attribute '", attr.name, "': ", what, " is NULL"));
    }
  };
  if (attr.name == nullptr) throw PackError(QPLAN_INVALID_ARGUMENT, "an attribute has no name");
  switch (attr.kind) {
    case QPLAN_ATTR_BOOL:
      return attr.integer != 0;
    case QPLAN_ATTR_INT:
      return attr.integer;
    case QPLAN_ATTR_FLOAT:
      return attr.number;
    case QPLAN_ATTR_STRING:
      need(attr.text, "text");
      return std::string(attr.text);
    case QPLAN_ATTR_INTS:
      if (attr.count > 0) need(attr.ints, "ints");
      return ir::Ints(attr.ints, attr.ints + attr.count);
    case QPLAN_ATTR_INT_LISTS: {
      std::vector<ir::Ints> lists;
      if (attr.count > 0) need(attr.list_sizes, "list_sizes");
      const int64_t* at = attr.ints;
      for (uint32_t i = 0; i < attr.count; ++i) {
        if (attr.list_sizes[i] > 0) need(attr.ints, "ints");
        lists.emplace_back(at, at + attr.list_sizes[i]);
        at += attr.list_sizes[i];
      }
      return lists;
    }
    default:
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("attribute '", attr.name, "' has kind ", attr.kind, ", expected QPLAN_ATTR_*"));
  }
}

namespace {

[[noreturn]] void refuse_post(const std::string& text) { refuse_argument("post: " + text); }

template <typename Work>
qplan_status building(const qplan_post* post, const Work& work) noexcept {
  if (post == nullptr) return QPLAN_INVALID_ARGUMENT;
  return reported(&post->pre.error, [&] {
    work();
    return QPLAN_OK;
  });
}

// The counterpart of the old value; values that a rewrite matched, and later ones, have none yet.
pattern::PostValue stands_for(qplan_post& post, pattern::PreValue value) {
  if (post.edit != nullptr) return (*post.edit)[value];
  try {
    return (*post.r)[value];
  } catch (const PackError& error) {
    if (error.status() != QPLAN_INTERNAL) throw;
    refuse_post(
        cat("no new value replaces value ", value.id.index,
            " yet: it is what the rewrite replaces, or made from that; build from the node's operands"));
  }
}

template <typename T>
void check_given(T* pointer, const char* what) {
  if (pointer == nullptr) refuse_post(cat(what, " is NULL"));
}

}  // namespace

pattern::PreValue read_value(const qplan_pre& pre, qplan_pre_value value) {
  if (value.index >= pre.pre.function().num_values()) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("pre: no value ", value.index));
  }
  return {{value.index}};
}

pattern::PostValue read_value(const qplan_post& post, qplan_post_value value) {
  if (value.index >= post.post.function().num_values()) refuse_post(cat("no value ", value.index));
  return {{value.index}};
}

}  // namespace qplan

using namespace qplan;  // NOLINT: the functions below belong to no namespace

qplan_status qplan_post_value_of(qplan_post* post, qplan_pre_value value, qplan_post_value* result) {
  return building(post, [&] {
    check_given(result, "result");
    *result = {stands_for(*post, read_value(post->pre, value)).id.index};
  });
}

qplan_status qplan_post_constant(qplan_post* post, const DLTensor* tensor, const char* name,
                                 qplan_post_value* result) {
  return building(post, [&] {
    check_given(result, "result");
    const std::string what = cat("post: constant '", text_of(name), "'");
    *result = {post->post.constant_value(read_tensor(what, tensor), text_of(name)).id.index};
  });
}

qplan_status qplan_post_call(qplan_post* post, const char* op, const qplan_post_value* operands,
                             uint32_t num_operands, const qplan_attr* attrs, uint32_t num_attrs,
                             const char* name, qplan_post_value* results, uint32_t num_results) {
  return building(post, [&] {
    check_given(op, "op");
    check_given(results, "results");
    if (num_operands > 0) check_given(operands, "operands");
    if (num_attrs > 0) check_given(attrs, "attrs");
    if (op::find_op(op) == nullptr) refuse_post(cat("there is no operator '", op, "'"));
    std::vector<pattern::PostValue> values;
    for (uint32_t i = 0; i < num_operands; ++i) values.push_back(read_value(*post, operands[i]));
    ir::Attrs written;
    for (uint32_t i = 0; i < num_attrs; ++i) {
      ir::AttrValue value = read_attr(attrs[i]);
      written.set(attrs[i].name, std::move(value));
    }
    const std::vector<pattern::PostValue> made =
        post->post.call_all(op, values, std::move(written), text_of(name));
    if (made.size() != num_results) {
      refuse_post(
          cat(op, " '", text_of(name), "' has ", made.size(), " results, there is room for ", num_results));
    }
    for (uint32_t i = 0; i < num_results; ++i) results[i] = {made[i].id.index};
  });
}

qplan_status qplan_post_value_info(const qplan_post* post, qplan_post_value value, qplan_value_info* info) {
  return building(post, [&] {
    check_given(info, "info");
    copy_info(value_info(post->post.function(), read_value(*post, value).id), info);
  });
}

qplan_status qplan_post_replace(qplan_post* post, qplan_pre_value value, qplan_post_value replacement) {
  return building(post, [&] {
    if (post->edit == nullptr) refuse_post("a rewrite replaces the value that it matched and no other");
    post->edit->replace(read_value(post->pre, value), read_value(*post, replacement));
    ++post->num_replaced;
  });
}

qplan_status qplan_post_why(qplan_post* post, const char* text) {
  return building(post, [&] { post->why = text_of(text); });
}
