// Compiled without AVX-VNNI, so that its file takes the other encoding; nothing else may be included here.
#define fully_connected_avxvnni fully_connected_evexvnni
#include "kernels/fully_connected/fully_connected_avxvnni.cc"  // NOLINT: the same source, for another instruction set
