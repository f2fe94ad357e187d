// Mutates a protobuf message by reflection: fields come, go and change their values, repeated ones grow and
// shrink, messages and texts of the same field are exchanged between places.
#ifndef QPLAN_TESTS_FUZZ_MUTATORS_PROTOBUF_H_
#define QPLAN_TESTS_FUZZ_MUTATORS_PROTOBUF_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/mutators/numbers.h"

namespace qplan::fuzz {

class ProtobufMutator {
 public:
  // words: texts that the format knows.
  explicit ProtobufMutator(std::vector<std::string> words) : words_(std::move(words)) {}

  void mutate(Random& random, google::protobuf::Message* root) const {
    for (int64_t count = random.chance(0.6) ? 1 : random.integer(2, 4); count > 0; --count) {
      std::vector<Message*> all;
      collect(root, &all);
      change(random, pick(random, all), all);
    }
  }

  // Messages of `other` in the place of some of their kind, or appended to them.
  static void cross(Random& random, google::protobuf::Message* root, google::protobuf::Message* other) {
    std::vector<Message*> from;
    collect(other, &from);
    for (int tries = 0; tries < 12; ++tries) {
      std::vector<Message*> to;
      collect(root, &to);
      const Message& source = *pick(random, from);
      Message* target = pick(random, to);
      if (target->GetDescriptor() != source.GetDescriptor() || target == root) continue;
      target->CopyFrom(source);
      if (random.chance(0.5)) return;
    }
  }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  using Reflection = google::protobuf::Reflection;

  static void collect(Message* message, std::vector<Message*>* all) {
    all->push_back(message);
    const Reflection& reflection = *message->GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(*message, &fields);
    for (const Field* field : fields) {
      if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        collect(reflection.MutableMessage(message, field), all);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        collect(reflection.MutableRepeatedMessage(message, field, i), all);
      }
    }
  }

  void change(Random& random, Message* message, const std::vector<Message*>& all) const {
    const auto* descriptor = message->GetDescriptor();
    if (descriptor->field_count() == 0) return;
    std::vector<const Field*> present;
    message->GetReflection()->ListFields(*message, &present);
    const Field* field =
        !present.empty() && random.chance(0.85)
            ? pick(random, present)
            : descriptor->field(static_cast<int>(random.integer(0, descriptor->field_count() - 1)));
    if (random.chance(0.04)) {
      message->GetReflection()->ClearField(message, field);
    } else if (field->is_repeated()) {
      change_repeated(random, message, field, all);
    } else {
      change_single(random, message, field, all);
    }
  }

  // A message of the type that is somewhere in the tree.
  static const Message* another(Random& random, const google::protobuf::Descriptor* type,
                                const std::vector<Message*>& all) {
    for (int tries = 0; tries < 20; ++tries) {
      const Message* other = pick(random, all);
      if (other->GetDescriptor() == type) return other;
    }
    return nullptr;
  }

  std::string text(Random& random, const std::string& old, const std::vector<Message*>& all) const {
    if (random.chance(0.4) && !words_.empty()) return pick(random, words_);
    for (int tries = 0; tries < 20 && random.chance(0.9); ++tries) {  // a name from elsewhere
      const Message& other = *pick(random, all);
      std::vector<const Field*> fields;
      other.GetReflection()->ListFields(other, &fields);
      if (fields.empty()) continue;
      const Field* field = pick(random, fields);
      if (field->cpp_type() != Field::CPPTYPE_STRING) continue;
      if (!field->is_repeated()) return other.GetReflection()->GetString(other, field);
      const int count = other.GetReflection()->FieldSize(other, field);
      return other.GetReflection()->GetRepeatedString(other, field,
                                                      static_cast<int>(random.integer(0, count - 1)));
    }
    std::string result = old;
    mutate_bytes(random, &result, old.size() + 16);
    return result;
  }

  static float narrow(double value) {
    if (value > 3.4e38) return std::numeric_limits<float>::infinity();
    if (value < -3.4e38) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(value);
  }

  static int enum_number(Random& random, const Field* field) {
    const auto* values = field->enum_type();
    return values->value(static_cast<int>(random.integer(0, values->value_count() - 1)))->number();
  }

  void change_single(Random& random, Message* message, const Field* field,
                     const std::vector<Message*>& all) const {
    const Reflection& r = *message->GetReflection();
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.SetInt32(message, field,
                          static_cast<int32_t>(changed_integer(random, r.GetInt32(*message, field))));
      case Field::CPPTYPE_INT64:
        return r.SetInt64(message, field, changed_integer(random, r.GetInt64(*message, field)));
      case Field::CPPTYPE_UINT32:
        return r.SetUInt32(message, field,
                           static_cast<uint32_t>(changed_integer(random, r.GetUInt32(*message, field))));
      case Field::CPPTYPE_UINT64:
        return r.SetUInt64(message, field,
                           static_cast<uint64_t>(
                               changed_integer(random, static_cast<int64_t>(r.GetUInt64(*message, field)))));
      case Field::CPPTYPE_FLOAT:
        return r.SetFloat(message, field, narrow(changed_real(random, r.GetFloat(*message, field))));
      case Field::CPPTYPE_DOUBLE:
        return r.SetDouble(message, field, changed_real(random, r.GetDouble(*message, field)));
      case Field::CPPTYPE_BOOL:
        return r.SetBool(message, field, !r.GetBool(*message, field));
      case Field::CPPTYPE_ENUM:
        return r.SetEnumValue(message, field, enum_number(random, field));
      case Field::CPPTYPE_STRING:
        return r.SetString(message, field, text(random, r.GetString(*message, field), all));
      case Field::CPPTYPE_MESSAGE: {
        const Message* other = another(random, field->message_type(), all);
        if (other == nullptr) {
          r.MutableMessage(message, field);
          return;
        }
        const std::unique_ptr<Message> copy = clone(*other);  // it may hold this one
        r.MutableMessage(message, field)->CopyFrom(*copy);
      }
    }
  }

  static std::unique_ptr<Message> clone(const Message& message) {
    std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(message);
    return copy;
  }

  void change_repeated(Random& random, Message* message, const Field* field,
                       const std::vector<Message*>& all) const {
    const Reflection& r = *message->GetReflection();
    const int count = r.FieldSize(*message, field);
    const int64_t kind = count == 0 ? 0 : random.integer(0, 6);
    const int at = count == 0 ? 0 : static_cast<int>(random.integer(0, count - 1));
    if (kind == 0) {
      add(random, message, field, at, all);
      // Not always at the end.
      if (random.chance(0.5)) r.SwapElements(message, field, at, r.FieldSize(*message, field) - 1);
    } else if (kind == 1) {
      r.SwapElements(message, field, at, count - 1);
      r.RemoveLast(message, field);
    } else if (kind == 2) {
      r.SwapElements(message, field, at, static_cast<int>(random.integer(0, count - 1)));
    } else {
      change_element(random, message, field, at, all);
    }
  }

  void add(Random& random, Message* message, const Field* field, int at,
           const std::vector<Message*>& all) const {
    const Reflection& r = *message->GetReflection();
    const bool repeat = r.FieldSize(*message, field) > 0 && random.chance(0.5);
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.AddInt32(message, field, static_cast<int32_t>(special_integer(random)));
      case Field::CPPTYPE_INT64:
        return r.AddInt64(message, field, special_integer(random));
      case Field::CPPTYPE_UINT32:
        return r.AddUInt32(message, field, static_cast<uint32_t>(special_integer(random)));
      case Field::CPPTYPE_UINT64:
        return r.AddUInt64(message, field, static_cast<uint64_t>(special_integer(random)));
      case Field::CPPTYPE_FLOAT:
        return r.AddFloat(message, field, narrow(special_real(random)));
      case Field::CPPTYPE_DOUBLE:
        return r.AddDouble(message, field, special_real(random));
      case Field::CPPTYPE_BOOL:
        return r.AddBool(message, field, random.chance(0.5));
      case Field::CPPTYPE_ENUM:
        return r.AddEnumValue(message, field, enum_number(random, field));
      case Field::CPPTYPE_STRING:
        return r.AddString(message, field,
                           repeat ? r.GetRepeatedString(*message, field, at) : text(random, "x", all));
      case Field::CPPTYPE_MESSAGE: {
        const Message* other =
            repeat ? &r.GetRepeatedMessage(*message, field, at) : another(random, field->message_type(), all);
        if (other == nullptr) {
          r.AddMessage(message, field);
          return;
        }
        const std::unique_ptr<Message> copy = clone(*other);
        r.AddMessage(message, field)->CopyFrom(*copy);
      }
    }
  }

  void change_element(Random& random, Message* message, const Field* field, int at,
                      const std::vector<Message*>& all) const {
    const Reflection& r = *message->GetReflection();
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.SetRepeatedInt32(
            message, field, at,
            static_cast<int32_t>(changed_integer(random, r.GetRepeatedInt32(*message, field, at))));
      case Field::CPPTYPE_INT64:
        return r.SetRepeatedInt64(message, field, at,
                                  changed_integer(random, r.GetRepeatedInt64(*message, field, at)));
      case Field::CPPTYPE_UINT32:
        return r.SetRepeatedUInt32(message, field, at, static_cast<uint32_t>(special_integer(random)));
      case Field::CPPTYPE_UINT64:
        return r.SetRepeatedUInt64(message, field, at, static_cast<uint64_t>(special_integer(random)));
      case Field::CPPTYPE_FLOAT:
        return r.SetRepeatedFloat(message, field, at,
                                  narrow(changed_real(random, r.GetRepeatedFloat(*message, field, at))));
      case Field::CPPTYPE_DOUBLE:
        return r.SetRepeatedDouble(message, field, at,
                                   changed_real(random, r.GetRepeatedDouble(*message, field, at)));
      case Field::CPPTYPE_BOOL:
        return r.SetRepeatedBool(message, field, at, random.chance(0.5));
      case Field::CPPTYPE_ENUM:
        return r.SetRepeatedEnumValue(message, field, at, enum_number(random, field));
      case Field::CPPTYPE_STRING:
        return r.SetRepeatedString(message, field, at,
                                   text(random, r.GetRepeatedString(*message, field, at), all));
      case Field::CPPTYPE_MESSAGE: {
        const Message* other = another(random, field->message_type(), all);
        if (other == nullptr) return;
        const std::unique_ptr<Message> copy = clone(*other);
        r.MutableRepeatedMessage(message, field, at)->CopyFrom(*copy);
      }
    }
  }

  std::vector<std::string> words_;
};

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MUTATORS_PROTOBUF_H_
