/* A stand-in for libcuda.so.1, for machines without a GPU: memory is the host's, and the one
   function that its modules have, twice_p0(x, y, n), is y = 2 x for one element a thread. It shows
   that the device behind the HAL calls the driver as its interface says. */
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

typedef unsigned long long address;
static int live;      /* allocations and handles that were not given back */
static void* current; /* context */

int fake_live(void) { return live; }

int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDriverGetVersion(int* version) { return *version = 12090, 0; }
int cuGetErrorString(int code, const char** text) {
  *text = code == 2 ? "out of memory" : code == 500 ? "named symbol not found" : "invalid value";
  return 0;
}
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, number == 0 ? 0 : 1; }
int cuDeviceGetName(char* name, int size, int device) {
  strncpy(name, "fake", (size_t)size);
  return device;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : -1;
  return device;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = 1 << 30, device; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = &current, ++live, device;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return --live, device; }
int cuCtxSetCurrent(void* context) { return current = context, context == &current ? 0 : 1; }
int cuMemAlloc_v2(address* at, size_t bytes) {
  if (current == 0) return 1;
  if (bytes > (1u << 30)) return 2;
  /* as the driver does */
  return *at = (address)aligned_alloc(256, (bytes + 255) / 256 * 256), ++live, 0;
}
int cuMemFree_v2(address at) { return free((void*)at), --live, 0; }
int cuMemcpyAsync(address to, address from, size_t bytes, void* stream) {
  if (current == 0 || stream == 0) return 1;
  return memcpy((void*)to, (void*)from, bytes), 0;
}
int cuModuleLoadData(void** module, const void* image) {
  if (memcmp(image, "fake", 4) != 0) return 1;
  return *module = malloc(1), ++live, 0;
}
int cuModuleUnload(void* module) { return free(module), --live, 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (module == 0 || strcmp(name, "twice_p0") != 0) return 500;
  return *function = (void*)&cuModuleGetFunction, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return function == (void*)&cuModuleGetFunction && attribute == 8 && value > 0 ? 0 : 1;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned scratch, void* stream, void** arguments,
                   void** extra) {
  if (function != (void*)&cuModuleGetFunction || current == 0 || stream == 0 || extra != 0 ||
      y * z * ty * tz != 1 || scratch != 65536)
    return 1;
  const float* from = *(const float**)arguments[0];
  float* to = *(float**)arguments[1];
  const long long n = *(const long long*)arguments[2];
  for (long long i = 0; i < (long long)blocks * threads; ++i)
    if (i < n) to[i] = 2 * from[i];
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { return *stream = malloc(1 + flags), ++live, 0; }
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return priority < -5 || priority > 0 || flags != 1 ? 1 : cuStreamCreate(stream, flags);
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }
int cuCtxSynchronize(void) { return current ? 0 : 1; }
/* Everything has run when it was asked for: waits and events pass. */
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return stream && event && flags == 0 ? 0 : 1;
}
int cuEventQuery(void* event) { return event ? 0 : 1; }
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  if (stream == 0) return 1;
  return function(argument), 0;
}
int cuStreamDestroy_v2(void* stream) { return free(stream), --live, 0; }
int cuStreamSynchronize(void* stream) { return stream ? 0 : 1; }
int cuEventCreate(void** event, unsigned flags) { return *event = malloc(1 + flags), ++live, 0; }
int cuEventDestroy_v2(void* event) { return free(event), --live, 0; }
int cuEventRecord(void* event, void* stream) { return event && stream ? 0 : 1; }
int cuEventSynchronize(void* event) { return event ? 0 : 1; }
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  return *ms = 0.5f, begin && end ? 0 : 1;
}
