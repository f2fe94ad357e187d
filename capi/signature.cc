// Signatures of plans: what they cover, and the way to open a plan that has one. A file of its own, so that
// programs that do not ask for signatures do not link it.
#include "qplan/signature.h"

#include <string.h>

#include "format/container.h"
#include "src/base/error.h"
#include "src/base/sha256.h"
#include "src/runtime/structs.h"

namespace {

using qplan::Error;
using qplan::format::Header;

// What follows the plan: little-endian, as the plan is.
struct Trailer {
  uint8_t magic[4];
  uint16_t version;
  uint16_t algorithm;
  uint64_t counter;
  uint8_t key_id[QPLAN_KEY_ID_BYTES];
  uint8_t signature[QPLAN_SIGNATURE_BYTES];
};
static_assert(sizeof(Trailer) == 88, "the layout of signatures is that of format/README.md");

constexpr uint8_t kSignatureMagic[4] = {'Q', 'P', 'S', 'G'};
constexpr uint16_t kSignatureVersion = 1, kEd25519 = 1;

// The bytes that the signature is of: the trailer up to the key, the plan's size, and the SHA-256 of the
// plan.
struct Message {
  uint8_t magic[4];
  uint16_t version;
  uint16_t algorithm;
  uint64_t counter;
  uint8_t key_id[QPLAN_KEY_ID_BYTES];
  uint64_t plan_size;
  uint8_t digest[qplan::Sha256::kDigestBytes];
};
static_assert(sizeof(Message) == QPLAN_SIGNED_MESSAGE_BYTES, "the message is that of format/README.md");

qplan_status read_signature(const void* bytes, size_t size, qplan_signature_info* found, Error* error) {
  Header header;
  if (size < sizeof(header)) {
    return error->set(QPLAN_PLAN_CORRUPT)
           << "signature: " << static_cast<uint64_t>(size) << " bytes, a plan has more";
  }
  memcpy(&header, bytes, sizeof(header));
  if (memcmp(header.magic, qplan::format::kMagic, sizeof(header.magic)) != 0 || header.file_size > size ||
      header.file_size < sizeof(header)) {
    return error->set(QPLAN_PLAN_CORRUPT) << "signature: the bytes do not begin like a plan";
  }
  Trailer trailer;
  const uint64_t rest = size - header.file_size;
  const uint8_t* plan = static_cast<const uint8_t*>(bytes);
  if (rest >= sizeof(trailer)) memcpy(&trailer, plan + header.file_size, sizeof(trailer));
  if (rest < sizeof(trailer) || memcmp(trailer.magic, kSignatureMagic, sizeof(trailer.magic)) != 0) {
    return error->set(QPLAN_NOT_FOUND) << "signature: the plan is not signed; sign it with qplan sign";
  }
  if (trailer.version != kSignatureVersion || trailer.algorithm != kEd25519) {
    return error->set(QPLAN_PLAN_VERSION)
           << "signature: version " << uint32_t{trailer.version} << ", algorithm "
           << uint32_t{trailer.algorithm} << ", expected version 1, algorithm 1 (Ed25519)";
  }
  Message message = {};
  memcpy(message.magic, trailer.magic, sizeof(message.magic));
  message.version = trailer.version;
  message.algorithm = trailer.algorithm;
  message.counter = trailer.counter;
  memcpy(message.key_id, trailer.key_id, sizeof(message.key_id));
  message.plan_size = header.file_size;
  qplan::Sha256 sha;
  sha.update(plan, static_cast<size_t>(header.file_size));
  sha.finish(message.digest);
  memset(found, 0, sizeof(*found));
  found->plan_size = header.file_size;
  found->counter = trailer.counter;
  memcpy(found->key_id, trailer.key_id, sizeof(found->key_id));
  memcpy(found->message, &message, sizeof(message));
  memcpy(found->signature, trailer.signature, sizeof(found->signature));
  return QPLAN_OK;
}

qplan_status give(const Error& error, qplan_error* to) {
  error.copy_to(to);
  return error.status();
}

}  // namespace

qplan_status qplan_signature_read(const void* bytes, size_t size, qplan_signature_info* info,
                                  qplan_error* error) {
  Error result;
  qplan_signature_info found;
  if (bytes == nullptr || info == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT)
        << "signature: " << (bytes == nullptr ? "bytes" : "info") << " is NULL";
  } else if (read_signature(bytes, size, &found, &result) == QPLAN_OK && !qplan::fill_fields(found, info)) {
    result.set(QPLAN_INVALID_ARGUMENT) << "signature: info has no struct_size";
  }
  return give(result, error);
}

qplan_status qplan_plan_open_signed(qplan_plan* plan, const void* bytes, size_t size, uint32_t flags,
                                    const qplan_trust* trust, qplan_signature_info* info,
                                    qplan_error* error) {
  Error result;
  const qplan_trust known = qplan::known_fields(trust);
  qplan_signature_info found;
  if (plan != nullptr) memset(plan, 0, sizeof(*plan));
  if (plan == nullptr || bytes == nullptr || known.verify == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT) << "signature: plan, bytes or trust->verify is NULL";
    return give(result, error);
  }
  if (read_signature(bytes, size, &found, &result) < 0) return give(result, error);
  if (known.verify(known.user, found.key_id, found.message, sizeof(found.message), found.signature) != 1) {
    result.set(QPLAN_PLAN_CORRUPT) << "signature: it is not that of a trusted key, or the plan was changed";
    return give(result, error);
  }
  if (found.counter < known.min_counter) {
    result.set(QPLAN_PLAN_VERSION) << "signature: counter " << found.counter << ", expected at least "
                                   << known.min_counter
                                   << ": an older plan than one that was accepted before";
    return give(result, error);
  }
  if (info != nullptr && !qplan::fill_fields(found, info)) {
    result.set(QPLAN_INVALID_ARGUMENT) << "signature: info has no struct_size";
    return give(result, error);
  }
  // What was signed, and nothing after it.
  return qplan_plan_open(plan, bytes, static_cast<size_t>(found.plan_size), flags, error);
}
