#include <algorithm>
#include <cmath>
#include <limits>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/script.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;
using importer::Unsupported;

constexpr size_t kMaxPathBytes = 256;
constexpr std::string_view kArchiveCode = "__torch__.";
constexpr size_t kTextBytesPerStep = 16;

// The walk cannot go on: a condition depends on an operator that is not imported.
struct Stop {};

// "features.0" of "features" and "0"; attribute names are any string that a pickle holds.
std::string joined(const std::string& path, const std::string& name, char separator) {
  if (path.empty()) return importer::clean_name(name.substr(0, kMaxPathBytes));
  if (path.size() + name.size() >= kMaxPathBytes) return path;
  return path + separator + importer::clean_name(name);
}

}  // namespace

class Evaluator::Depth {
 public:
  explicit Depth(Evaluator* evaluator) : evaluator_(evaluator) {
    if (evaluator_->depth_ >= kMaxCallDepth) invalid("calls and expressions are nested too deeply");
    evaluator_->charge(1);
    ++evaluator_->depth_;
  }
  ~Depth() { --evaluator_->depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Evaluator* evaluator_;
};

std::vector<Output> Evaluator::run(const std::vector<Ref>& inputs) {
  const std::string class_name = values().get<Object>(archive_.module())->class_name;
  std::vector<Argument> arguments;
  arguments.reserve(inputs.size());
  first_own_ = values().size();
  for (const Ref input : inputs) arguments.push_back({"", input});
  try {
    const FunctionBody* forward = archive_.find_method(class_name, "forward");
    if (forward == nullptr) invalid("class " + in_quotes(class_name) + " has no method 'forward'");
    std::vector<Output> outputs;
    add_outputs(bind_and_call(*forward, "", archive_.module(), arguments), "", 0, &outputs);
    return outputs;
  } catch (const Stop&) {
    return {};
  } catch (const Unsupported& use) {
    not_imported(use.reason, "forward");
    return {};
  }
}

void Evaluator::add_outputs(Ref ref, const std::string& name, size_t depth, std::vector<Output>* outputs) {
  constexpr size_t kMostDepth = 8, kMost = 4096;
  charge(1);
  const auto add = [&](Ref item, const std::string& item_name) {
    if (depth == kMostDepth) throw Unsupported{"results that are nested too deeply"};
    add_outputs(item, item_name, depth + 1, outputs);
  };
  if (const Dict* dict = values().get<Dict>(ref)) {
    for (const auto& [key, value] : dict->entries) {
      const auto* text = values().get<std::string>(key);
      add(value, text == nullptr ? "" : text->substr(0, kMaxPathBytes));
    }
  } else if (const std::vector<Ref>* items = items_of(values(), ref)) {
    const Tuple* tuple = values().get<Tuple>(ref);
    for (size_t i = 0; i < items->size(); ++i)
      add((*items)[i], tuple != nullptr && !tuple->fields.empty() ? tuple->fields[i] : "");
  } else {
    if (outputs->size() == kMost) throw Unsupported{cat("more than ", kMost, " results")};
    sharing_.expect_fresh(ref);
    outputs->push_back({ref, name});
  }
}

// -- statements

Ref Evaluator::bind_and_call(const FunctionBody& body, const std::string& path, Ref self,
                             const std::vector<Argument>& arguments) {
  const Depth depth(this);
  Scope scope{.body = &body, .path = path, .target = "", .locals = {}};
  size_t next = 0;
  size_t used = 0;
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    const Parameter& parameter = body.parameters[i];
    Ref value;
    if (i == 0 && self.valid()) {
      value = self;
    } else if (next < arguments.size() && arguments[next].name.empty()) {
      value = arguments[next++].value;
      ++used;
    } else {
      for (const Argument& argument : arguments) {
        if (argument.name != parameter.name) continue;
        value = argument.value;
        ++used;
      }
      if (!value.valid() && parameter.has_fallback) value = evaluate(scope, parameter.fallback);
    }
    if (!value.valid()) invalid("argument " + in_quotes(parameter.name) + " of a call is missing");
    scope.locals[parameter.name] = value;
  }
  if (used != arguments.size()) invalid(cat("a call has ", arguments.size(), " arguments, expected ", used));
  Ref result;
  return run_block(scope, body.statements, &result) ? result : values().add(None{});
}

bool Evaluator::run_block(Scope& scope, const std::vector<Statement>& block, Ref* result) {
  for (const Statement& statement : block) {
    const Depth depth(this);
    scope.right_side = statement.value;
    scope.target.clear();
    switch (statement.kind) {
      case StatementKind::kPass:
        break;
      case StatementKind::kExpression:
        evaluate(scope, statement.value);
        break;
      case StatementKind::kAssign:
        assign(scope, statement);
        break;
      case StatementKind::kReturn:
        *result = evaluate(scope, statement.value);
        return true;
      case StatementKind::kIf: {
        const Ref condition = evaluate(scope, statement.value);
        if (values().get<Unknown>(condition) != nullptr) throw Stop{};
        const bool* known = values().get<bool>(condition);
        if (known == nullptr)
          throw Unsupported{
              cat("control flow: 'if' in line ", statement.line, " on a tensor that the model computes")};
        if (run_block(scope, *known ? statement.then : statement.otherwise, result)) return true;
        break;
      }
    }
  }
  return false;
}

void Evaluator::assign(Scope& scope, const Statement& statement) {
  const Expr& first = scope.body->exprs[statement.targets[0]];
  if (first.kind == ExprKind::kName) scope.target = first.text;
  const Ref value = evaluate(scope, statement.value);
  if (!statement.unpacks) {
    store(scope, statement.targets[0], value);
    return;
  }
  std::vector<Ref> items(statement.targets.size(), value);
  if (values().get<Unknown>(value) == nullptr) {
    const std::vector<Ref>* found = items_of(values(), value);
    if (found == nullptr || found->size() != items.size()) {
      invalid(cat("line ", statement.line, ": ", kind_name(values().at(value)),
                  " cannot be taken apart into ", items.size(), " values"));
    }
    items = *found;
  }
  for (size_t i = 0; i < items.size(); ++i) store(scope, statement.targets[i], items[i]);
}

void Evaluator::store(Scope& scope, ExprId target, Ref value) {
  const Expr& expr = scope.body->exprs[target];
  if (expr.kind == ExprKind::kName) {
    scope.locals[expr.text] = value;
    name_value(scope, expr.text, value);
    return;
  }
  // A later call would see the new value.
  if (initialising_ == 0) throw Unsupported{"an attribute that the model changes"};
  const Ref owner = evaluate(scope, expr.children[0]);
  Object* object = values().get<Object>(owner);
  if (object == nullptr)
    invalid(cat("line ", expr.line, ": ", kind_name(values().at(owner)), " has no attributes"));
  object->attributes[expr.text] = value;
}

void Evaluator::name_value(const Scope& scope, const std::string& variable, Ref value) {
  const Flow* flow = values().get<Flow>(value);
  if (flow == nullptr) return;
  const ir::Value& known = calls_.function().value(flow->value);
  if (known.kind != ir::ValueKind::kResult || !known.name.empty()) return;
  calls_.function().set_value_name(flow->value, joined(scope.path, variable, '/'));
}

// "features.0/input3", followed by the operator where the statement contains several.
std::string Evaluator::node_name(const Scope& scope, ExprId call, std::string_view op_name) const {
  const std::string short_name(op_name.substr(op_name.rfind(':') + 1));
  if (scope.target.empty()) return joined(scope.path, short_name, '/');
  const std::string name = joined(scope.path, scope.target, '/');
  return call == scope.right_side ? name : joined(name, short_name, '/');
}

// -- expressions

std::string Evaluator::qualified_name(const Scope& scope, ExprId id) {
  const std::vector<Expr>& exprs = scope.body->exprs;
  std::string name;
  ExprId at = id;
  for (; exprs[at].kind == ExprKind::kAttribute; at = exprs[at].children[0])
    name = "." + exprs[at].text + name;
  charge(name.size() / kTextBytesPerStep);
  if (exprs[at].kind != ExprKind::kName || scope.locals.contains(exprs[at].text)) return "";
  return exprs[at].text + name;
}

Ref Evaluator::evaluate(Scope& scope, ExprId id) {
  const Depth depth(this);
  const Expr& expr = scope.body->exprs[id];
  const auto all = [&] {
    std::vector<Ref> items;
    for (const ExprId child : expr.children) items.push_back(evaluate(scope, child));
    return items;
  };
  switch (expr.kind) {
    case ExprKind::kNone:
      return values().add(None{});
    case ExprKind::kTrue:
      return values().add(true);
    case ExprKind::kFalse:
      return values().add(false);
    case ExprKind::kInteger:
      return values().add(expr.integer);
    case ExprKind::kFloat:
      return values().add(expr.number);
    case ExprKind::kString:
      charge(expr.text.size() / kTextBytesPerStep);
      return values().add(expr.text);
    case ExprKind::kList:
      return values().add(List{all()});
    case ExprKind::kTuple:
      return values().add(Tuple{all()});
    case ExprKind::kDict: {
      const std::vector<Ref> items = all();
      Dict dict;
      for (size_t i = 0; i + 1 < items.size(); i += 2) dict.entries.emplace_back(items[i], items[i + 1]);
      return values().add(std::move(dict));
    }
    case ExprKind::kNegative: {
      const Ref ref = evaluate(scope, expr.children[0]);
      // -INT64_MIN is itself: wrapping, as machines do.
      if (const auto* integer = values().get<int64_t>(ref)) {
        return values().add(static_cast<int64_t>(0 - static_cast<uint64_t>(*integer)));
      }
      if (const auto* number = values().get<double>(ref)) return values().add(-*number);
      invalid(cat("line ", expr.line, ": ", kind_name(values().at(ref)), " has no negative"));
    }
    case ExprKind::kName: {
      const auto it = scope.locals.find(expr.text);
      if (it == scope.locals.end() && expr.text == "inf")
        return values().add(std::numeric_limits<double>::infinity());
      if (it == scope.locals.end())
        invalid(cat("line ", expr.line, ": ", in_quotes(expr.text), " is not defined"));
      return it->second;
    }
    case ExprKind::kAttribute: {
      const std::string name = qualified_name(scope, id);
      constexpr std::string_view kConstants = "CONSTANTS.";
      if (name.starts_with(kConstants)) return archive_.constant(name.substr(kConstants.size()));
      if (name.starts_with(kArchiveCode)) return values().add(Name{name});  // a function, to be called later
      if (!name.empty()) return not_imported(in_quotes(name), node_name(scope, id, "name"));
      return attribute(evaluate(scope, expr.children[0]), expr.text);
    }
    case ExprKind::kSubscript: {
      const Ref container = evaluate(scope, expr.children[0]);
      return subscript(container, evaluate(scope, expr.children[1]));
    }
    case ExprKind::kCall:
      return evaluate_call(scope, id);
  }
  return {};
}

Ref Evaluator::evaluate_call(Scope& scope, ExprId id) {
  const Expr& expr = scope.body->exprs[id];
  const Expr& callee = scope.body->exprs[expr.children[0]];
  std::string name = qualified_name(scope, expr.children[0]);
  Ref object;
  if (name.empty() && callee.kind == ExprKind::kAttribute) object = evaluate(scope, callee.children[0]);
  if (name.empty() && callee.kind == ExprKind::kName) {
    const Name* function = values().get<Name>(evaluate(scope, expr.children[0]));
    if (function == nullptr) return not_imported("a call of variable " + in_quotes(callee.text), callee.text);
    name = function->text;
  }

  std::vector<Argument> arguments;
  const size_t num_positional = expr.children.size() - 1 - expr.names.size();
  // The first argument of these is a type.
  const bool typed = name == "annotate" || name == "unchecked_cast" || name == "uninitialized";
  for (size_t i = typed ? 1 : 0; i + 1 < expr.children.size(); ++i) {
    const std::string argument_name = i < num_positional ? "" : expr.names[i - num_positional];
    arguments.push_back({argument_name, evaluate(scope, expr.children[i + 1])});
  }
  if (object.valid() && values().get<Unknown>(object) != nullptr) return object;

  if (object.valid()) {
    const Object* self = values().get<Object>(object);
    if (self == nullptr) {
      return not_imported("method " + in_quotes(callee.text) + " of " + kind_name(values().at(object)),
                          node_name(scope, id, callee.text));
    }
    const std::string class_name = self->class_name, path = self->path;
    initialise(object);
    const FunctionBody* body = archive_.find_method(class_name, callee.text);
    if (body != nullptr) return bind_and_call(*body, path, object, arguments);
    return not_imported("method " + in_quotes(callee.text) + " of class " + in_quotes(class_name),
                        node_name(scope, id, callee.text));
  }
  if (name.starts_with(kArchiveCode)) {
    const FunctionBody* body = archive_.find_function(name);
    if (body != nullptr) return bind_and_call(*body, scope.path, {}, arguments);
    if (const auto* fields = archive_.find_fields(name)) return named_tuple(*fields, arguments);
    return not_imported("function " + in_quotes(name), node_name(scope, id, "call"));
  }
  // The namespaces as PyTorch's operators have them.
  if (name.starts_with("torch.")) {
    const std::string op = "aten::" + name.substr(6);
    return call_operator(op, arguments, node_name(scope, id, op));
  }
  if (name.starts_with("ops.")) {
    std::string op = name.substr(4);
    if (const size_t dot = op.find('.'); dot != std::string::npos) op.replace(dot, 1, "::");
    return call_operator(op, arguments, node_name(scope, id, op));
  }
  return call_builtin(name, arguments, node_name(scope, id, name));
}

Ref Evaluator::named_tuple(const std::vector<std::string>& fields, const std::vector<Argument>& arguments) {
  for (const std::string& field : fields) charge(1 + field.size() / kTextBytesPerStep);
  Tuple tuple{.items = {}, .fields = fields};
  for (const Argument& argument : arguments) {
    const size_t i = tuple.items.size();
    if (i == fields.size() || (!argument.name.empty() && argument.name != fields[i]))
      throw Unsupported{"arguments other than the fields of a NamedTuple in their order"};
    tuple.items.push_back(argument.value);
  }
  if (tuple.items.size() != fields.size())
    throw Unsupported{cat(arguments.size(), " of ", fields.size(), " fields of a NamedTuple")};
  return values().add(std::move(tuple));
}

Ref Evaluator::call_operator(const std::string& name, const std::vector<Argument>& arguments,
                             const std::string& node_name) {
  try {
    // Shapes are no elements.
    const bool reads_elements = name != "aten::size" && name != "aten::dim";
    for (const Argument& argument : arguments) {
      if (reads_elements) expect_fresh(argument.value);
    }
    const Ref first = arguments.empty() ? Ref{} : arguments[0].value;
    const bool is_changeable = values().get<List>(first) != nullptr || values().get<Dict>(first) != nullptr;
    const bool changes = name == "aten::append" || name == "aten::_set_item";
    if (is_changeable && changes && first.index < first_own_)
      throw Unsupported{"a list or dict of the module, which the model changes"};
    // An operator that is not known may have changed it.
    if (is_changeable && find_row(name) == nullptr) values().at(first) = Unknown{};
    return sharing_.call(name, arguments, node_name);
  } catch (const Unsupported& use) {
    return not_imported(name + " with " + use.reason, node_name);
  }
}

// A tensor, or a list of them.
void Evaluator::expect_fresh(Ref ref) {
  sharing_.expect_fresh(ref);
  const std::vector<Ref>* items = items_of(values(), ref);
  if (items == nullptr) return;
  charge(items->size());
  for (const Ref item : *items) sharing_.expect_fresh(item);
}

Ref Evaluator::call_builtin(const std::string& name, const std::vector<Argument>& arguments,
                            const std::string& node_name) {
  if (name == "uninitialized") return values().add(None{});
  if (calls_.mentions_unknown(arguments)) return values().add(Unknown{});
  if ((name == "annotate" || name == "unchecked_cast") && arguments.size() == 1) return arguments[0].value;
  if (name == "getattr" && arguments.size() == 2) {
    if (const auto* attribute_name = values().get<std::string>(arguments[1].value)) {
      return attribute(arguments[0].value, std::string(*attribute_name));
    }
  }
  if (arguments.size() == 1) {
    const Ref ref = arguments[0].value;
    const auto* items = items_of(values(), ref);
    if (name == "len" && items != nullptr) return values().add(static_cast<int64_t>(items->size()));
    const auto* text = values().get<std::string>(ref);
    if (name == "float" && text != nullptr) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (*text == "inf") return values().add(kInfinity);
      if (*text == "-inf") return values().add(-kInfinity);
    }
    for (const char* conversion : {"int", "float", "bool"}) {
      if (name == conversion) return calls_.call("prim::" + name, arguments, node_name);
    }
  }
  return not_imported("function " + in_quotes(name), node_name);
}

// -- objects and containers

// Makes attributes of what the pickle gave the object: entries of a dict, or what its class's __setstate__
// does with anything else. Classes without code keep their state (packed parameters).
void Evaluator::initialise(Ref ref) {
  Object& object = *values().get<Object>(ref);
  if (object.initialised) return;
  object.initialised = true;
  if (const Dict* members = values().get<Dict>(object.state)) {
    charge(members->entries.size());  // objects may share one dict
    for (const auto& [key, value] : members->entries) {
      if (const auto* name = values().get<std::string>(key)) object.attributes[*name] = value;
    }
    return;
  }
  if (!object.state.valid()) return;
  const Ref state = object.state;
  const std::string path = object.path;
  const FunctionBody* set_state = archive_.find_method(object.class_name, "__setstate__");
  if (set_state == nullptr) return;
  ++initialising_;  // for good where this throws, which ends the walk
  bind_and_call(*set_state, path, ref, {{"", state}});
  --initialising_;
}

Ref Evaluator::attribute(Ref owner, const std::string& name) {
  if (values().get<Unknown>(owner) != nullptr) return owner;
  if (const Tuple* tuple = values().get<Tuple>(owner)) {
    const auto field = std::ranges::find(tuple->fields, name);
    if (field != tuple->fields.end()) return tuple->items[static_cast<size_t>(field - tuple->fields.begin())];
  }
  if (values().get<Object>(owner) == nullptr) {
    return not_imported("attribute " + in_quotes(name) + " of " + kind_name(values().at(owner)), name);
  }
  initialise(owner);
  const Object& object = *values().get<Object>(owner);
  const auto it = object.attributes.find(name);
  if (it == object.attributes.end()) {
    invalid("an object of class " + in_quotes(object.class_name) + " has no attribute " + in_quotes(name));
  }
  const Ref found = it->second;
  if (Object* member = values().get<Object>(found); member != nullptr && member->path.empty()) {
    member->path = joined(object.path, name, '.');
  }
  return found;
}

Ref Evaluator::subscript(Ref container, Ref index) {
  for (const Ref ref : {container, index}) {
    if (values().get<Unknown>(ref) != nullptr) return ref;
  }
  const auto* at = values().get<int64_t>(index);
  if (const std::vector<Ref>* items = items_of(values(), container); items != nullptr && at != nullptr) {
    const auto size = static_cast<int64_t>(items->size());
    if (*at < -size || *at >= size) invalid(cat("index ", *at, " is out of range for ", size, " items"));
    return (*items)[static_cast<size_t>(*at < 0 ? *at + size : *at)];
  }
  if (const Dict* dict = values().get<Dict>(container)) {
    const auto* name = values().get<std::string>(index);
    charge(dict->entries.size() * (1 + (name == nullptr ? 0 : name->size() / kTextBytesPerStep)));
    for (const auto& [key, value] : dict->entries) {
      const auto* text = values().get<std::string>(key);
      if (name != nullptr && text != nullptr && *text == *name) return value;
    }
    // What an operator that is not imported computes is in no dict.
    if (!calls_.unsupported().empty()) return values().add(Unknown{});
    if (name != nullptr) invalid("a dict has no key " + in_quotes(*name));
  }
  throw Unsupported{cat("a subscript of ", kind_name(values().at(container)))};
}

}  // namespace qplan::pt
