// Stands for the generated "kernels/isas.h" where the kernels over kernels/simd/generic.h are compiled for
// tests: `generic` is the only instruction set. Its number is below all of isa.def and not the reference's.
#define QPLAN_ISA_GENERIC 2
#define QPLAN_BUILT_ISAS(F, argument) F(generic, GENERIC, (0), argument)
#define QPLAN_BUILT_VECTOR_ISAS(F, argument) QPLAN_BUILT_ISAS(F, argument)
#define QPLAN_BUILT_OWN_ISAS(F, argument) QPLAN_BUILT_ISAS(F, argument)
#define QPLAN_BUILT_SCALAR_ISAS(F, argument)
#define QPLAN_FILE_dequantize_generic(name, isa)
#define QPLAN_FILE_depthwise_columns_generic(name, isa)
#define QPLAN_FILE_depthwise_dots_generic(name, isa)
#define QPLAN_FILE_elementwise_generic(name, isa)
#define QPLAN_FILE_mean_generic(name, isa)
#define QPLAN_FILE_pool2d_generic(name, isa)
#define QPLAN_FILE_arg_max_short_generic(name, isa)
#define QPLAN_FILE_resize_pixels_generic(name, isa)
