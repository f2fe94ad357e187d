// What bounds the image decoder on hostile files: its heap, and checks of JPEG tables that it reads
// without one.
#ifndef QPLAN_TOOLS_DECODER_LIMITS_H_
#define QPLAN_TOOLS_DECODER_LIMITS_H_

#include <cstddef>
#include <cstdint>
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

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_DECODER_LIMITS_H_
