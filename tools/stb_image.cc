#define STB_IMAGE_IMPLEMENTATION
#include "tools/image_decoder.h"
