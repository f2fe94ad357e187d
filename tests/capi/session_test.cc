// Sessions of qplan.hpp against libqplan.so: what they say of the elements of inputs and outputs.
#include <gtest/gtest.h>
#include <qplan/pack.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <qplan/qplan.hpp>
#include <string>

namespace {

using namespace qplan;  // NOLINT: what applications do

// A plan in memory that is aligned as plans must be.
class Packed {
 public:
  explicit Packed(const std::string& text) {
    qplan_pack_options options = {};
    options.struct_size = sizeof(options);
    qplan_error error = {};
    error.struct_size = sizeof(error);
    EXPECT_EQ(qplan_pack_bytes(text.data(), text.size(), "model", &options, append, &content_, &error),
              QPLAN_OK)
        << error.text;
    bytes_ = ::operator new (content_.size(), std::align_val_t{64});
    std::memcpy(bytes_, content_.data(), content_.size());
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() { ::operator delete (bytes_, std::align_val_t{64}); }
  Plan plan() const { return Plan::view(bytes_, content_.size()); }

 private:
  static void append(void* user, const char* bytes, size_t size) {
    static_cast<std::string*>(user)->append(bytes, size);
  }
  std::string content_;
  void* bytes_ = nullptr;
};

template <typename Use>
std::string refusal(const Use& use) {
  try {
    use();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), QPLAN_DTYPE_MISMATCH);
    return error.what();
  }
  return "none";
}

TEST(Session, GivesBooleansAsOutputs) {
  const Packed packed("def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { less(%x, %y) }");
  Session session(packed.plan());
  EXPECT_EQ(session.plan().output(0).num_elements(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    session.input<float>(0)[i] = static_cast<float>(i);
    session.input<float>(1)[i] = 2.0F;
  }
  session.run();
  const span<const bool> less = session.output<bool>(0);
  ASSERT_EQ(less.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(less[i], i < 2) << i;
  EXPECT_EQ(refusal([&] { session.output<uint8_t>(0); }), "output 0 is bool, found uint8");
  EXPECT_EQ(refusal([&] { session.input<bool>(0); }), "input 0 is float32, found bool");
}

TEST(Session, TakesBooleansAsInputs) {
  const Packed packed(
      "def @main(%a: Tensor[(2), bool], %x: Tensor[(2), int8], %y: Tensor[(2), int8]) { where(%a, %x, %y) }");
  Session session(packed.plan());
  const bool flags[] = {false, true};
  std::memset(session.input<int8_t>(1).data(), 1, 2);
  std::memset(session.input<int8_t>(2).data(), 2, 2);
  session.run(span<const bool>(flags, 2));
  EXPECT_EQ(session.output<int8_t>(0)[0], 2);
  EXPECT_EQ(session.output<int8_t>(0)[1], 1);
}

}  // namespace
