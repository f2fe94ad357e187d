// A FlatBuffer as a tree that can be changed, by its schema's reflection: tables with fields that come, go
// and change their values, vectors that grow and shrink, subtrees that are repeated and exchanged. Its output
// is well-formed and mostly passes verification; its meaning is arbitrary.
#ifndef QPLAN_TESTS_FUZZ_MUTATORS_FLATBUFFER_TREE_H_
#define QPLAN_TESTS_FUZZ_MUTATORS_FLATBUFFER_TREE_H_

#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/reflection_generated.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/mutators/numbers.h"

namespace qplan::fuzz {

struct FlatTable;

// One of them, by the type of the field.
struct FlatValue {
  uint64_t scalar = 0;             // its bytes; floats too
  std::string bytes;               // of a string, or of a vector of scalars
  std::vector<std::string> texts;  // of a vector of strings
  std::vector<FlatTable> tables;   // of a vector of tables; of a table or union: one
};
struct FlatTable {
  const reflection::Object* type = nullptr;
  std::map<uint16_t, FlatValue> fields;  // by id
};

class FlatSchema {
 public:
  // bfbs: a schema as `flatc --schema` writes it, which outlives this.
  explicit FlatSchema(const void* bfbs) : schema_(*reflection::GetSchema(bfbs)) {}

  // buffer: verified.
  FlatTable read(const uint8_t* buffer) const {
    return read_table(*flatbuffers::GetRoot<flatbuffers::Table>(buffer), *schema_.root_table());
  }
  std::string write(const FlatTable& root, const char* identifier) const {
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(true);  // a field is there, or it is not: both are cases
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(write_table(builder, root)), identifier);
    return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
  }

  void mutate(Random& random, FlatTable* root) const {
    for (int64_t count = random.chance(0.6) ? 1 : random.integer(2, 4); count > 0; --count) {
      std::vector<FlatTable*> all;
      collect(root, &all);
      change(random, pick(random, all), all);
    }
  }
  // Tables of `other` in the place of some of their kind.
  void cross(Random& random, FlatTable* root, FlatTable& other) const {
    std::vector<FlatTable*> from, to;
    collect(&other, &from);
    for (int tries = 0; tries < 10; ++tries) {
      to.clear();
      collect(root, &to);
      const FlatTable& source = *pick(random, from);
      FlatTable* target = pick(random, to);
      if (target->type != source.type || target == root) continue;
      *target = FlatTable(source);
      if (random.chance(0.5)) return;
    }
  }

 private:
  using Field = reflection::Field;
  using Type = reflection::BaseType;
  using Builder = flatbuffers::FlatBufferBuilder;

  static size_t bytes_of(Type type) {
    switch (type) {
      case reflection::UType:
      case reflection::Bool:
      case reflection::Byte:
      case reflection::UByte:
        return 1;
      case reflection::Short:
      case reflection::UShort:
        return 2;
      case reflection::Int:
      case reflection::UInt:
      case reflection::Float:
        return 4;
      case reflection::Long:
      case reflection::ULong:
      case reflection::Double:
        return 8;
      default:
        return 0;  // no scalar
    }
  }
  const reflection::Object& object(int32_t index) const {
    return *schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(index));
  }
  bool is_table(const reflection::Type& type) const {
    return type.index() >= 0 && !object(type.index()).is_struct();
  }
  // The table that a union holds when its type field says so; null: none.
  const reflection::Object* member(const Field& field, uint64_t type) const {
    const auto* values =
        schema_.enums()->Get(static_cast<flatbuffers::uoffset_t>(field.type()->index()))->values();
    for (const reflection::EnumVal* value : *values) {
      if (static_cast<uint64_t>(value->value()) == type &&
          value->union_type()->base_type() == reflection::Obj)
        return &object(value->union_type()->index());
    }
    return nullptr;
  }

  // ---- from bytes and to bytes ----
  FlatTable read_table(const flatbuffers::Table& table, const reflection::Object& type) const {
    FlatTable result{&type, {}};
    for (const Field* field : *type.fields()) {
      if (!table.CheckField(field->offset())) continue;
      FlatValue value;
      if (read_value(table, *field, &value)) result.fields.emplace(field->id(), std::move(value));
    }
    return result;
  }

  bool read_value(const flatbuffers::Table& table, const Field& field, FlatValue* value) const {
    const uint8_t* at = table.GetAddressOf(field.offset());
    const Type type = field.type()->base_type();
    if (const size_t size = bytes_of(type); size > 0) {
      std::memcpy(&value->scalar, at, size);
      return true;
    }
    at += flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
    switch (type) {
      case reflection::String:
        value->bytes = reinterpret_cast<const flatbuffers::String*>(at)->str();
        return true;
      case reflection::Obj:
        if (!is_table(*field.type())) return false;
        value->tables.push_back(
            read_table(*reinterpret_cast<const flatbuffers::Table*>(at), object(field.type()->index())));
        return true;
      case reflection::Union: {
        // The field before it contains the type.
        const auto kind = table.GetField<uint8_t>(static_cast<uint16_t>(field.offset() - 2), 0);
        const reflection::Object* held = member(field, kind);
        if (held == nullptr) return false;
        value->tables.push_back(read_table(*reinterpret_cast<const flatbuffers::Table*>(at), *held));
        return true;
      }
      case reflection::Vector:
        return read_vector(at, *field.type(), value);
      default:
        return false;
    }
  }

  bool read_vector(const uint8_t* at, const reflection::Type& type, FlatValue* value) const {
    using Offsets = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>;
    if (const size_t size = bytes_of(type.element()); size > 0) {
      const auto* vector = reinterpret_cast<const flatbuffers::Vector<uint8_t>*>(at);
      value->bytes.assign(reinterpret_cast<const char*>(vector->Data()), vector->size() * size);
      return true;
    }
    if (type.element() == reflection::String) {
      for (const flatbuffers::String* text :
           *reinterpret_cast<const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>*>(at)) {
        value->texts.push_back(text->str());
      }
      return true;
    }
    if (type.element() != reflection::Obj || !is_table(type)) return false;
    for (const flatbuffers::Table* table : *reinterpret_cast<const Offsets*>(at)) {
      value->tables.push_back(read_table(*table, object(type.index())));
    }
    return true;
  }

  flatbuffers::uoffset_t write_table(Builder& builder, const FlatTable& table) const {
    std::map<uint16_t, flatbuffers::uoffset_t> parts;
    for (const auto& [id, value] : table.fields) {
      const Field& field = field_of(table, id);
      if (bytes_of(field.type()->base_type()) == 0) parts[id] = write_part(builder, field, value);
    }
    const flatbuffers::uoffset_t start = builder.StartTable();
    for (const auto& [id, value] : table.fields) {
      const Field& field = field_of(table, id);
      switch (bytes_of(field.type()->base_type())) {
        case 0:
          builder.AddOffset(field.offset(), flatbuffers::Offset<void>(parts[id]));
          break;
        case 1:
          builder.AddElement<uint8_t>(field.offset(), static_cast<uint8_t>(value.scalar), 0);
          break;
        case 2:
          builder.AddElement<uint16_t>(field.offset(), static_cast<uint16_t>(value.scalar), 0);
          break;
        case 4:
          builder.AddElement<uint32_t>(field.offset(), static_cast<uint32_t>(value.scalar), 0);
          break;
        default:
          builder.AddElement<uint64_t>(field.offset(), value.scalar, 0);
      }
    }
    return builder.EndTable(start);
  }

  flatbuffers::uoffset_t write_part(Builder& builder, const Field& field, const FlatValue& value) const {
    switch (field.type()->base_type()) {
      case reflection::String:
        return builder.CreateString(value.bytes).o;
      case reflection::Obj:
      case reflection::Union:
        return write_table(builder, value.tables.at(0));
      default: {
        if (field.type()->element() == reflection::String)
          return builder.CreateVectorOfStrings(value.texts).o;
        if (const size_t size = bytes_of(field.type()->element()); size > 0) {
          builder.ForceVectorAlignment(value.bytes.size() / size, size, 16);
          uint8_t* to = nullptr;
          const size_t count = value.bytes.size() / size;
          const auto offset = builder.CreateUninitializedVector(count, size, &to);
          if (count > 0) std::memcpy(to, value.bytes.data(), count * size);
          return offset;
        }
        std::vector<flatbuffers::Offset<flatbuffers::Table>> tables;
        for (const FlatTable& table : value.tables) tables.emplace_back(write_table(builder, table));
        return builder.CreateVector(tables).o;
      }
    }
  }

  static const Field& field_of(const FlatTable& table, uint16_t id) {
    for (const Field* field : *table.type->fields()) {  // by name
      if (field->id() == id) return *field;
    }
    std::abort();
  }

  // ---- changes ----
  static void collect(FlatTable* table, std::vector<FlatTable*>* all) {
    all->push_back(table);
    for (auto& [id, value] : table->fields) {
      for (FlatTable& part : value.tables) collect(&part, all);
    }
  }

  void change(Random& random, FlatTable* table, const std::vector<FlatTable*>& all) const {
    if (table->type->fields()->size() == 0) return;
    const auto* field = table->type->fields()->Get(
        static_cast<flatbuffers::uoffset_t>(index_below(random, table->type->fields()->size())));
    // One that is there, mostly.
    if (!table->fields.empty() && random.chance(0.8)) {
      auto at = table->fields.begin();
      std::advance(at, index_below(random, table->fields.size()));
      field = &field_of(*table, at->first);
    }
    const auto found = table->fields.find(field->id());
    if (found == table->fields.end()) {
      add_field(random, table, *field, all);
    } else if (random.chance(0.05)) {
      table->fields.erase(found);
    } else if (random.chance(0.15)) {
      copy_field(random, table, *field, all);
    } else {
      change_value(random, table, *field, &found->second, all);
    }
  }

  // The same field of a table of the same type.
  static void copy_field(Random& random, FlatTable* table, const Field& field,
                         const std::vector<FlatTable*>& all) {
    for (int tries = 0; tries < 20; ++tries) {
      const FlatTable& other = *pick(random, all);
      const auto found = other.fields.find(field.id());
      if (other.type != table->type || &other == table || found == other.fields.end()) continue;
      const FlatValue copy = found->second;
      table->fields[field.id()] = copy;
      return;
    }
  }

  void add_field(Random& random, FlatTable* table, const Field& field,
                 const std::vector<FlatTable*>& all) const {
    const reflection::Type& type = *field.type();
    FlatValue value;
    if (type.base_type() == reflection::Obj) {
      if (!is_table(type)) return;
      value.tables.push_back(some_table(random, object(type.index()), all));
    } else if (type.base_type() == reflection::Union) {
      const auto kind = table->fields.find(static_cast<uint16_t>(field.id() - 1));
      const reflection::Object* held = member(field, kind == table->fields.end() ? 1 : kind->second.scalar);
      if (held == nullptr) return;
      value.tables.push_back(some_table(random, *held, all));
    }
    FlatValue& added = table->fields[field.id()] = std::move(value);
    change_value(random, table, field, &added, all);
  }

  static FlatTable some_table(Random& random, const reflection::Object& type,
                              const std::vector<FlatTable*>& all) {
    for (int tries = 0; tries < 20; ++tries) {
      const FlatTable& other = *pick(random, all);
      if (other.type == &type) return FlatTable(other);
    }
    return {&type, {}};
  }

  void change_value(Random& random, FlatTable* table, const Field& field, FlatValue* value,
                    const std::vector<FlatTable*>& all) const {
    const reflection::Type& type = *field.type();
    switch (type.base_type()) {
      case reflection::String:
        return change_text(random, &value->bytes);
      case reflection::Obj:
        value->tables[0] = some_table(random, object(type.index()), all);
        return;
      case reflection::Union:
        if (!value->tables.empty()) change(random, &value->tables[0], all);
        return;
      case reflection::Vector:
        if (bytes_of(type.element()) > 0) return change_scalars(random, type, &value->bytes);
        if (type.element() == reflection::String) return change_texts(random, &value->texts);
        if (type.element() == reflection::Obj && is_table(type)) change_tables(random, type, value, all);
        return;
      case reflection::UType:
        change_scalar(random, type, &value->scalar);
        if (random.chance(0.7)) follow_type(random, table, field, value->scalar, all);
        return;
      default:
        if (bytes_of(type.base_type()) > 0) change_scalar(random, type, &value->scalar);
    }
  }

  // A union's value follows its type.
  void follow_type(Random& random, FlatTable* table, const Field& field, uint64_t kind,
                   const std::vector<FlatTable*>& all) const {
    const auto id = static_cast<uint16_t>(field.id() + 1);
    const reflection::Object* type = nullptr;
    for (const Field* held : *table->type->fields()) {
      if (held->id() == id && held->type()->base_type() == reflection::Union) type = member(*held, kind);
    }
    if (type == nullptr) {
      table->fields.erase(id);
      return;
    }
    FlatTable value = some_table(random, *type, all);  // before what `all` points to goes
    table->fields[id].tables.assign(1, std::move(value));
  }

  // As the element of a vector where it is one.
  void change_scalar(Random& random, const reflection::Type& type, uint64_t* bits) const {
    const Type kind = type.base_type() == reflection::Vector ? type.element() : type.base_type();
    if (kind == reflection::Float) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(*bits));
      const double changed = changed_real(random, value);
      // Beyond float32 is infinity; the conversion would be undefined.
      const float narrow = changed > 3.4e38    ? std::numeric_limits<float>::infinity()
                           : changed < -3.4e38 ? -std::numeric_limits<float>::infinity()
                                               : static_cast<float>(changed);
      *bits = std::bit_cast<uint32_t>(narrow);
    } else if (kind == reflection::Double) {
      *bits = std::bit_cast<uint64_t>(changed_real(random, std::bit_cast<double>(*bits)));
    } else if (kind == reflection::Bool) {
      *bits = random.chance(0.95) ? (*bits ^ 1) & 1 : 255;
    } else if (type.index() >= 0 && random.chance(0.8)) {  // an enum
      const auto* values = schema_.enums()->Get(static_cast<flatbuffers::uoffset_t>(type.index()))->values();
      *bits = static_cast<uint64_t>(
          values->Get(static_cast<flatbuffers::uoffset_t>(index_below(random, values->size())))->value());
    } else {
      *bits = static_cast<uint64_t>(changed_integer(random, static_cast<int64_t>(*bits)));
    }
  }

  void change_scalars(Random& random, const reflection::Type& type, std::string* bytes) const {
    const size_t size = bytes_of(type.element()), count = bytes->size() / size;
    const int64_t kind = random.integer(0, 7);
    if (count > 64 && kind >= 2 && random.chance(0.5)) return mutate_bytes(random, bytes, bytes->size() + 64);
    if (count == 0 || kind == 0) {
      bytes->insert(count == 0 ? 0 : index_below(random, count) * size, size, '\0');
    } else if (kind == 1) {
      bytes->erase(index_below(random, count) * size, size * static_cast<size_t>(random.integer(1, 2)));
    } else if (kind == 2) {  // another number of elements: what there is, again and again
      const auto wanted =
          static_cast<size_t>(random.chance(0.5) ? random.integer(0, 9) : random.integer(0, 72));
      const std::string original = *bytes;
      bytes->clear();
      while (bytes->size() < wanted * size) *bytes += original;
      bytes->resize(wanted * size);
    } else {
      uint64_t element = 0;
      const size_t at = index_below(random, count) * size;
      std::memcpy(&element, bytes->data() + at, size);
      if (size == 4 && type.element() == reflection::Int)
        element = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(element)));
      change_scalar(random, type, &element);
      std::memcpy(bytes->data() + at, &element, size);
    }
  }

  static void change_text(Random& random, std::string* text) {
    if (random.chance(0.3)) {
      text->clear();
    } else {
      mutate_bytes(random, text, text->size() + 16);
    }
  }
  static void change_texts(Random& random, std::vector<std::string>* texts) {
    if (texts->empty() || random.chance(0.3)) {
      texts->emplace_back("a");
    } else if (random.chance(0.3)) {
      texts->pop_back();
    } else {
      change_text(random, &(*texts)[index_below(random, texts->size())]);
    }
  }

  void change_tables(Random& random, const reflection::Type& type, FlatValue* value,
                     const std::vector<FlatTable*>& all) const {
    std::vector<FlatTable>& tables = value->tables;
    const int64_t kind = tables.empty() ? 0 : random.integer(0, 4);
    const size_t at = tables.empty() ? 0 : index_below(random, tables.size());
    const auto place = tables.begin() + static_cast<std::ptrdiff_t>(at);
    switch (kind) {
      case 0: {
        FlatTable table = some_table(random, object(type.index()), all);
        tables.insert(place, std::move(table));
        return;
      }
      case 1:
        tables.erase(place);
        return;
      case 2:
        std::swap(tables[at], tables[index_below(random, tables.size())]);
        return;
      case 3: {
        FlatTable table = some_table(random, object(type.index()), all);
        tables[at] = std::move(table);
        return;
      }
      default: {
        FlatTable copy(tables[at]);
        tables.insert(place, std::move(copy));
      }
    }
  }

  const reflection::Schema& schema_;
};

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MUTATORS_FLATBUFFER_TREE_H_
