// Signed plans: what is signed, what opens, and what does not.
#include "qplan/signature.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "src/base/sha256.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::signature_test {
namespace {

constexpr size_t kTrailerBytes = 88;

// Not Ed25519: the "signature" of a message is the message, xored with a byte of the key. Enough to see what
// is checked, and when.
struct Keyring {
  qplan_trust trust = {};
  uint8_t key = 0x5a;
  uint32_t calls = 0;

  explicit Keyring(uint64_t min_counter = 0) {
    trust.struct_size = sizeof(trust);
    trust.min_counter = min_counter;
    trust.user = this;
    trust.verify = [](void* user, const uint8_t* key_id, const uint8_t* message, size_t size,
                      const uint8_t* signature) {
      auto* self = static_cast<Keyring*>(user);
      ++self->calls;
      if (key_id[0] != self->key || size != QPLAN_SIGNED_MESSAGE_BYTES) return 0;
      for (size_t i = 0; i < size; ++i) {
        if (signature[i] != (message[i] ^ self->key)) return 0;
      }
      return 1;
    };
  }
};

AlignedBytes with_trailer(const AlignedBytes& plan, uint64_t counter, uint8_t key) {
  AlignedBytes file(plan.size() + kTrailerBytes);
  std::memcpy(file.data(), plan.data(), plan.size());
  uint8_t* trailer = file.data() + plan.size();
  std::memset(trailer, 0, kTrailerBytes);
  std::memcpy(trailer, "QPSG\1\0\1\0", 8);
  std::memcpy(trailer + 8, &counter, sizeof(counter));
  trailer[16] = key;
  return file;
}

AlignedBytes signed_plan(const AlignedBytes& plan, uint64_t counter, uint8_t key = 0x5a) {
  AlignedBytes file = with_trailer(plan, counter, key);
  qplan_signature_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_signature_read(file.data(), file.size(), &info, nullptr), QPLAN_OK);
  for (size_t i = 0; i < QPLAN_SIGNATURE_BYTES; ++i)
    file[plan.size() + 24 + i] = static_cast<uint8_t>(info.message[i] ^ key);
  return file;
}

qplan_status open(const AlignedBytes& file, const Keyring& keys, std::string* text = nullptr,
                  uint64_t* counter = nullptr) {
  qplan_plan plan = {};
  qplan_error error = empty_error();
  qplan_signature_info info = {};
  info.struct_size = sizeof(info);
  const qplan_status status =
      qplan_plan_open_signed(&plan, file.data(), file.size(), 0, &keys.trust, &info, &error);
  EXPECT_EQ(error.status, status);
  EXPECT_EQ(qplan_plan_io_count(&plan, nullptr, QPLAN_INPUT), status == QPLAN_OK ? 1u : 0u);
  if (text != nullptr) *text = error.text;
  if (counter != nullptr) *counter = info.counter;
  return status;
}

TEST(Signature, MessageHasCounterKeySizeAndDigestOfThePlan) {
  const TestPlan plan(sequence_spec());
  const AlignedBytes file = with_trailer(plan.bytes(), 0x0102030405060708, 0x5a);
  qplan_signature_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_signature_read(file.data(), file.size(), &info, nullptr), QPLAN_OK);
  EXPECT_EQ(info.plan_size, plan.bytes().size());
  EXPECT_EQ(info.counter, 0x0102030405060708u);
  std::vector<uint8_t> expected = {'Q', 'P', 'S', 'G', 1,    0, 1, 0, 8, 7, 6, 5,
                                   4,   3,   2,   1,   0x5a, 0, 0, 0, 0, 0, 0, 0};
  for (uint64_t size = plan.bytes().size(), i = 0; i < 8; ++i, size >>= 8)
    expected.push_back(static_cast<uint8_t>(size));
  Sha256 sha;
  sha.update(plan.bytes().data(), plan.bytes().size());
  expected.resize(64);
  sha.finish(expected.data() + 32);
  EXPECT_EQ(std::vector<uint8_t>(info.message, info.message + 64), expected);
}

TEST(Signature, APlanOfATrustedKeyOpens) {
  const TestPlan plan(sequence_spec());
  const Keyring keys;
  uint64_t counter = 0;
  EXPECT_EQ(open(signed_plan(plan.bytes(), 7), keys, nullptr, &counter), QPLAN_OK);
  EXPECT_EQ(counter, 7u);
  EXPECT_EQ(keys.calls, 1u);
}

// Every byte counts: of the plan, and of what follows it.
TEST(Signature, AChangedByteAnywhereIsRefused) {
  const TestPlan plan(sequence_spec());
  const AlignedBytes file = signed_plan(plan.bytes(), 7);
  const Keyring keys;
  for (size_t i = 0; i < file.size(); ++i) {
    AlignedBytes changed(file.size());
    std::memcpy(changed.data(), file.data(), file.size());
    changed[i] ^= 0x10;
    ASSERT_LT(open(changed, keys), 0) << "byte " << i;
  }
}

TEST(Signature, AnotherKeyAndAnUnsignedPlanAreRefused) {
  const TestPlan plan(sequence_spec());
  const Keyring keys;
  std::string text;
  EXPECT_EQ(open(signed_plan(plan.bytes(), 7, 0x11), keys, &text), QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(text, "signature: it is not that of a trusted key, or the plan was changed");
  EXPECT_EQ(open(plan.bytes(), keys, &text), QPLAN_NOT_FOUND);
  EXPECT_EQ(text, "signature: the plan is not signed; sign it with qplan sign");
  for (size_t size = 0; size < plan.bytes().size() + kTrailerBytes; size += 7) {
    const AlignedBytes file = signed_plan(plan.bytes(), 7);
    AlignedBytes cut(size);
    if (size > 0) std::memcpy(cut.data(), file.data(), size);
    EXPECT_LT(open(cut, keys), 0) << size;
  }
}

TEST(Signature, AnOlderPlanIsRefused) {
  const TestPlan plan(sequence_spec());
  std::string text;
  EXPECT_EQ(open(signed_plan(plan.bytes(), 7), Keyring(7)), QPLAN_OK);
  EXPECT_EQ(open(signed_plan(plan.bytes(), 8), Keyring(7)), QPLAN_OK);
  EXPECT_EQ(open(signed_plan(plan.bytes(), 6), Keyring(7), &text), QPLAN_PLAN_VERSION);
  EXPECT_EQ(text,
            "signature: counter 6, expected at least 7: an older plan than one that was accepted before");
}

TEST(Signature, WrongArgumentsAreErrors) {
  const TestPlan plan(sequence_spec());
  const AlignedBytes file = signed_plan(plan.bytes(), 7);
  const Keyring keys;
  qplan_plan opened = {};
  qplan_trust nobody = {};
  nobody.struct_size = sizeof(nobody);
  EXPECT_EQ(qplan_plan_open_signed(&opened, file.data(), file.size(), 0, nullptr, nullptr, nullptr),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_open_signed(&opened, file.data(), file.size(), 0, &nobody, nullptr, nullptr),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_open_signed(nullptr, file.data(), file.size(), 0, &keys.trust, nullptr, nullptr),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_signature_read(nullptr, 5, nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_open_signed(&opened, file.data(), file.size(), 0, &keys.trust, nullptr, nullptr),
            QPLAN_OK);
}

}  // namespace
}  // namespace qplan::testing::signature_test
