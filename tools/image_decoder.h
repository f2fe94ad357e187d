// The decoder of images: stb_image as this project configures it (stb_image.cc holds the implementation), and
// what bounds it on hostile files (its heap, checks of JPEG tables that it reads without one), and what it
// does not notice of damaged ones.
#ifndef QPLAN_TOOLS_IMAGE_DECODER_H_
#define QPLAN_TOOLS_IMAGE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qplan::tools {

// The heap of the image decoder: a hostile file decides how much is asked for, this bounds how much is given.

// Work as malloc, realloc and free, within the budget of the calling thread; null beyond it. Memory is freed
// in the thread that allocated it.
void* decoder_allocate(size_t bytes);
void* decoder_reallocate(void* memory, size_t bytes);
void decoder_free(void* memory);

// While one exists its thread may hold so many bytes at a time; otherwise none.
class DecoderBudget {
 public:
  explicit DecoderBudget(size_t bytes);
  ~DecoderBudget();
  DecoderBudget(const DecoderBudget&) = delete;
  DecoderBudget& operator=(const DecoderBudget&) = delete;
  // Whether an allocation was refused because of the budget.
  [[nodiscard]] bool exceeded() const;
};

// Checks of JPEG tables that stb_image reads without a check.

// Whether the decoder takes the file for a JPEG: it begins with a JPEG's marker, which bytes of 255 may
// precede.
[[nodiscard]] bool is_jpeg(const std::vector<uint8_t>& file);

// False where a Huffman table of the file declares more than 256 codes, which the decoder would write beyond
// its own tables, or where there are more segments of tables than 1000, each of which takes time. Files that
// are no JPEG have none.
[[nodiscard]] bool has_sound_huffman_tables(const std::vector<uint8_t>& file);

// What a BMP or PNG lacks, or has wrong, although the decoder may make a picture of it: pixels that are not
// in the file, chunks without their checksum or end. "" where nothing is known to be wrong.
[[nodiscard]] std::string image_damage(const std::vector<uint8_t>& file);

}  // namespace qplan::tools

// ---- stb_image, which decodes within a DecoderBudget

#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
// Longest side in pixels: tensor.h's kMaxImageSide.
#define STBI_MAX_DIMENSIONS 16384
#define STBI_MALLOC(bytes) qplan::tools::decoder_allocate(bytes)
#define STBI_REALLOC(memory, bytes) qplan::tools::decoder_reallocate(memory, bytes)
#define STBI_FREE(memory) qplan::tools::decoder_free(memory)
#include <stb/stb_image.h>

#endif  // QPLAN_TOOLS_IMAGE_DECODER_H_
