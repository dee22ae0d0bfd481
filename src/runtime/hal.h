// The HAL: what a device must do for us, as one versioned struct of C functions. `cpu` is in
// cpu_device.h; other devices fill the same struct.
//
// Contract. The device writes `struct_bytes` and `version`; a reader looks only at members that lie
// inside struct_bytes (heddle_hal_has), so members may be added at the end without a new version.
// Functions that return int give 0, or nonzero after which last_error() says what was wrong (one
// line, of the calling thread, valid until its next call). Every function may be called from any
// thread; what one thread puts on a stream runs in that order, even where others use the stream.
// All memory is 64-byte aligned.
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
typedef struct heddle_hal_recording heddle_hal_recording;  // launches and copies, to be run again

// What a launch does with one of its buffers: for devices that check it.
typedef struct heddle_hal_access {
  int64_t bytes;  // from the buffer's address on
  int32_t reads, writes;
} heddle_hal_access;

// One launch of one phase. The executor fills it once and launches it every run.
typedef struct heddle_hal_launch {
  const void* function;  // from find()
  void* const* buffers;  // device addresses, in the order of the kernel ABI
  const int64_t* dims;   // run-time dimensions
  int64_t tasks;         // [0, tasks) are run
  int32_t serial;        // nonzero: not worth splitting
  char* scratch;         // worker w has scratch + w * scratch_stride_bytes
  int64_t scratch_stride_bytes;
  // How many there are, so that a device may run the launch later than it was given; buffers and
  // dims are the caller's again when launch() returns.
  int64_t buffer_count, dim_count;
  const heddle_hal_access* accesses;  // by buffer; null: not told
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
  int64_t (*worker_count)(void* device);                         // copies of scratch

  // Optional: null where the device has nothing to do.
  void (*begin_run)(void* device);  // launches follow closely, until
  void (*end_run)(void* device);

  // Nonzero: the host cannot read what allocate() gives, and kernels cannot read the host's memory;
  // copy() goes between the two, either way.
  int32_t own_memory;

  // Optional, all or none: several streams. What is on one runs in its order; between streams only
  // events order anything. launch() and copy() are on a stream of their own; wait() waits for all.
  // A stream that is destroyed has run (wait() came before); an event may be recorded again and
  // again: a wait stands for the last record that was asked for before it, whatever follows. A
  // higher priority goes first where a device can choose.
  int (*create_stream)(void* device, int32_t priority, heddle_hal_stream** stream);
  void (*destroy_stream)(void* device, heddle_hal_stream* stream);
  int (*launch_on)(void* device, heddle_hal_stream* stream, const heddle_hal_launch* launch);
  int (*copy_on)(void* device, heddle_hal_stream* stream, void* to, const void* from,
                 int64_t bytes);
  int (*create_event)(void* device, heddle_hal_event** event);
  void (*destroy_event)(void* device, heddle_hal_event* event);
  // Null as a stream: that of launch() and copy().
  int (*record)(void* device, heddle_hal_stream* stream, heddle_hal_event* event);
  int (*wait_for)(void* device, heddle_hal_stream* stream, heddle_hal_event* event);
  int (*is_done)(void* device, heddle_hal_event* event, int32_t* done);  // never recorded: done

  // Optional: bytes in use and bytes there are.
  int (*memory)(void* device, int64_t* used_bytes, int64_t* capacity_bytes);

  // Optional, with streams (null as one: that of launch() and copy()). Calls function(argument)
  // once, when all that is on the stream now has run; what is put on it later need not wait for the
  // call. Calls of one stream come in their order, on any thread, also from within a function of
  // the device, and before a wait() that is asked for later returns. They are short and call
  // nothing of the device. Where the device breaks down some never come; none comes behind a wait()
  // that failed.
  int (*call_on)(void* device, heddle_hal_stream* stream, void (*function)(void* argument),
                 void* argument);

  // Optional, all or none: recordings. From begin_recording() to end_recording(), both of one
  // thread, what this thread puts on the device's own stream is kept and does not run: launches,
  // and copies within the device. Other threads go on as ever. So it is with a stream, which
  // nobody else uses, from where it waits for an event that was recorded so; before the end the
  // device's own stream waits for an event behind all that was put there, and a replay need not
  // keep more order than these events do. Meanwhile this thread asks the device for nothing else;
  // to wait on the host, and to begin another recording, are errors.
  int (*begin_recording)(void* device);
  // Ends it, whatever went wrong meanwhile. Nonzero, and no recording: something that was put there
  // cannot be recorded; what was asked for meanwhile has then not run and never will.
  int (*end_recording)(void* device, heddle_hal_recording** recording);
  // Puts all of it on the device's own stream, in its order, with the arguments that it was
  // recorded with (addresses and dims, not what lies there). As often as wanted, from any thread.
  // The functions that it launches stay loaded meanwhile.
  int (*replay)(void* device, heddle_hal_recording* recording);
  // May still be running: what was asked for runs to its end.
  void (*destroy_recording)(void* device, heddle_hal_recording* recording);
} heddle_hal;

// Whether a device has a member: it lies inside its struct and is not null.
#define heddle_hal_has(hal, member)                                               \
  ((hal)->struct_bytes >= offsetof(heddle_hal, member) + sizeof((hal)->member) && \
   (hal)->member != 0)

#ifdef __cplusplus
}
#endif
