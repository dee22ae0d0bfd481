// Has writable data (state.o, made as kernels.o).
#include <stdint.h>
static int64_t count = 5;
__attribute__((visibility("default"))) void state_p0(void* const* buffers, const int64_t* dims,
                                                     int64_t begin, int64_t end, void* scratch) {
  *(int64_t*)buffers[0] = ++count;
}
