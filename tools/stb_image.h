// stb_image as this project configures it; stb_image.cc holds the implementation. It decodes within a
// DecoderBudget.
#ifndef TOOLS_STB_IMAGE_H_
#define TOOLS_STB_IMAGE_H_

#include "tools/decoder_limits.h"

#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
// Longest side in pixels: input.h's kMaxImageSide.
#define STBI_MAX_DIMENSIONS 16384
#define STBI_MALLOC(bytes) qplan::tools::decoder_allocate(bytes)
#define STBI_REALLOC(memory, bytes) qplan::tools::decoder_reallocate(memory, bytes)
#define STBI_FREE(memory) qplan::tools::decoder_free(memory)
#include <stb/stb_image.h>

#endif  // TOOLS_STB_IMAGE_H_
