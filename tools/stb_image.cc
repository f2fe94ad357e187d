#define STB_IMAGE_IMPLEMENTATION
#include "tools/stb_image.h"
