// qplan_user_pass and qplan_user_rewrite become the packer's own.
#include <cstddef>
#include <utility>

#include "capi/pack_arguments.h"
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

}  // namespace qplan
