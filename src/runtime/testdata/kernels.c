// Kernels by the kernel ABI for the tests of this folder. kernels.o was made of this file by
//   gcc -O2 -c -fPIC -fvisibility=hidden -fcf-protection=none -march=x86-64 kernels.c -o kernels.o
// A task is 16 floats.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KERNEL __attribute__((visibility("default")))
#define TASK 16

// out = a + b
KERNEL void add_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                   void* scratch) {
  const float *a = buffers[0], *b = buffers[1];
  float* out = buffers[2];
  for (int64_t i = begin * TASK; i < end * TASK; ++i) out[i] = a[i] + b[i];
}

// out = 2.5 * a, the factor from .rodata; in place is fine
KERNEL void scale_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                     void* scratch) {
  const float* a = buffers[0];
  float* out = buffers[1];
  for (int64_t i = begin * TASK; i < end * TASK; ++i) out[i] = 2.5f * a[i];
}

// Two phases: each task's sum into the workspace; then the total into out[0].
KERNEL void total_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                     void* scratch) {
  const float* a = buffers[0];
  float* parts = buffers[2];
  float* tile = scratch;  // 64 bytes a worker
  for (int64_t task = begin; task < end; ++task) {
    for (int i = 0; i < TASK; ++i) tile[i] = a[task * TASK + i];
    float sum = 0;
    for (int i = 0; i < TASK; ++i) sum += tile[i];
    parts[task] = sum;
  }
}
KERNEL void total_p1(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                     void* scratch) {
  float sum = 0;
  for (int64_t i = 0; i < dims[0]; ++i) sum += ((const float*)buffers[2])[i];
  *(float*)buffers[1] = sum;
}

// Reaches outside: memcpy of a length the compiler does not know, memset, memmove.
KERNEL void move_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                    void* scratch) {
  size_t bytes = (size_t)(end - begin) * TASK * sizeof(float);
  char* out = (char*)buffers[1] + begin * TASK * sizeof(float);
  memset(out, 0, bytes);
  memcpy(out, (const char*)buffers[0] + begin * TASK * sizeof(float), bytes);
  memmove(out + 1, out, bytes - 1);
}

// A table of addresses (.data.rel.ro, R_X86_64_64) and one of numbers (.rodata, PC32).
static float one(float x) { return x + 1; }
static float two(float x) { return x * 3; }
static float (*const kFunctions[])(float) = {one, two, one};
static const float kTable[5] = {1, 10, 100, 1000, 10000};
KERNEL void table_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                     void* scratch) {
  const float* a = buffers[0];
  float* out = buffers[1];
  for (int64_t i = begin * TASK; i < end * TASK; ++i)
    out[i] = kFunctions[dims[0] % 3](a[i]) + kTable[(i + dims[0]) % 5];
}

KERNEL void nothing_p0(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                       void* scratch) {}
