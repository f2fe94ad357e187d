#include "src/packer/import/pytorch/operator_calls.h"

#include <string_view>

#include "src/packer/import/pytorch/limits.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

// The part of the text before the separator, which is taken off it.
std::string_view take_part(std::string_view* text, char separator) {
  const size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return part;
}

// names: what the overloads of an operator call one argument, "self/input".
bool is_called(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    if (take_part(&names, '/') == name) return true;
  }
  return false;
}

// Where the row's argument names put the arguments of a call.
std::vector<Ref> in_order(const ImportRow& row, const std::vector<Argument>& arguments) {
  std::vector<Ref> ordered;
  std::string_view names = row.arguments;
  size_t next = 0;  // positional argument
  while (!names.empty()) {
    const std::string_view name = take_part(&names, ' ');
    Ref found;
    if (next < arguments.size() && arguments[next].name.empty()) {
      found = arguments[next++].value;
    } else {
      for (const Argument& argument : arguments) {
        if (is_called(name, argument.name)) found = argument.value;
      }
    }
    ordered.push_back(found);
  }
  size_t used = 0;
  for (const Ref ref : ordered) used += ref.valid() ? 1 : 0;
  if (used != arguments.size())
    throw Unsupported{"arguments other than (" + std::string(row.arguments) + ")"};
  return ordered;
}

}  // namespace

bool is_in_place(std::string_view name) { return name.ends_with('_') && !name.ends_with("__"); }

void OperatorCalls::charge(size_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps) invalid(cat("the code takes more than ", kMaxSteps, " steps: it is no network"));
}

bool OperatorCalls::mentions_unknown(const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    if (values_.get<Unknown>(argument.value) != nullptr) return true;
    const std::vector<Ref>* items = items_of(values_, argument.value);
    if (items == nullptr) continue;
    charge(items->size());
    for (const Ref item : *items) {
      if (values_.get<Unknown>(item) != nullptr) return true;
    }
  }
  return false;
}

Ref OperatorCalls::operand_of(std::string_view name, const std::vector<Argument>& arguments) {
  const ImportRow* row = find_row(name);
  if (row == nullptr || arguments.empty()) return {};
  if (arguments[0].name.empty()) return arguments[0].value;
  std::string_view names = row->arguments;
  const std::string_view first = take_part(&names, ' ');
  for (const Argument& argument : arguments) {
    if (is_called(first, argument.name)) return argument.value;
  }
  return {};
}

Ref OperatorCalls::not_imported(const std::string& what, const std::string& node_name) {
  unsupported_.add(what, in_quotes(node_name));
  last_missing_ = what;
  return values_.add(Unknown{});
}

Ref OperatorCalls::call(const std::string& name, const std::vector<Argument>& arguments,
                        const std::string& node_name) {
  const ImportRow* row = find_row(name);
  if (row == nullptr) return not_imported(name, node_name);
  if (mentions_unknown(arguments)) return values_.add(Unknown{});
  try {
    OpContext op(*this, name, node_name, in_order(*row, arguments));
    const Ref result = row->import_op(op);
    return is_in_place(name) ? op.write_back(result) : result;
  } catch (const Unsupported& use) {
    return not_imported(name + " with " + use.reason, node_name);
  } catch (const PackError& error) {
    throw PackError(error.status(), name + " " + in_quotes(node_name) + ": " + error.what());
  }
}

}  // namespace qplan::pt
