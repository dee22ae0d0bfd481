/* A stand-in for libcuda.so.1, for machines without a GPU: memory is the host's, and the one
   function that its modules have, twice_p0(x, y, n), is y = 2 x for one element a thread. It shows
   that the device behind the HAL calls the driver as its interface says. */
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

typedef unsigned long long address;
static int live;      /* allocations and handles that were not given back */
static void* current; /* context */

/* What is kept while a stream is captured: launches, and copies. */
struct node {
  const float* from;
  float* to;
  long long count; /* of elements, or bytes of a copy */
  int copies;
};
struct graph {
  int count;
  struct node nodes[64];
};
static struct graph* captured; /* one at a time */
static void* captured_stream;  /* null: none */
static void* joined[8];        /* streams behind it, and events of the capture */
static int joined_count;
static int spoilt;                        /* a call came that a capture does not allow */
static _Thread_local int captures_itself; /* this thread began it */

static int refuse(void) { return captures_itself ? (spoilt = 1, 900) : 0; }
static int put(void* stream, struct node node);
static int is_captured(void* stream_or_event) {
  for (int i = 0; i < joined_count; ++i)
    if (joined[i] == stream_or_event) return 1;
  return stream_or_event == captured_stream && captured_stream != 0;
}
static int join(void* stream_or_event) {
  if (is_captured(stream_or_event)) return 0;
  return joined_count < 8 ? (joined[joined_count++] = stream_or_event, 0) : 2;
}

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
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuMemAlloc_v2(address* at, size_t bytes) {
  if (current == 0) return 1;
  if (refuse()) return 900;
  if (bytes > (1u << 30)) return 2;
  /* as the driver does */
  return *at = (address)aligned_alloc(256, (bytes + 255) / 256 * 256), ++live, 0;
}
int cuMemFree_v2(address at) { return refuse() ? 900 : (free((void*)at), --live, 0); }
int cuMemcpyAsync(address to, address from, size_t bytes, void* stream) {
  if (current == 0 || stream == 0) return 1;
  return put(stream, (struct node){(const float*)from, (float*)to, (long long)bytes, 1});
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
  const long long all = (long long)blocks * threads;
  return put(stream, (struct node){from, to, n < all ? n : all, 0});
}
static int run(const struct node* node) {
  if (node->copies) return memcpy(node->to, node->from, (size_t)node->count), 0;
  for (long long i = 0; i < node->count; ++i) node->to[i] = 2 * node->from[i];
  return 0;
}
static int put(void* stream, struct node node) {
  if (!is_captured(stream)) return run(&node);
  if (captured->count == 64) return 2;
  return captured->nodes[captured->count++] = node, 0;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  if (stream == 0 || mode != 1 || captured_stream != 0) return 1;
  captured_stream = stream;
  captured = calloc(1, sizeof *captured);
  spoilt = 0;
  return captures_itself = 1, 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  if (stream != captured_stream || !captures_itself) return 1;
  captured_stream = 0;
  captures_itself = joined_count = 0;
  if (spoilt) return free(captured), *graph = 0, 901;
  return *graph = captured, ++live, 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  if (graph == 0 || flags != 0) return 1;
  *executable = malloc(sizeof(struct graph));
  return memcpy(*executable, graph, sizeof(struct graph)), ++live, 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  const struct graph* graph = executable;
  if (current == 0 || graph == 0 || stream == 0 || is_captured(stream)) return 1;
  for (int i = 0; i < graph->count; ++i) run(&graph->nodes[i]);
  return 0;
}
int cuGraphDestroy(void* graph) { return free(graph), --live, 0; }
int cuGraphExecDestroy(void* executable) { return free(executable), --live, 0; }
int cuStreamCreate(void** stream, unsigned flags) { return *stream = malloc(1 + flags), ++live, 0; }
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return priority < -5 || priority > 0 || flags != 1 ? 1 : cuStreamCreate(stream, flags);
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }
int cuCtxSynchronize(void) {
  if (captured_stream != 0) return spoilt = 1, 900;
  return current ? 0 : 1;
}
/* Everything has run when it was asked for: waits and events pass. */
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  if (stream == 0 || event == 0 || flags != 0) return 1;
  if (is_captured(event)) return join(stream);
  return is_captured(stream) ? 905 : 0;
}
int cuEventQuery(void* event) { return refuse() ? 900 : event ? 0 : 1; }
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  if (stream == 0) return 1;
  return function(argument), 0;
}
int cuStreamDestroy_v2(void* stream) { return is_captured(stream) ? 1 : (free(stream), --live, 0); }
int cuStreamSynchronize(void* stream) { return refuse() ? 900 : stream ? 0 : 1; }
int cuEventCreate(void** event, unsigned flags) { return *event = malloc(1 + flags), ++live, 0; }
int cuEventDestroy_v2(void* event) { return free(event), --live, 0; }
int cuEventRecord(void* event, void* stream) {
  if (event == 0 || stream == 0) return 1;
  return is_captured(stream) ? join(event) : 0;
}
int cuEventSynchronize(void* event) { return refuse() ? 900 : event ? 0 : 1; }
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  return *ms = 0.5f, begin && end ? 0 : 1;
}
