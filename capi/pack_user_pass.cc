// Passes of the caller's: qplan_user_pass and qplan_user_rewrite become the packer's own, and their callbacks
// build with qplan_post_*.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "capi/pack_arguments.h"
#include "qplan/pack.h"
#include "src/packer/ir/cat.h"

namespace qplan {
namespace {

// The caller's struct with what its struct_size leaves out set to zero.
template <typename T>
T whole_struct(const T& given, const char* what) {
  T whole = {};
  if (given.struct_size < sizeof(given.struct_size)) refuse_argument(cat(what, ": struct_size is not set"));
  std::memcpy(&whole, &given, std::min<size_t>(given.struct_size, sizeof(T)));
  return whole;
}

std::optional<pattern::PostValue> build(const qplan_user_rewrite& rewrite,
                                        const pattern::RewriteContext& context, std::string* why) {
  const qplan_pre pre(context.pre());
  qplan_post post{.pre = pre, .post = context.post(), .r = &context.r, .edit = nullptr, .why = {}};
  const qplan_matches matches{pre, context.matches, context.root};
  qplan_post_value result{UINT32_MAX};
  check_callback(rewrite.build(rewrite.user, &pre, &post, &matches, &result), pre);
  *why = post.why;
  if (result.index == UINT32_MAX) return std::nullopt;
  if (why->empty()) *why = "replaced";
  return read_value(post, result);
}

pattern::Rewrite read_rewrite(const qplan_user_rewrite& given, const std::string& pass) {
  const auto rewrite = whole_struct(given, "user rewrite");
  if (rewrite.name == nullptr || *rewrite.name == '\0')
    refuse_argument(cat("user pass '", pass, "': a rewrite has no name"));
  const std::string where = cat("user rewrite '", rewrite.name, "'");
  if (rewrite.pattern == nullptr) refuse_argument(where + " has no pattern");
  if (rewrite.build == nullptr) refuse_argument(where + " has no function build");
  return {.name = rewrite.name,
          .benefit = rewrite.benefit,
          .pattern = rewrite.pattern->pattern,
          .build = [rewrite](const pattern::RewriteContext& context, std::string* why) {
            return build(rewrite, context, why);
          }};
}

std::unique_ptr<ir::Function> run(const qplan_user_pass& pass, const ir::Function& function,
                                  passes::PassContext& context) {
  pattern::Edit edit(function);
  const qplan_pre pre(edit.pre());
  qplan_post post{.pre = pre, .post = edit.post(), .r = nullptr, .edit = &edit, .why = {}};
  try {
    check_callback(pass.run(pass.user, &pre, &post), pre);
    std::unique_ptr<ir::Function> result = edit.finish();
    if (result != nullptr) {
      const std::string what =
          cat(post.num_replaced, post.num_replaced == 1 ? " value" : " values", " replaced");
      context.fired(pass.name, function.name(), post.why.empty() ? what : cat(what, ": ", post.why));
    }
    return result;
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("pass '", pass.name, "': ", error.what()));
  }
}

}  // namespace

void check_callback(qplan_status status, const qplan_pre& pre) {
  if (status == QPLAN_OK) return;
  if (status > 0) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("a callback returned ", status, ", expected QPLAN_OK or an error"));
  }
  throw PackError(status,
                  pre.error.empty() ? cat("a callback returned ", qplan_status_name(status)) : pre.error);
}

passes::UserPass read_user_pass(const qplan_user_pass& given) {
  const auto pass = whole_struct(given, "user pass");
  if (pass.name == nullptr || *pass.name == '\0') refuse_argument("user pass: it has no name");
  const std::string where = cat("user pass '", pass.name, "'");
  if ((pass.run != nullptr) == (pass.num_rewrites > 0))
    refuse_argument(where + " needs either rewrites or a function run");
  if (pass.num_rewrites > 0 && pass.rewrites == nullptr) refuse_argument(where + ": rewrites is NULL");
  passes::UserPass result;
  result.name = pass.name;
  if (pass.after != nullptr) result.after = pass.after;
  for (uint32_t i = 0; i < pass.num_rewrites; ++i) {
    if (pass.rewrites[i] == nullptr) refuse_argument(cat(where, ": rewrite ", i, " is NULL"));
    result.rewrites.push_back(read_rewrite(*pass.rewrites[i], result.name));
  }
  if (pass.run != nullptr) {
    result.run = [pass](const ir::Function& pre, passes::PassContext& context) {
      return run(pass, pre, context);
    };
  }
  return result;
}

// ---- what callbacks build

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
