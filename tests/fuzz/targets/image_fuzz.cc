// A picture, as `qplan run --input` takes it: decoded, made grey, resized. Mutants of PNG files are made of
// chunks whose checksums are right, and of pixel rows that are compressed again.
#include <zlib.h>

#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutators/numbers.h"
#include "tools/command.h"
#include "tools/image_decoder.h"
#include "tools/tensor.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 15;
// More are decoded too, but one input of a second takes the time of a thousand small ones.
constexpr int64_t kMostPixels = 1 << 15;

bool is_small(const uint8_t* data, size_t size) {
  if (!tools::has_sound_huffman_tables({data, data + size})) return true;  // the decoder may not see it
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(data, static_cast<int>(size), &width, &height, &channels) == 0) return true;
  return int64_t{width} * std::abs(int64_t{height}) <= kMostPixels;
}

constexpr char kPngMagic[] = "\x89PNG\r\n\x1a\n";

struct Chunk {
  std::string type, data;
};

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  return value;
}
std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::vector<Chunk> split_png(std::string_view png) {
  std::vector<Chunk> chunks;
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t length = std::min<size_t>(big_endian(png.substr(at, 4)), png.size() - at - 12);
    chunks.push_back({std::string(png.substr(at + 4, 4)), std::string(png.substr(at + 8, length))});
    at += 12 + length;
  }
  return chunks;
}

std::string join_png(const std::vector<Chunk>& chunks) {
  std::string png(kPngMagic, 8);
  for (const Chunk& chunk : chunks) {
    const std::string body = chunk.type + chunk.data;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    png +=
        big_endian(static_cast<uint32_t>(chunk.data.size())) + body + big_endian(static_cast<uint32_t>(crc));
  }
  return png;
}

// Empty where it does not inflate.
std::string inflated(const std::string& bytes) {
  std::string rows(1 << 20, '\0');
  uLongf size = rows.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  rows.resize(status == Z_OK ? size : 0);
  return rows;
}
std::string deflated(Random& random, const std::string& rows) {
  std::string bytes(compressBound(rows.size()), '\0');
  uLongf size = bytes.size();
  // Level 0: blocks that are stored.
  compress2(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
            rows.size(), static_cast<int>(random.integer(0, 9)));
  bytes.resize(size);
  return bytes;
}

void change_header(Random& random, std::string* header) {
  if (header->size() < 13) return mutate_bytes(random, header, 13);
  switch (random.integer(0, 4)) {
    case 0:
      header->replace(0, 4, big_endian(static_cast<uint32_t>(special_integer(random))));
      return;
    case 1:
      header->replace(4, 4, big_endian(static_cast<uint32_t>(special_integer(random))));
      return;
    case 2:
      (*header)[8] = "\x01\x02\x04\x08\x10"[random.integer(0, 4)];
      return;
    case 3:
      (*header)[9] = "\x00\x02\x03\x04\x06"[random.integer(0, 4)];
      return;
    default:
      (*header)[12] ^= 1;  // interlacing
  }
}

std::string mutate_png(Random& random, std::string_view png) {
  static const std::vector<std::string> kTypes = {"IHDR", "IDAT", "PLTE", "tRNS",
                                                  "IEND", "CgBI", "gAMA", "tEXt"};
  std::vector<Chunk> chunks = split_png(png);
  if (chunks.empty()) chunks.push_back({"IHDR", std::string(13, '\1')});
  const size_t at = index_below(random, chunks.size());
  Chunk& chunk = chunks[at];
  switch (random.integer(0, 7)) {
    case 0:
      chunks.erase(chunks.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1: {
      const Chunk copy = chunk;
      chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(index_below(random, chunks.size())), copy);
      break;
    }
    case 2:
      chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(at),
                    {random.pick(kTypes), std::string(static_cast<size_t>(random.integer(0, 20)), '\x7f')});
      break;
    case 3:
      change_header(random, &chunks[0].data);
      break;
    case 4:
    case 5:
      for (Chunk& rows : chunks) {
        if (rows.type != "IDAT") continue;
        std::string bytes = inflated(rows.data);
        mutate_bytes(random, &bytes, bytes.size() + 64);
        rows.data = deflated(random, bytes);
        break;
      }
      break;
    default:
      if (chunk.type == "IHDR") {
        change_header(random, &chunk.data);
      } else {
        mutate_bytes(random, &chunk.data, chunk.data.size() + 16);
      }
  }
  return join_png(chunks);
}

// JPEG: segments are taken out, repeated, and their contents changed; the lengths stay right.
std::string mutate_jpeg(Random& random, std::string_view jpeg) {
  std::vector<std::string> segments;
  size_t at = 2;
  while (at + 4 <= jpeg.size() && static_cast<uint8_t>(jpeg[at]) == 0xff &&
         static_cast<uint8_t>(jpeg[at + 1]) != 0xda) {
    const size_t length = 2 + (static_cast<size_t>(static_cast<uint8_t>(jpeg[at + 2])) << 8 |
                               static_cast<uint8_t>(jpeg[at + 3]));
    const size_t end = std::min(at + length, jpeg.size());
    segments.emplace_back(jpeg.substr(at, end - at));
    at = end;
  }
  std::string scan(jpeg.substr(std::min(at, jpeg.size())));
  if (segments.empty() || random.chance(0.3)) {
    mutate_bytes(random, &scan, scan.size() + 32);
  } else {
    const size_t which = index_below(random, segments.size());
    std::string& segment = segments[which];
    switch (random.integer(0, 5)) {
      case 0:
        segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(which));
        break;
      case 1: {
        const std::string copy = segment;
        segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(index_below(random, segments.size())),
                        copy);
        break;
      }
      case 2: {  // another kind: baseline, progressive, restart interval, ...
        static const std::string kMarkers = "\xc0\xc1\xc2\xc4\xdb\xdd\xe0\xee\xfe";
        if (segment.size() > 1) segment[1] = kMarkers[index_below(random, kMarkers.size())];
        break;
      }
      default:
        if (segment.size() <= 4) break;
        std::string body = segment.substr(4);
        mutate_bytes(random, &body, body.size() + 8);
        const size_t length = body.size() + 2;
        segment = segment.substr(0, 2) + static_cast<char>(length >> 8) + static_cast<char>(length) + body;
    }
  }
  std::string result = "\xff\xd8";
  for (const std::string& segment : segments) result += segment;
  return result + scan;
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan;
  if (size > fuzz::kMostBytes || !fuzz::is_small(data, size)) return -1;
  try {
    const tools::Image image = tools::decode_image(std::vector<uint8_t>(data, data + size), "input.png");
    FUZZ_CHECK(image.width > 0 && image.height > 0, "a picture of %u x %u pixels", image.width, image.height);
    FUZZ_CHECK(image.pixels.size() == size_t{3} * image.width * image.height, "%zu bytes",
               image.pixels.size());
    const tools::Image grey = tools::to_grey(image);
    FUZZ_CHECK(tools::resize_bilinear(grey, 7, 5).pixels.size() == 35, "a grey picture of 7 x 5 pixels");
    FUZZ_CHECK(tools::resize_bilinear(image, 4, 9).pixels.size() == 108, "a picture of 4 x 9 pixels");
  } catch (const tools::Failure& failure) {
    FUZZ_CHECK(failure.what()[0] != '\0', "a refusal without a reason");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const bool is_png = file.starts_with(std::string_view(kPngMagic, 8)),
             is_jpeg = file.starts_with("\xff\xd8");
  if ((!is_png && !is_jpeg) || random.chance(0.3)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string changed = is_png ? mutate_png(random, file) : mutate_jpeg(random, file);
  if (changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
