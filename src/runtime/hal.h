// The HAL: the interface of a device, one versioned struct of C functions. `cpu` is in
// cpu_device.h; other devices fill the same struct.
//
// Contract. The device writes `struct_bytes` and `version`; a reader looks only at members that lie
// inside struct_bytes (heddle_hal_has), so members may be added at the end without a new version.
// Functions that return int return 0, or nonzero on an error; then last_error() describes it (one
// line, of the calling thread, valid until its next call). Every function may be called from any
// thread; work that one thread puts on a stream runs in that order, even if other threads use the
// stream. All memory is 64-byte aligned.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_HAL_VERSION 1

typedef struct heddle_hal_program heddle_hal_program;      // loaded code
typedef struct heddle_hal_stream heddle_hal_stream;        // launches and copies in order
typedef struct heddle_hal_event heddle_hal_event;          // a point in a stream
typedef struct heddle_hal_recording heddle_hal_recording;  // launches and copies to replay

// How a launch uses one of its buffers: for devices that check accesses.
typedef struct heddle_hal_access {
  int64_t bytes;  // from the buffer's address
  int32_t reads, writes;
} heddle_hal_access;

// One launch of one phase. The executor fills it once and reuses it in every run.
typedef struct heddle_hal_launch {
  const void* function;  // from find()
  void* const* buffers;  // device addresses, in the order of the kernel ABI
  const int64_t* dims;   // run-time dimensions
  int64_t tasks;         // [0, tasks) are run
  int32_t serial;        // nonzero: not worth splitting
  char* scratch;         // worker w has scratch + w * scratch_stride_bytes
  int64_t scratch_stride_bytes;
  // Counts, so that a device may copy the arguments and run the launch later: `buffers` and `dims`
  // may change as soon as launch() returns.
  int64_t buffer_count, dim_count;
  const heddle_hal_access* accesses;  // by buffer; null: unknown
} heddle_hal_launch;

typedef struct heddle_hal {
  size_t struct_bytes;  // sizeof(heddle_hal) of the device's header
  int32_t version;      // HEDDLE_HAL_VERSION
  const char* name;     // "cpu", "cuda:0"
  void* device;         // first argument of every function

  // Required.
  const char* (*last_error)(void* device);
  int (*allocate)(void* device, int64_t bytes, void** memory);           // contents unspecified
  void (*release)(void* device, void* memory, int64_t bytes);            // bytes: as allocated
  int (*copy)(void* device, void* to, const void* from, int64_t bytes);  // in the order of launches
  int (*load)(void* device, const uint8_t* object, size_t object_bytes,
              heddle_hal_program** program);
  void (*unload)(void* device, heddle_hal_program* program);
  int (*find)(void* device, heddle_hal_program* program, const char* symbol, const void** function);
  int (*launch)(void* device, const heddle_hal_launch* launch);  // may return before it has run
  int (*wait)(void* device);                                     // for all launches and copies
  int64_t (*worker_count)(void* device);                         // number of scratch areas

  // Optional: null if the device needs no notice of runs.
  void (*begin_run)(void* device);  // many launches follow until end_run()
  void (*end_run)(void* device);

  // Nonzero: the host cannot access memory from allocate(), and kernels cannot access the host's;
  // copy() copies in either direction.
  int32_t own_memory;

  // Optional, all or none: several streams. Work on one stream runs in order; only events order
  // work of different streams. launch() and copy() use a stream of their own; wait() waits for all
  // streams. All work of a stream has run before it is destroyed (the caller has called wait()). An
  // event may be recorded repeatedly: a wait refers to the last record requested before it, even if
  // others follow. A stream of higher priority goes first where a device can choose.
  int (*create_stream)(void* device, int32_t priority, heddle_hal_stream** stream);
  void (*destroy_stream)(void* device, heddle_hal_stream* stream);
  int (*launch_on)(void* device, heddle_hal_stream* stream, const heddle_hal_launch* launch);
  int (*copy_on)(void* device, heddle_hal_stream* stream, void* to, const void* from,
                 int64_t bytes);
  int (*create_event)(void* device, heddle_hal_event** event);
  void (*destroy_event)(void* device, heddle_hal_event* event);
  // A null stream means that of launch() and copy().
  int (*record)(void* device, heddle_hal_stream* stream, heddle_hal_event* event);
  int (*wait_for)(void* device, heddle_hal_stream* stream, heddle_hal_event* event);
  int (*is_done)(void* device, heddle_hal_event* event, int32_t* done);  // never recorded: done

  // Optional: bytes in use and total bytes.
  int (*memory)(void* device, int64_t* used_bytes, int64_t* capacity_bytes);

  // Optional, with streams (null: that of launch() and copy()). Calls function(argument) exactly
  // once, when all work now on the stream has run; later work need not wait for the call. Calls of
  // one stream come in order, on any thread, possibly from within a function of the device, and
  // before any later wait() returns. The functions are short and must not call the device. If the
  // device breaks down some calls may never come; none comes after a wait() that failed.
  int (*call_on)(void* device, heddle_hal_stream* stream, void (*function)(void* argument),
                 void* argument);

  // Optional, all or none: recordings. Between begin_recording() and end_recording(), both on one
  // thread, the work that this thread puts on the device's own stream (launches, and copies within
  // the device) is kept and does not run. Other threads are not affected. A second stream, used by
  // nobody else, is recorded as well once it waits for an event recorded this way; before the end
  // the device's own stream must wait for an event after all work on that stream. A replay need
  // only keep the order that streams and events give. Meanwhile this thread must not use the device
  // for anything else; waiting on the host and beginning another recording are errors.
  int (*begin_recording)(void* device);
  // Ends the recording, even after errors. Nonzero, and no recording: some work cannot be recorded;
  // none of the recorded work has run or will run.
  int (*end_recording)(void* device, heddle_hal_recording** recording);
  // Puts the whole recording on the device's own stream, in order, with the arguments that were
  // recorded (addresses and dims, not the contents of memory). Any number of times, from any
  // thread. The launched functions must stay loaded.
  int (*replay)(void* device, heddle_hal_recording* recording);
  // May be called while a replay runs; the replay then runs to its end.
  void (*destroy_recording)(void* device, heddle_hal_recording* recording);
} heddle_hal;

// Whether a device has a member: it is inside the device's struct and not null.
#define heddle_hal_has(hal, member)                                               \
  ((hal)->struct_bytes >= offsetof(heddle_hal, member) + sizeof((hal)->member) && \
   (hal)->member != 0)

#ifdef __cplusplus
}
#endif
