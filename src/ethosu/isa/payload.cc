#include "src/ethosu/isa/payload.h"

namespace qplan::ethosu {
namespace {

enum Action : uint32_t { kActionConfig = 1, kActionStream = 2, kActionNop = 5 };
constexpr uint32_t kRelease = 0x10;  // parameter of CONFIG

}  // namespace

Problem read_payload(const uint8_t* bytes, uint64_t size, Payload* payload) {
  *payload = {};
  if (size < 4 || size % 4 != 0) return {"a payload is a multiple of 4 bytes", static_cast<int64_t>(size), 4};
  if (load_word(bytes) != kPayloadMagic)
    return {"a payload begins with 'COP1'", load_word(bytes), kPayloadMagic};
  for (uint64_t at = 4; at < size;) {
    const uint32_t action = load_word(bytes + at);
    at += 4;
    switch (action & 0xff) {
      case kActionConfig:
        if (size - at < 8) return {"a payload ends within CONFIG", static_cast<int64_t>(size - at), 8};
        payload->config_word = load_word(bytes + at);
        payload->architecture = load_word(bytes + at + 4);
        payload->has_config = true;
        at += 8;
        break;
      case kActionNop:
        break;
      case kActionStream: {
        const uint32_t words = (action >> 8 & 0xff) << 16 | action >> 16;
        if (payload->stream != nullptr) return {"a payload has one command stream", 2, 1};
        if (at % kPayloadAlignment != 0)
          return {"a command stream is aligned to 16 bytes", static_cast<int64_t>(at), kPayloadAlignment};
        if (words == 0 || words > (size - at) / 4)
          return {"a command stream ends after its payload", words, static_cast<int64_t>((size - at) / 4)};
        payload->stream = bytes + at;
        payload->stream_words = words;
        at += uint64_t{words} * 4;
        break;
      }
      default:
        return {"a payload has an unknown driver action", action & 0xff, 0};
    }
  }
  if (!payload->has_config) return {"a payload has no CONFIG", 0, 0};
  if (payload->stream == nullptr) return {"a payload has no command stream", 0, 0};
  if (!is_known_architecture(payload->architecture))
    return {"a payload is made for another architecture", payload->architecture, kArchitecture};
  return {};
}

uint64_t payload_bytes(uint32_t stream_words) { return kStreamOffset + uint64_t{stream_words} * 4; }

void write_payload_header(const Config& config, uint32_t stream_words, uint8_t* to) {
  store_word(kPayloadMagic, to);
  store_word(kActionConfig | kRelease << 16, to + 4);
  store_word(config.config_word, to + 8);
  store_word(kArchitecture, to + 12);
  for (uint32_t at = 16; at < kStreamOffset - 4; at += 4) store_word(kActionNop, to + at);
  store_word(kActionStream | (stream_words >> 16) << 8 | (stream_words & 0xffff) << 16,
             to + kStreamOffset - 4);
}

}  // namespace qplan::ethosu
