// pass.hpp -- patterns, rewrites and passes in C++17, over the C callbacks of pack.h. Header only: no type of
// the C++ library and no exception crosses into libqplan.so, so that any compiler's and any library's will
// do.
//
//   using namespace qplan;
//   Rewrite drop("drop_double_negative", op("negative")(op("negative")(any().as("x"))),
//                [](const Pre&, Post& post, const Matches& m) { return post[m["x"]]; });
//   Passes passes({Pass("tidy", {drop}).after("simplify")});
//   qplan_pack_options options = {};
//   options.struct_size = sizeof(options);
//   passes.attach(&options);  // passes must live until qplan_pack_file() has returned
//
// What is read of the old function is a PreValue, what is built on in the new one a PostValue; post[value]
// alone leads from the one to the other, so that a stale operand does not compile. Views, nodes and values
// are good within the callback only. Exceptions of callbacks end the pack; their text is its error.
#ifndef QPLAN_PASS_HPP_
#define QPLAN_PASS_HPP_

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <qplan/pattern.hpp>
#include <string>
#include <utility>
#include <vector>

namespace qplan {
inline namespace pass_v1 {

// ---- the new function ----
class Post {
 public:
  Post(const qplan_pre* pre, qplan_post* post) : pre_(pre), post_(post) {}

  // The counterpart of the old value.
  PostValue operator[](PreValue value) {
    qplan_post_value result;
    check(qplan_post_value_of(post_, value.c_value(), &result));
    return PostValue(result);
  }
  template <typename T>
  PostValue constant(const std::vector<T>& elements, Shape shape, const std::string& name = "") {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    if (count != elements.size()) {
      throw PassError(QPLAN_INVALID_ARGUMENT, "constant '" + name + "': the shape has " +
                                                  std::to_string(count) + " elements, there are " +
                                                  std::to_string(elements.size()));
    }
    DLTensor tensor;
    std::memset(&tensor, 0, sizeof(tensor));
    tensor.data = const_cast<T*>(elements.data());  // only read
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = dtype_of<T>();
    tensor.shape = shape.data();
    qplan_post_value result;
    check(qplan_post_constant(post_, &tensor, name.c_str(), &result));
    return PostValue(result);
  }
  template <typename T>
  PostValue scalar(T value) {
    return constant(std::vector<T>{value}, {});
  }
  // A node of one result. name: of the source operator, for messages.
  PostValue call(const std::string& op, const std::vector<PostValue>& operands, const Attrs& attrs = {},
                 const std::string& name = "") {
    return call_all(op, operands, attrs, name, 1)[0];
  }
  std::vector<PostValue> call_all(const std::string& op, const std::vector<PostValue>& operands,
                                  const Attrs& attrs, const std::string& name, size_t num_results) {
    std::vector<qplan_post_value> c_operands;
    for (const PostValue operand : operands) c_operands.push_back(operand.c_value());
    std::vector<qplan_attr> c_attrs;
    for (const auto& [key, value] : attrs) c_attrs.push_back(value.c_attr(key));
    std::vector<qplan_post_value> c_results(num_results);
    check(qplan_post_call(post_, op.c_str(), c_operands.data(), static_cast<uint32_t>(c_operands.size()),
                          c_attrs.data(), static_cast<uint32_t>(c_attrs.size()), name.c_str(),
                          c_results.data(), static_cast<uint32_t>(num_results)));
    std::vector<PostValue> results;
    for (const qplan_post_value result : c_results) results.emplace_back(result);
    return results;
  }
  TensorType type(PostValue value) const {
    auto info = detail::sized<qplan_value_info>();
    check(qplan_post_value_info(post_, value.c_value(), &info));
    return detail::type_of(info);
  }
  // For the function of a Pass: readers of the old value read the new one from here on. In the order of the
  // nodes.
  void replace(PreValue value, PostValue replacement) {
    check(qplan_post_replace(post_, value.c_value(), replacement.c_value()));
  }
  // Why a rewrite fires, or why it does not: one line.
  void why(const std::string& text) { check(qplan_post_why(post_, text.c_str())); }

 private:
  void check(qplan_status status) const { detail::check(pre_, status); }

  const qplan_pre* pre_;
  qplan_post* post_;
};

// ---- rewrites and passes ----
class Matches {
 public:
  Matches(const qplan_pre* pre, const qplan_matches* matches) : pre_(pre), matches_(matches) {}

  std::optional<PreValue> find(const std::string& name) const {
    qplan_pre_value value;
    const qplan_status status = qplan_matches_find(matches_, name.c_str(), &value);
    if (status == QPLAN_NOT_FOUND) return std::nullopt;
    detail::check(pre_, status);
    return PreValue(value);
  }
  bool has(const std::string& name) const { return find(name).has_value(); }
  PreValue operator[](const std::string& name) const {  // PassError where nothing was matched
    const std::optional<PreValue> value = find(name);
    if (!value) throw PassError(QPLAN_NOT_FOUND, qplan_pre_error(pre_));
    return *value;
  }
  // The node whose result matched.
  PreNode root() const {
    qplan_pre_node node;
    detail::check(pre_, qplan_matches_root(matches_, &node));
    return PreNode(pre_, node);
  }

 private:
  const qplan_pre* pre_;
  const qplan_matches* matches_;
};

class Rewrite {
 public:
  // Builds the replacement of the matched value, of the same type; nothing: the rewrite does not apply.
  using Build = std::function<std::optional<PostValue>(const Pre& pre, Post& post, const Matches& matches)>;

  // Among rewrites of one pass those of higher benefit are tried first.
  Rewrite(std::string name, Pattern pattern, Build build, int benefit = 0)
      : state_(std::make_shared<State>(State{std::move(name), std::move(pattern), std::move(build), {}})) {
    state_->c_rewrite = detail::sized<qplan_user_rewrite>();
    state_->c_rewrite.benefit = benefit;
    state_->c_rewrite.name = state_->name.c_str();
    state_->c_rewrite.pattern = state_->pattern.c_pattern();
    state_->c_rewrite.user = state_.get();
    state_->c_rewrite.build = [](void* user, const qplan_pre* pre, qplan_post* post,
                                 const qplan_matches* matches, qplan_post_value* result) {
      return detail::guarded(pre, [&]() -> qplan_status {
        Post builder(pre, post);
        const auto built = static_cast<State*>(user)->build(Pre(pre), builder, Matches(pre, matches));
        if (built) *result = built->c_value();
        return QPLAN_OK;
      });
    };
  }
  const qplan_user_rewrite* c_rewrite() const { return &state_->c_rewrite; }

 private:
  struct State {
    std::string name;
    Pattern pattern;
    Build build;
    qplan_user_rewrite c_rewrite;
  };
  std::shared_ptr<State> state_;  // where C finds it, however often this is copied
};

class Pass {
 public:
  using Run = std::function<void(const Pre& pre, Post& post)>;

  // Rewrites, until none fires.
  Pass(std::string name, std::vector<Rewrite> rewrites)
      : Pass(std::move(name), std::move(rewrites), nullptr) {}
  // A function that reads all of pre and replaces values with post.replace(). It runs again until nothing
  // changes.
  Pass(std::string name, Run run) : Pass(std::move(name), {}, std::move(run)) {}

  // Behind the pass of that name; without, before all.
  Pass& after(const std::string& pass) {
    state_->after = pass;
    state_->c_pass.after = state_->after.c_str();
    return *this;
  }
  const qplan_user_pass* c_pass() const { return &state_->c_pass; }

 private:
  struct State {
    std::string name, after;
    std::vector<Rewrite> rewrites;
    std::vector<const qplan_user_rewrite*> c_rewrites;
    Run run;
    qplan_user_pass c_pass;
  };

  Pass(std::string name, std::vector<Rewrite> rewrites, Run run) : state_(std::make_shared<State>()) {
    state_->name = std::move(name);
    state_->rewrites = std::move(rewrites);
    for (const Rewrite& rewrite : state_->rewrites) state_->c_rewrites.push_back(rewrite.c_rewrite());
    state_->run = std::move(run);
    state_->c_pass = detail::sized<qplan_user_pass>();
    state_->c_pass.name = state_->name.c_str();
    state_->c_pass.num_rewrites = static_cast<uint32_t>(state_->c_rewrites.size());
    state_->c_pass.rewrites = state_->c_rewrites.data();
    state_->c_pass.user = state_.get();
    if (!state_->run) return;
    state_->c_pass.run = [](void* user, const qplan_pre* pre, qplan_post* post) {
      return detail::guarded(pre, [&]() -> qplan_status {
        Post builder(pre, post);
        static_cast<State*>(user)->run(Pre(pre), builder);
        return QPLAN_OK;
      });
    };
  }

  std::shared_ptr<State> state_;
};

// The passes of a pack; must live until it has returned.
class Passes {
 public:
  explicit Passes(std::vector<Pass> passes) : passes_(std::move(passes)) {
    for (const Pass& pass : passes_) c_passes_.push_back(pass.c_pass());
  }
  void attach(qplan_pack_options* options) const {
    options->passes = c_passes_.data();
    options->num_passes = static_cast<uint32_t>(c_passes_.size());
  }

 private:
  std::vector<Pass> passes_;
  std::vector<const qplan_user_pass*> c_passes_;
};

}  // namespace pass_v1
}  // namespace qplan

#endif  // QPLAN_PASS_HPP_
