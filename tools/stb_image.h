// stb_image as this project configures it; stb_image.cc holds the implementation.
#ifndef TOOLS_STB_IMAGE_H_
#define TOOLS_STB_IMAGE_H_

#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
// A hostile header may claim any size; this bounds what is allocated for it.
#define STBI_MAX_DIMENSIONS 16384
#include <stb/stb_image.h>

#endif  // TOOLS_STB_IMAGE_H_
