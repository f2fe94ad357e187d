/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/signature.h>

static int32_t trust_nobody(void* user, const uint8_t* key_id, const uint8_t* message, size_t message_size,
                            const uint8_t* signature) {
  (void)user;
  (void)key_id;
  (void)message;
  (void)message_size;
  (void)signature;
  return 0;
}

void header_signature(qplan_trust* trust);
void header_signature(qplan_trust* trust) {
  trust->struct_size = (uint32_t)sizeof(*trust);
  trust->verify = trust_nobody;
}
