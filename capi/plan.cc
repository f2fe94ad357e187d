// qplan_plan_*: a plan file as a verified view. qplan_signature_*: what signatures of plans cover, and the
// way to open a plan that has one.
#include <string.h>

#include "format/container.h"
#include "format/plan_view.h"
#include "kernels/cpu.h"
#include "qplan/qplan.h"
#include "qplan/signature.h"
#include "src/base/error.h"
#include "src/base/sha256.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/session.h"
#include "src/runtime/structs.h"

using qplan::Error;
using qplan::format::count_of;
using qplan::format::Function;
using qplan::format::Header;
using qplan::format::PlanView;

namespace {

// Null when there is no such function or direction.
const flatbuffers::Vector<uint32_t>* io_list(const PlanView& view, const char* function, int direction) {
  if (!view.is_open()) return nullptr;
  const Function* found = view.find_function(function);
  if (found == nullptr) return nullptr;
  if (direction == QPLAN_INPUT) return found->inputs();
  return direction == QPLAN_OUTPUT ? found->outputs() : nullptr;
}

qplan_status finish(const Error& error, qplan_error* to) {
  error.copy_to(to);
  return error.status();
}

}  // namespace

qplan_status qplan_plan_open(qplan_plan* plan, const void* bytes, size_t size, uint32_t flags,
                             qplan_error* error) {
  Error result;
  PlanView view;
  if (plan != nullptr) qplan::put_view(view, plan);
  if (plan == nullptr || bytes == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT) << "plan: " << (plan == nullptr ? "plan" : "bytes") << " is NULL";
  } else if ((flags & ~uint32_t{QPLAN_PLAN_DIGEST}) != 0) {
    result.set(QPLAN_INVALID_ARGUMENT)
        << "plan: unknown flags " << flags << ", expected 0 or QPLAN_PLAN_DIGEST";
  } else if (view.open(bytes, size, (flags & QPLAN_PLAN_DIGEST) != 0, &result) == QPLAN_OK) {
    qplan::put_view(view, plan);
  }
  return finish(result, error);
}

uint32_t qplan_plan_io_count(const qplan_plan* plan, const char* function, int direction) {
  return count_of(io_list(qplan::get_view(plan), function, direction));
}

qplan_status qplan_plan_io_info(const qplan_plan* plan, const char* function, int direction, uint32_t index,
                                qplan_tensor_info* info) {
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || info == nullptr || (direction != QPLAN_INPUT && direction != QPLAN_OUTPUT)) {
    return QPLAN_INVALID_ARGUMENT;
  }
  if (view.find_function(function) == nullptr) return QPLAN_NOT_FOUND;
  const auto* list = io_list(view, function, direction);
  if (index >= count_of(list)) return QPLAN_INVALID_ARGUMENT;
  return qplan::fill_fields(qplan::tensor_info(view, list->Get(index)), info) ? QPLAN_OK
                                                                              : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_plan_get_info(const qplan_plan* plan, qplan_plan_info* info) {
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || info == nullptr) return QPLAN_INVALID_ARGUMENT;
  qplan_plan_info found = {};
  found.is_for_other_arch = qplan::is_for_other_arch(view) ? 1 : 0;
  found.target_options = qplan::target_options(view);
  found.runtime_arch = qplan::cpu_arch();
  found.version_major = view.header().version_major;
  found.version_minor = view.header().version_minor;
  return qplan::fill_fields(found, info) ? QPLAN_OK : QPLAN_INVALID_ARGUMENT;
}

qplan_status qplan_plan_work(const qplan_plan* plan, const char* function, const qplan_kernel_set* kernels,
                             uint64_t* work, qplan_error* error) {
  Error result;
  const PlanView view = qplan::get_view(plan);
  if (!view.is_open() || kernels == nullptr || work == nullptr) {
    result.set(QPLAN_INVALID_ARGUMENT) << "plan: "
                                       << (!view.is_open()      ? "the plan is not open"
                                           : kernels == nullptr ? "kernels is NULL"
                                                                : "work is NULL");
    return finish(result, error);
  }
  const Function* found = view.find_function(function);
  if (found == nullptr) {
    result.set(QPLAN_NOT_FOUND) << "plan: there is no function " << qplan::Quoted{function};
  } else {
    (void)qplan::function_work(view, *found, *kernels, work, &result);
  }
  return finish(result, error);
}

// ---- signatures

namespace {

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
  return finish(result, error);
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
    return finish(result, error);
  }
  if (read_signature(bytes, size, &found, &result) < 0) return finish(result, error);
  if (known.verify(known.user, found.key_id, found.message, sizeof(found.message), found.signature) != 1) {
    result.set(QPLAN_PLAN_CORRUPT) << "signature: it is not that of a trusted key, or the plan was changed";
    return finish(result, error);
  }
  if (found.counter < known.min_counter) {
    result.set(QPLAN_PLAN_VERSION) << "signature: counter " << found.counter << ", expected at least "
                                   << known.min_counter
                                   << ": an older plan than one that was accepted before";
    return finish(result, error);
  }
  if (info != nullptr && !qplan::fill_fields(found, info)) {
    result.set(QPLAN_INVALID_ARGUMENT) << "signature: info has no struct_size";
    return finish(result, error);
  }
  // What was signed, and nothing after it.
  return qplan_plan_open(plan, bytes, static_cast<size_t>(found.plan_size), flags, error);
}
