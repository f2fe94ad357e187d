/* signature.h -- plans that only their author can have made: checked before they are opened. C99 and C++17.
 *
 * A signature follows the plan in its file (format/README.md). It covers every byte of the plan, a counter,
 * and the name of the key. `qplan sign` appends it on a host, `qplan verify` checks it there. On a device the
 * application checks it with whatever verifies Ed25519 there (a library, the processor's own unit), through a
 * function: this library has no public-key cryptography. */
#ifndef QPLAN_SIGNATURE_H_
#define QPLAN_SIGNATURE_H_

#include <qplan/qplan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  QPLAN_SIGNATURE_BYTES = 64, /* of Ed25519 (RFC 8032) */
  QPLAN_KEY_ID_BYTES = 8,     /* the first bytes of the SHA-256 of the public key */
  QPLAN_SIGNED_MESSAGE_BYTES = 64
};

/* What a file says of its own signature: nothing of it is authentic until verify has said so. */
typedef struct qplan_signature_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t plan_size; /* bytes of the plan, before the signature */
  uint64_t counter;
  uint8_t key_id[QPLAN_KEY_ID_BYTES];
  uint8_t message[QPLAN_SIGNED_MESSAGE_BYTES]; /* that the signature is of */
  uint8_t signature[QPLAN_SIGNATURE_BYTES];
} qplan_signature_info;
/* Reads the signature that follows the plan, and computes the message. Returns QPLAN_NOT_FOUND if the plan
 * has no signature, QPLAN_PLAN_CORRUPT if the bytes do not begin like a plan, QPLAN_PLAN_VERSION if it is of
 * a version or needs a feature that this build does not know, QPLAN_INVALID_ARGUMENT if bytes or info is NULL
 * or info has no struct_size. error may be NULL. */
QPLAN_API qplan_status qplan_signature_read(const void* bytes, size_t size, qplan_signature_info* info,
                                            qplan_error* error);

typedef struct qplan_trust {
  uint32_t struct_size;
  uint32_t reserved;
  /* Anti-rollback: a plan with a lower counter is refused. The application keeps the counter of the newest
   * plan that it has accepted where an attacker cannot lower it. */
  uint64_t min_counter;
  void* user;
  /* 1 where signature is the Ed25519 signature of message by the key that key_id names, and that key is
   * trusted; else 0. */
  int32_t (*verify)(void* user, const uint8_t* key_id, const uint8_t* message, size_t message_size,
                    const uint8_t* signature);
} qplan_trust;
/* qplan_plan_open of bytes whose signature was checked first: nothing else of the plan is read before. info
 * (may be NULL) has the counter, to be kept as the next min_counter. QPLAN_NOT_FOUND where the plan is not
 * signed, QPLAN_PLAN_CORRUPT where the signature is wrong or nobody trusts its key, QPLAN_PLAN_VERSION where
 * the counter is too low, and what qplan_plan_open returns. */
QPLAN_API qplan_status qplan_plan_open_signed(qplan_plan* plan, const void* bytes, size_t size,
                                              uint32_t flags, const qplan_trust* trust,
                                              qplan_signature_info* info, qplan_error* error);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_SIGNATURE_H_ */
