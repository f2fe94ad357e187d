// Compiled without AVX-VNNI, so that its file takes the other encoding; nothing else may be included here.
#define conv2d_avxvnni conv2d_evexvnni
#include "kernels/conv2d/conv2d_avxvnni.cc"  // NOLINT: the same source, for another instruction set
