/* A device in one file: the host's memory, one thread. Code is linked by the system's compiler and
 * opened with dlopen; a real device has its own loader. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heddle/runtime/hal.h>

typedef void kernel(void* const*, const int64_t*, int64_t, int64_t, void*);

static _Thread_local char message[200];
static int fail(const char* text) {
  snprintf(message, sizeof message, "%s", text);
  return 1;
}
static const char* last_error(void* device) { return (void)device, message; }

static int allocate(void* device, int64_t bytes, void** memory) {
  (void)device;
  if (bytes < 0 || bytes > (int64_t)1 << 46) return fail("too many bytes");
  *memory = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
  return *memory ? 0 : fail("no memory");
}
static void release(void* device, void* memory, int64_t bytes) {
  (void)device, (void)bytes;
  free(memory);
}
static int copy(void* device, void* to, const void* from, int64_t bytes) {
  (void)device;
  if (bytes > 0) memcpy(to, from, (size_t)bytes);
  return 0;
}

static int load(void* device, const uint8_t* object, size_t bytes, heddle_hal_program** program) {
  (void)device;
  char folder[] = "/tmp/toy-XXXXXX", name[64], command[200];
  if (!mkdtemp(folder)) return fail("cannot make a folder in /tmp");
  snprintf(name, sizeof name, "%s/code.o", folder);
  FILE* file = fopen(name, "wb");
  int wrote = file && fwrite(object, 1, bytes, file) == bytes;
  if (file) wrote = fclose(file) == 0 && wrote;
  snprintf(command, sizeof command, "cc -shared -o %s/code.so %s/code.o -lm 2>/dev/null", folder,
           folder);
  void* opened = NULL;
  if (wrote && system(command) == 0) {
    snprintf(name, sizeof name, "%s/code.so", folder);
    opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) return fail("cannot remove a folder in /tmp");
  if (!opened) return fail("the object is damaged");
  *program = opened;
  return 0;
}
static void unload(void* device, heddle_hal_program* program) {
  (void)device;
  dlclose(program);
}
static int find(void* device, heddle_hal_program* program, const char* symbol,
                const void** function) {
  (void)device;
  *function = dlsym(program, symbol);
  return *function ? 0 : fail("no such function");
}
static int launch(void* device, const heddle_hal_launch* work) {
  (void)device;
  kernel* function = (kernel*)work->function;
  function(work->buffers, work->dims, 0, work->tasks, work->scratch);
  return 0;
}
static int wait(void* device) { return (void)device, 0; }
static int64_t worker_count(void* device) { return (void)device, 1; }

__attribute__((visibility("default"))) const heddle_hal* heddle_device(void) {
  static const heddle_hal hal = {
      .struct_bytes = sizeof(heddle_hal),
      .version = HEDDLE_HAL_VERSION,
      .name = "toy",
      .last_error = last_error,
      .allocate = allocate,
      .release = release,
      .copy = copy,
      .load = load,
      .unload = unload,
      .find = find,
      .launch = launch,
      .wait = wait,
      .worker_count = worker_count,
  };
  return &hal;
}
