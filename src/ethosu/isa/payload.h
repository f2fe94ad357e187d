// The driver payload ("COP1") around a command stream: what Arm's driver gets, and what it checks.
#ifndef QPLAN_SRC_ETHOSU_ISA_PAYLOAD_H_
#define QPLAN_SRC_ETHOSU_ISA_PAYLOAD_H_

#include <stddef.h>
#include <stdint.h>

#include "src/ethosu/isa/commands.h"
#include "src/ethosu/isa/config.h"

namespace qplan::ethosu {

constexpr uint32_t kPayloadMagic = 0x31504F43;  // "COP1"
constexpr uint32_t kArchitecture = 0x10060000;  // 1.0.6
constexpr uint32_t kPayloadAlignment = 16;
constexpr uint32_t kStreamOffset = 32;                // of the payloads written here
constexpr uint32_t kMaxStreamBytes = (1u << 24) - 4;  // the stream is smaller than 16 MiB
constexpr uint32_t kMaxStreamWords = kMaxStreamBytes / 4;

// A payload that was read. stream points into the caller's bytes, which may have any alignment.
struct Payload {
  uint32_t config_word = 0;
  uint32_t architecture = 0;
  bool has_config = false;
  const uint8_t* stream = nullptr;
  uint32_t stream_words = 0;
};

// Whether devices with kArchitecture run it: the same major number, and no later minor one.
constexpr bool is_known_architecture(uint32_t architecture) {
  return architecture >> 28 == kArchitecture >> 28 &&
         (architecture >> 20 & 0xff) <= (kArchitecture >> 20 & 0xff);
}

// The checks of Arm's driver, without those of the device's own registers.
[[nodiscard]] Problem read_payload(const uint8_t* bytes, uint64_t size, Payload* payload);
// Bytes of a payload with a stream of so many words, and its first kStreamOffset bytes.
uint64_t payload_bytes(uint32_t stream_words);
void write_payload_header(const Config& config, uint32_t stream_words, uint8_t* to);

constexpr uint32_t load_word(const uint8_t* at) {
  return at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}
constexpr void store_word(uint32_t word, uint8_t* at) {
  for (uint32_t b = 0; b < 4; ++b) at[b] = static_cast<uint8_t>(word >> (8 * b));
}

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_PAYLOAD_H_
