// Reads the pickles of TorchScript archives (data.pkl, constants.pkl) and of torch.save: protocol 2, the
// opcodes that PyTorch's own pickler writes. Nothing is looked up, imported or called: GLOBAL gives an inert
// name from a fixed list, REDUCE knows what a handful of those names build, and any other name is refused.
#include <bit>
#include <cstring>
#include <unordered_map>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

// ---- the names that a pickle may use, and what calling one of them means

struct StorageName {
  std::string_view name;
  ScalarType type;
};
constexpr StorageName kStorages[] = {
    {"torch.ByteStorage", ScalarType::kUint8},    {"torch.CharStorage", ScalarType::kInt8},
    {"torch.ShortStorage", ScalarType::kInt16},   {"torch.IntStorage", ScalarType::kInt32},
    {"torch.LongStorage", ScalarType::kInt64},    {"torch.HalfStorage", ScalarType::kFloat16},
    {"torch.FloatStorage", ScalarType::kFloat32}, {"torch.DoubleStorage", ScalarType::kFloat64},
    {"torch.BoolStorage", ScalarType::kBool},     {"torch.QInt8Storage", ScalarType::kQint8},
    {"torch.QUInt8Storage", ScalarType::kQuint8}, {"torch.QInt32Storage", ScalarType::kQint32},
};

// Values that stand for themselves.
constexpr std::string_view kPlainNames[] = {"torch.per_tensor_affine", "torch.per_channel_affine",
                                            "torch.per_channel_affine_float_qparams"};

class Arguments {
 public:
  Arguments(const std::vector<Ref>& refs, const ValueTable& values) : refs_(refs), values_(values) {}

  void expect(size_t least, size_t most) const {
    if (refs_.size() >= least && refs_.size() <= most) return;
    invalid(cat("there are ", refs_.size(), " arguments, expected ", least, most > least ? " or more" : ""));
  }
  int64_t integer(size_t i, const char* what) const { return number(refs_[i], what); }
  std::vector<int64_t> integers(size_t i, const char* what) const {
    const auto* tuple = values_.get<Tuple>(refs_[i]);
    if (tuple == nullptr) invalid(cat(what, " are ", kind_name(values_.at(refs_[i])), ", expected a tuple"));
    if (tuple->items.size() > ir::kMaxRank) {
      invalid(cat("there are ", tuple->items.size(), " ", what, ", at most ", ir::kMaxRank, " are possible"));
    }
    std::vector<int64_t> numbers;
    for (const Ref item : tuple->items) numbers.push_back(number(item, what));
    return numbers;
  }

 private:
  int64_t number(Ref ref, const char* what) const {
    if (const auto* value = values_.get<int64_t>(ref)) return *value;
    invalid(cat("the ", what, " is ", kind_name(values_.at(ref)), ", expected an integer"));
  }

  const std::vector<Ref>& refs_;
  const ValueTable& values_;
};

// (storage, offset, sizes, strides, [quantiser,] requires_grad, backward_hooks, ...)
Ref rebuild_tensor(const std::vector<Ref>& refs, bool quantized, ValueTable& values) {
  const Arguments arguments(refs, values);
  arguments.expect(quantized ? 5 : 4, quantized ? 8 : 7);
  if (values.get<Storage>(refs[0]) == nullptr) {
    invalid(cat("the storage is ", kind_name(values.at(refs[0]))));
  }
  Tensor tensor{.storage = refs[0],
                .offset = arguments.integer(1, "offset"),
                .sizes = arguments.integers(2, "sizes"),
                .strides = arguments.integers(3, "strides"),
                .quantizer = {}};
  if (quantized) {
    if (values.get<Tuple>(refs[4]) == nullptr) invalid("the quantiser is no tuple");
    tensor.quantizer = refs[4];
  }
  return values.add(std::move(tensor));
}

Ref same_list(const std::vector<Ref>& refs, ValueTable& values) {
  Arguments(refs, values).expect(1, 1);
  if (values.get<List>(refs[0]) == nullptr) invalid("the argument is no list");
  return refs[0];
}

struct Builder {
  std::string_view name;
  Ref (*build)(const std::vector<Ref>& refs, ValueTable& values);
};
constexpr Builder kBuilders[] = {
    {"torch._utils._rebuild_tensor_v2",
     [](const std::vector<Ref>& refs, ValueTable& values) { return rebuild_tensor(refs, false, values); }},
    {"torch._utils._rebuild_qtensor",
     [](const std::vector<Ref>& refs, ValueTable& values) { return rebuild_tensor(refs, true, values); }},
    {"torch._utils._rebuild_parameter",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(1, 3);
       return refs[0];
     }},
    {"torch._utils._rebuild_parameter_with_state",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(4, 4);
       return refs[0];
     }},
    {"collections.OrderedDict",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(0, 0);
       return values.add(Dict{});
     }},
    {"torch.jit._pickle.build_tensorlist", same_list},
    {"torch.jit._pickle.build_intlist", same_list},
    {"torch.jit._pickle.build_doublelist", same_list},
    {"torch.jit._pickle.build_boollist", same_list},
    {"torch.jit._pickle.restore_type_tag",  // (value, "List[int]")
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(2, 2);
       return refs[0];
     }},
};

// A class of the archive, or one of torch.classes: "__torch__.…".
bool is_class_name(std::string_view name) { return name.starts_with("__torch__."); }

// The type of a storage: "torch.FloatStorage".
std::optional<ScalarType> storage_type(std::string_view name) {
  for (const StorageName& known : kStorages) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

// "torch._utils._rebuild_tensor_v2", "__torch__.Net", "torch.FloatStorage", ...
bool is_known_name(std::string_view name) {
  if (is_class_name(name) || storage_type(name)) return true;
  for (const std::string_view known : kPlainNames) {
    if (known == name) return true;
  }
  for (const Builder& known : kBuilders) {
    if (known.name == name) return true;
  }
  return false;
}

// The result of the named function for the arguments. PackError where it is no function or the arguments do
// not fit.
Ref build(std::string_view name, const std::vector<Ref>& arguments, ValueTable& values) {
  for (const Builder& known : kBuilders) {
    if (known.name != name) continue;
    try {
      return known.build(arguments, values);
    } catch (const PackError& error) {
      throw PackError(error.status(), in_quotes(name) + ": " + error.what());
    }
  }
  invalid(in_quotes(name) + " is not a function");
}

// ---- the reader

constexpr size_t kMaxArguments = 16;

// A storage type that PyTorch has and qplan does not read: "torch.BFloat16Storage".
bool is_other_storage(std::string_view name) {
  return name.starts_with("torch.") && name.ends_with("Storage");
}

class PickleReader {
 public:
  PickleReader(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values)
      : bytes_(bytes), storage_prefix_(storage_prefix), values_(values) {}

  Ref read() {
    size_t begin = 0;
    try {
      for (size_t opcodes = 0;; ++opcodes) {
        begin = at_;
        if (opcodes == kMaxOpcodes) invalid(cat("the pickle has more than ", kMaxOpcodes, " opcodes"));
        const uint8_t opcode = u8();
        if (opcode == '.') break;
        step(opcode);
      }
      if (!marks_.empty() || stack_.size() != 1) {
        invalid(cat("the pickle ends with ", stack_.size(), " values on its stack, expected 1"));
      }
      return stack_.back();
    } catch (const PackError& error) {
      throw PackError(error.status(), cat("byte ", begin, ": ", error.what()));
    }
  }

 private:
  void step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const uint8_t version = u8(); version != 2)
          invalid(cat("pickle protocol ", version, ", expected 2"));
        return;
      case '(':  // MARK
        if (marks_.size() == kMaxMarks) invalid(cat("more than ", kMaxMarks, " marks are open"));
        marks_.push_back(stack_.size());
        return;
      case 'N':
        return push(None{});
      case 0x88:  // NEWTRUE
        return push(true);
      case 0x89:  // NEWFALSE
        return push(false);
      case 'J':  // BININT
        return push(int64_t{static_cast<int32_t>(number(4))});
      case 'K':  // BININT1
        return push(static_cast<int64_t>(number(1)));
      case 'M':  // BININT2
        return push(static_cast<int64_t>(number(2)));
      case 0x8a:  // LONG1
        return push(long_integer(u8()));
      case 'G':  // BINFLOAT, big-endian
        return push(big_endian_double());
      case 'X':  // BINUNICODE
        return push(text(number(4)));
      case ')':  // EMPTY_TUPLE
        return push(Tuple{});
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return push(Tuple{pop_many(opcode - 0x84u)});
      case 't':  // TUPLE
        return push(Tuple{pop_to_mark()});
      case ']':  // EMPTY_LIST
        return push(List{});
      case 'a': {  // APPEND
        const Ref item = pop();
        top<List>("a list").items.push_back(item);
        return;
      }
      case 'e': {  // APPENDS
        const std::vector<Ref> items = pop_to_mark();
        List& list = top<List>("a list");
        list.items.insert(list.items.end(), items.begin(), items.end());
        return;
      }
      case '}':  // EMPTY_DICT
        return push(Dict{});
      case 's': {  // SETITEM
        const Ref value = pop(), key = pop();
        top<Dict>("a dict").entries.emplace_back(key, value);
        return;
      }
      case 'u': {  // SETITEMS
        const std::vector<Ref> items = pop_to_mark();
        if (items.size() % 2 != 0) invalid("a dict's keys and values do not pair");
        Dict& dict = top<Dict>("a dict");
        for (size_t i = 0; i < items.size(); i += 2) dict.entries.emplace_back(items[i], items[i + 1]);
        return;
      }
      case 'q':  // BINPUT
        return remember(number(1));
      case 'r':  // LONG_BINPUT
        return remember(number(4));
      case 'h':  // BINGET
        return recall(number(1));
      case 'j':  // LONG_BINGET
        return recall(number(4));
      case 'c':  // GLOBAL
        return global();
      case 'Q':  // BINPERSID
        return storage();
      case 0x81:  // NEWOBJ
        return new_object();
      case 'R':  // REDUCE
        return reduce();
      case 'b':  // BUILD
        return set_state();
      default:
        invalid(cat("opcode ", opcode, " is not one that PyTorch writes"));
    }
  }

  // -- bytes
  uint8_t u8() { return take(1)[0]; }
  std::span<const uint8_t> take(uint64_t size) {
    if (size > bytes_.size() - at_) invalid("the pickle is truncated");
    const std::span<const uint8_t> taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }
  uint32_t number(size_t size) {
    const std::span<const uint8_t> taken = take(size);
    uint32_t value = 0;
    for (size_t i = size; i > 0; --i) value = value << 8 | taken[i - 1];
    return value;
  }
  double big_endian_double() {
    uint64_t value = 0;
    for (const uint8_t byte : take(8)) value = value << 8 | byte;
    return std::bit_cast<double>(value);
  }
  // Two's complement, little-endian, of any length.
  int64_t long_integer(uint8_t size) {
    if (size > 8) invalid(cat("an integer of ", size, " bytes, at most 8 are possible"));
    const std::span<const uint8_t> taken = take(size);
    uint64_t value = size > 0 && taken[size - 1] >= 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = size; i > 0; --i) value = value << 8 | taken[i - 1];
    return static_cast<int64_t>(value);
  }
  std::string text(uint32_t size) {
    const std::span<const uint8_t> taken = take(size);
    return {taken.begin(), taken.end()};
  }
  std::string line() {
    std::string text;
    for (uint8_t byte = u8(); byte != '\n'; byte = u8()) {
      if (text.size() == kMaxNameBytes) invalid(cat("a name is longer than ", kMaxNameBytes, " bytes"));
      text += static_cast<char>(byte);
    }
    return text;
  }

  // -- stack
  void push(Value value) { stack_.push_back(values_.add(std::move(value))); }
  size_t stack_floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Ref pop() {
    if (stack_.size() <= stack_floor()) invalid("the pickle takes a value from an empty stack");
    const Ref ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  std::vector<Ref> pop_many(size_t count) {
    std::vector<Ref> refs(count);
    for (size_t i = count; i > 0; --i) refs[i - 1] = pop();
    return refs;
  }
  std::vector<Ref> pop_to_mark() {
    if (marks_.empty()) invalid("the pickle has no mark to go back to");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<Ref> refs(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return refs;
  }
  template <typename T>
  T& top(const char* what) {
    if (stack_.size() <= stack_floor()) invalid("the pickle takes a value from an empty stack");
    T* found = values_.get<T>(stack_.back());
    if (found == nullptr) invalid(cat("found ", kind_name(values_.at(stack_.back())), ", expected ", what));
    return *found;
  }
  void remember(uint32_t index) {
    if (stack_.size() <= stack_floor()) invalid("the pickle remembers a value of an empty stack");
    memo_[index] = stack_.back();
    if (memo_.size() > kMaxValues) invalid(cat("the pickle remembers more than ", kMaxValues, " values"));
  }
  void recall(uint32_t index) {
    const auto it = memo_.find(index);
    if (it == memo_.end()) invalid(cat("the pickle's memo has no entry ", index));
    stack_.push_back(it->second);
  }

  // -- names and what they build
  void global() {
    const std::string module = line();
    std::string name = module + "." + line();
    if (!is_known_name(name)) {
      if (is_other_storage(name))
        invalid(in_quotes(name) + " is a storage of a type that qplan does not read");
      invalid("the pickle names " + in_quotes(name) + ", which no network needs; it was not executed");
    }
    push(Name{std::move(name)});
  }
  std::string pop_name(const char* what) {
    const Ref ref = pop();
    const Name* name = values_.get<Name>(ref);
    if (name == nullptr) invalid(cat(what, " is ", kind_name(values_.at(ref)), ", expected a name"));
    return name->text;
  }
  std::vector<Ref> pop_arguments() {
    const Ref ref = pop();
    const Tuple* tuple = values_.get<Tuple>(ref);
    if (tuple == nullptr)
      invalid(cat("the arguments are ", kind_name(values_.at(ref)), ", expected a tuple"));
    if (tuple->items.size() > kMaxArguments) invalid(cat("there are ", tuple->items.size(), " arguments"));
    return tuple->items;
  }
  // ("storage", type, key, device, number of elements)
  void storage() {
    const std::vector<Ref> id = pop_arguments();
    const auto* kind = id.size() == 5 ? values_.get<std::string>(id[0]) : nullptr;
    if (kind == nullptr || *kind != "storage") invalid("a persistent id is no storage");
    const Name* type_name = values_.get<Name>(id[1]);
    const auto* key = values_.get<std::string>(id[2]);
    const auto* count = values_.get<int64_t>(id[4]);
    const auto type = type_name == nullptr ? std::nullopt : storage_type(type_name->text);
    if (!type || key == nullptr || count == nullptr) invalid("a storage's type, key or size is wrong");
    if (key->size() > kMaxNameBytes) invalid("a storage's key is too long");
    push(Storage{*type, storage_prefix_ + *key, *count});
  }
  void new_object() {
    const std::vector<Ref> arguments = pop_arguments();
    std::string name = pop_name("a class");
    if (!is_class_name(name)) invalid(in_quotes(name) + " is no class of the archive");
    if (!arguments.empty()) invalid("an object is made with arguments, expected none");
    Object object;
    object.class_name = std::move(name);
    push(std::move(object));
  }
  void reduce() {
    const std::vector<Ref> arguments = pop_arguments();
    const std::string name = pop_name("a function");
    stack_.push_back(build(name, arguments, values_));
  }
  void set_state() {
    const Ref state = pop();
    Object& object = top<Object>("an object");
    if (object.state.valid()) invalid("an object gets its state twice");
    object.state = state;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  const std::string& storage_prefix_;
  ValueTable& values_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Ref> memo_;
};

}  // namespace

Ref read_pickle(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values) {
  return PickleReader(bytes, storage_prefix, values).read();
}

}  // namespace qplan::pt
