// Checks of JPEG tables that stb_image reads without a check.
#ifndef TOOLS_JPEG_TABLES_H_
#define TOOLS_JPEG_TABLES_H_

#include <cstdint>
#include <vector>

namespace qplan::tools {

// Whether the decoder takes the file for a JPEG: it begins with a JPEG's marker, which bytes of 255 may
// precede.
[[nodiscard]] bool is_jpeg(const std::vector<uint8_t>& file);

// False where a Huffman table of the file declares more than 256 codes, which the decoder would write beyond
// its own tables, or where there are more segments of tables than 1000, each of which takes time. Files that
// are no JPEG have none.
[[nodiscard]] bool has_sound_huffman_tables(const std::vector<uint8_t>& file);

}  // namespace qplan::tools

#endif  // TOOLS_JPEG_TABLES_H_
