#include <algorithm>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

constexpr size_t kNone = SIZE_MAX;

// The results may have elements of the first operand.
constexpr std::string_view kViews[] = {"aten::view",         "aten::_unsafe_view", "aten::reshape",
                                       "aten::flatten",      "aten::unflatten",    "aten::t",
                                       "aten::permute",      "aten::squeeze",      "aten::unsqueeze",
                                       "aten::transpose",    "aten::slice",        "aten::select",
                                       "aten::narrow",       "aten::expand",       "aten::expand_as",
                                       "aten::pixel_shuffle"};
// The results are parts of the first operand, which share no element.
constexpr std::string_view kSplits[] = {"aten::split", "aten::split_with_sizes", "aten::chunk",
                                        "aten::unsafe_chunk", "aten::unbind"};
// The result is the first operand, or a copy where that is not as asked for: strides decide, which are not
// known.
constexpr std::string_view kCopiesAtNeed[] = {"aten::contiguous", "aten::to", "aten::type_as"};

template <size_t kSize>
bool is_one_of(const std::string_view (&names)[kSize], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

Ref Sharing::call(const std::string& name, const std::vector<Argument>& arguments,
                  const std::string& node_name) {
  const Ref operand = OperatorCalls::operand_of(name, arguments);
  add_operand(operand);
  const ir::ValueId before = value_of(operand);
  const Ref result = calls_.call(name, arguments, node_name);
  if (value_of(operand) != before) change(operand);
  return add_result(name, operand, result);
}

void Sharing::expect_fresh(Ref tensor) const {
  if (stale_.contains(tensor.index))
    throw importer::Unsupported{"a tensor that shares its elements with one that is changed in place"};
}

ir::ValueId Sharing::value_of(Ref ref) const {
  const Flow* flow = calls_.values().get<Flow>(ref);
  return flow == nullptr ? ir::ValueId{} : flow->value;
}

bool Sharing::is_tensor(Ref ref) const {
  const ValueTable& values = calls_.values();
  return values.get<Flow>(ref) != nullptr || values.get<Tensor>(ref) != nullptr;
}

size_t Sharing::add_region(Region region) {
  regions_.push_back(std::move(region));
  return regions_.size() - 1;
}

// A tensor that no operator has made is an input of the program, or in the archive.
size_t Sharing::region_of(Ref tensor) {
  if (const auto it = region_by_tensor_.find(tensor.index); it != region_by_tensor_.end()) return it->second;
  const bool is_stored = calls_.values().get<Tensor>(tensor) != nullptr;
  const size_t region = add_region({.parent = kNone, .split = kNone, .is_stored = is_stored});
  put(tensor, region);
  return region;
}

void Sharing::put(Ref tensor, size_t region) {
  if (!region_by_tensor_.emplace(tensor.index, region).second) return;  // it is known
  regions_[region].tensors.push_back(tensor);
}

void Sharing::add_parts(const std::vector<Ref>& parts, Ref source) {
  const size_t parent = region_of(source), split = num_splits_++;
  std::vector<size_t> made;
  for (const Ref part : parts) {
    made.push_back(add_region({.parent = parent, .split = split, .is_stored = regions_[parent].is_stored}));
    put(part, made.back());
  }
  regions_[parent].parts.emplace_back(split, std::move(made));
}

Ref Sharing::add_result(std::string_view name, Ref operand, Ref result) {
  const std::vector<Ref>* items = items_of(calls_.values(), result);
  if (!is_tensor(result) && items == nullptr) return result;
  const bool is_split = is_one_of(kSplits, name), is_copy_at_need = is_one_of(kCopiesAtNeed, name);
  const bool is_view = is_split || is_copy_at_need || is_one_of(kViews, name);
  if (is_view && is_tensor(operand)) {
    if (result == operand && is_copy_at_need)
      result = calls_.values().add(Value(calls_.values().at(operand)));
    if (is_tensor(result) && result != operand) put(result, region_of(operand));
    if (items != nullptr && std::ranges::find(*items, operand) == items->end()) add_parts(*items, operand);
    return result;
  }
  const std::vector<Ref> results = items == nullptr ? std::vector<Ref>{result} : *items;
  calls_.charge(results.size());
  for (const Ref made : results) {
    if (made != operand && is_tensor(made) && !region_by_tensor_.contains(made.index))
      put(made, add_region({.parent = kNone, .split = kNone, .is_stored = false}));
  }
  return result;
}

void Sharing::forget_tensors(size_t region, Ref changed) {
  std::vector<Ref>& tensors = regions_[region].tensors;
  calls_.charge(1 + tensors.size());
  const bool has_changed = std::ranges::find(tensors, changed) != tensors.end();
  for (const Ref tensor : tensors) {
    if (tensor != changed) stale_.insert(tensor.index);
  }
  tensors.clear();
  if (has_changed) tensors.push_back(changed);
}

// With all parts of them. What is stale makes no new tensors, so that the parts are done with.
void Sharing::forget_all(std::vector<size_t> regions, Ref changed) {
  while (!regions.empty()) {
    const size_t region = regions.back();
    regions.pop_back();
    forget_tensors(region, changed);
    for (const auto& [split, parts] : regions_[region].parts)
      regions.insert(regions.end(), parts.begin(), parts.end());
    regions_[region].parts.clear();
  }
}

void Sharing::change(Ref tensor) {
  size_t region = region_of(tensor);
  if (regions_[region].is_stored) throw importer::Unsupported{"a buffer that the model changes"};
  forget_all({region}, tensor);
  for (size_t parent = regions_[region].parent; parent != kNone; parent = regions_[region].parent) {
    forget_tensors(parent, tensor);
    auto& splits = regions_[parent].parts;
    const size_t own = regions_[region].split;
    std::vector<size_t> others;
    for (const auto& [split, parts] : splits) {
      if (split != own) others.insert(others.end(), parts.begin(), parts.end());
    }
    std::erase_if(splits, [own](const auto& split) { return split.first != own; });
    forget_all(std::move(others), tensor);
    region = parent;
  }
}

}  // namespace qplan::pt
