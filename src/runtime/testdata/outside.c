// Wants a symbol that is not on the list (outside.o, made as kernels.o).
#include <stdint.h>
float expf(float);
__attribute__((visibility("default"))) void bad_p0(void* const* buffers, const int64_t* dims,
                                                   int64_t begin, int64_t end, void* scratch) {
  *(float*)buffers[0] = expf(*(float*)buffers[0]);
}
