// Conformance checks for a HAL device, from outside: one class without a test library, so that
// devices of other source trees can use it. It needs one kernel in the device's own format.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hal.h"

namespace heddle::runtime {

// buffers[1][i] = factor * buffers[0][i] for each f32 of every task; dims[0] is their number.
struct ConformanceKernel {
  std::vector<uint8_t> object;
  std::string symbol;
  float factor = 2;
  int64_t elems_per_task = 16;
};

class HalConformance {
 public:
  HalConformance(const heddle_hal* hal, ConformanceKernel kernel)
      : hal_(*hal), kernel_(std::move(kernel)) {}

  // The violated rules, one line each; empty: the device conforms.
  std::vector<std::string> check() {
    if (!struct_is_complete()) return wrong_;
    memory();
    refusals();
    launches();
    if (heddle_hal_has(&hal_, create_stream)) streams();
    if (heddle_hal_has(&hal_, create_stream)) again();
    if (heddle_hal_has(&hal_, call_on)) calls();
    if (heddle_hal_has(&hal_, begin_recording)) recordings();
    return wrong_;
  }

 private:
  void want(bool holds, const char* rule) {
    if (!holds) wrong_.push_back(std::string(hal_.name) + ": " + rule);
  }
  bool ok(int status, const char* call) {
    if (status == 0) return true;
    const char* why = hal_.last_error(hal_.device);
    wrong_.push_back(std::string(hal_.name) + ": " + call + ": " + (why ? why : "no reason"));
    return false;
  }

  bool struct_is_complete() {
    const bool complete = hal_.version == HEDDLE_HAL_VERSION && heddle_hal_has(&hal_, last_error) &&
                          heddle_hal_has(&hal_, allocate) && heddle_hal_has(&hal_, release) &&
                          heddle_hal_has(&hal_, copy) && heddle_hal_has(&hal_, load) &&
                          heddle_hal_has(&hal_, unload) && heddle_hal_has(&hal_, find) &&
                          heddle_hal_has(&hal_, launch) && heddle_hal_has(&hal_, wait) &&
                          heddle_hal_has(&hal_, worker_count);
    if (!complete) wrong_.emplace_back("version, or a required function, is missing");
    const int streams = heddle_hal_has(&hal_, create_stream) +
                        heddle_hal_has(&hal_, destroy_stream) + heddle_hal_has(&hal_, launch_on) +
                        heddle_hal_has(&hal_, copy_on) + heddle_hal_has(&hal_, create_event) +
                        heddle_hal_has(&hal_, destroy_event) + heddle_hal_has(&hal_, record) +
                        heddle_hal_has(&hal_, wait_for) + heddle_hal_has(&hal_, is_done);
    if (complete) want(streams == 0 || streams == 9, "stream functions: all or none");
    const int recordings = heddle_hal_has(&hal_, begin_recording) +
                           heddle_hal_has(&hal_, end_recording) + heddle_hal_has(&hal_, replay) +
                           heddle_hal_has(&hal_, destroy_recording);
    if (complete) want(recordings == 0 || recordings == 4, "functions of recordings: all or none");
    if (complete && streams != 9)
      want(!heddle_hal_has(&hal_, call_on), "call_on comes with the stream functions");
    return complete;
  }

  float* block(int64_t elems) {
    void* memory = nullptr;
    if (!ok(hal_.allocate(hal_.device, elems * 4, &memory), "allocate")) return nullptr;
    want(reinterpret_cast<uintptr_t>(memory) % 64 == 0, "memory is 64-byte aligned");
    return static_cast<float*>(memory);
  }
  void release(float* memory, int64_t elems) {
    if (memory != nullptr) hal_.release(hal_.device, memory, elems * 4);
  }
  std::vector<float> read(const float* memory, int64_t elems) {
    std::vector<float> values(static_cast<size_t>(elems), -1);
    ok(hal_.copy(hal_.device, values.data(), memory, elems * 4), "copy to the host");
    ok(hal_.wait(hal_.device), "wait");
    return values;
  }
  static std::vector<float> numbers(int64_t elems, float first) {
    std::vector<float> values(static_cast<size_t>(elems));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i % 1000);
    return values;
  }

  void memory() {
    int64_t used_before = 0, capacity = 0, used = 0;
    const bool counts = heddle_hal_has(&hal_, memory);
    if (counts) ok(hal_.memory(hal_.device, &used_before, &capacity), "memory");
    for (const int64_t elems : {int64_t{1}, int64_t{1000}, int64_t{1} << 20}) {
      float *a = block(elems), *b = block(elems);
      if (a == nullptr || b == nullptr) return release(a, elems), release(b, elems);
      const std::vector<float> values = numbers(elems, 3);
      ok(hal_.copy(hal_.device, a, values.data(), elems * 4), "copy from the host");
      ok(hal_.copy(hal_.device, b, a, elems * 4), "copy on the device");
      want(read(b, elems) == values, "copies keep their order and their bytes");
      if (counts) {
        ok(hal_.memory(hal_.device, &used, &capacity), "memory");
        want(used >= used_before + 8 * elems && used <= capacity, "memory() counts what is used");
      }
      release(a, elems);
      release(b, elems);
    }
    ok(hal_.copy(hal_.device, nullptr, nullptr, 0), "copy of nothing");
    if (counts) ok(hal_.memory(hal_.device, &used, &capacity), "memory");
    want(used == used_before, "released memory is free again");
  }

  void refusals() {
    void* memory = nullptr;
    want(hal_.allocate(hal_.device, int64_t{1} << 60, &memory) != 0, "2^60 bytes are refused");
    const char* why = hal_.last_error(hal_.device);
    want(why != nullptr && *why != 0 && std::strchr(why, '\n') == nullptr,
         "last_error is one line");
    const uint8_t damaged[16] = {0x7f, 'E', 'L', 'F', 1, 2, 3};
    heddle_hal_program* program = nullptr;
    want(hal_.load(hal_.device, damaged, sizeof damaged, &program) != 0,
         "a damaged object is refused");
    want(hal_.worker_count(hal_.device) >= 1, "there is a worker");
  }

  struct Loaded {
    heddle_hal_program* program = nullptr;
    const void* function = nullptr;
  };
  Loaded load() {
    Loaded loaded;
    if (ok(hal_.load(hal_.device, kernel_.object.data(), kernel_.object.size(), &loaded.program),
           "load"))
      ok(hal_.find(hal_.device, loaded.program, kernel_.symbol.c_str(), &loaded.function), "find");
    return loaded;
  }

  // The arguments are on this stack frame only: a device must copy them.
  bool launch(heddle_hal_stream* stream, const void* function, float* from, float* to,
              int64_t tasks, bool serial) {
    void* buffers[] = {from, to};
    const int64_t dims[] = {tasks * kernel_.elems_per_task};
    const heddle_hal_access accesses[] = {{dims[0] * 4, 1, 0}, {dims[0] * 4, 0, 1}};
    heddle_hal_launch launch{};
    launch.function = function;
    launch.buffers = buffers;
    launch.dims = dims;
    launch.tasks = tasks;
    launch.serial = serial;
    launch.buffer_count = 2;
    launch.dim_count = 1;
    launch.accesses = accesses;
    return ok(stream == nullptr ? hal_.launch(hal_.device, &launch)
                                : hal_.launch_on(hal_.device, stream, &launch),
              "launch");
  }
  std::vector<float> scaled(const std::vector<float>& values, int times) const {
    std::vector<float> result = values;
    for (float& value : result)
      for (int i = 0; i < times; ++i) value *= kernel_.factor;
    return result;
  }

  void launches() {
    const Loaded loaded = load();
    if (loaded.function != nullptr) {
      const void* missing = nullptr;
      want(hal_.find(hal_.device, loaded.program, "no_such_function", &missing) != 0,
           "a missing function is an error");
      for (const int64_t tasks : {1, 7, 64})
        for (const bool serial : {true, false}) chain(loaded.function, tasks, serial);
    }
    if (loaded.program != nullptr) hal_.unload(hal_.device, loaded.program);
  }
  void chain(const void* function, int64_t tasks, bool serial) {
    const int64_t elems = tasks * kernel_.elems_per_task;
    float *a = block(elems), *b = block(elems);
    if (a != nullptr && b != nullptr) {
      const std::vector<float> values = numbers(elems, 1);
      const bool runs = heddle_hal_has(&hal_, begin_run) && heddle_hal_has(&hal_, end_run);
      if (runs) hal_.begin_run(hal_.device);
      ok(hal_.copy(hal_.device, a, values.data(), elems * 4), "copy");
      for (int i = 0; i < 3; ++i) {
        launch(nullptr, function, a, b, tasks, serial);
        launch(nullptr, function, b, a, tasks, serial);
      }
      want(read(a, elems) == scaled(values, 6), "launches and copies run in order");
      if (runs) hal_.end_run(hal_.device);
    }
    release(a, elems);
    release(b, elems);
  }

  // a -> b on one stream, then, after an event, b -> c on the other, and so on around the three
  // blocks.
  void streams() {
    const Loaded loaded = load();
    heddle_hal_stream* streams[2] = {};
    heddle_hal_event* events[2] = {};
    bool made = loaded.function != nullptr;
    for (int i = 0; i < 2 && made; ++i)
      made = ok(hal_.create_stream(hal_.device, i, &streams[i]), "create_stream") &&
             ok(hal_.create_event(hal_.device, &events[i]), "create_event");
    const int64_t tasks = 16, elems = tasks * kernel_.elems_per_task;
    float* blocks[3] = {block(elems), block(elems), block(elems)};
    made = made && blocks[0] != nullptr && blocks[1] != nullptr && blocks[2] != nullptr;
    if (made) {
      int32_t done = 0;
      ok(hal_.is_done(hal_.device, events[0], &done), "is_done");
      want(done != 0, "an event that was never recorded is done");
      const std::vector<float> values = numbers(elems, 5);
      ok(hal_.copy(hal_.device, blocks[0], values.data(), elems * 4), "copy");
      ok(hal_.wait(hal_.device), "wait");
      for (int i = 0; i < 12; ++i) {
        if (i > 0) ok(hal_.wait_for(hal_.device, streams[i % 2], events[1 - i % 2]), "wait_for");
        launch(streams[i % 2], loaded.function, blocks[i % 3], blocks[(i + 1) % 3], tasks, true);
        ok(hal_.record(hal_.device, streams[i % 2], events[i % 2]), "record");
      }
      for (int tries = 0; tries < 1'000'000 && done == 0; ++tries)
        if (!ok(hal_.is_done(hal_.device, events[1], &done), "is_done")) break;
      ok(hal_.wait(hal_.device), "wait");
      ok(hal_.is_done(hal_.device, events[1], &done), "is_done");
      want(done != 0, "after wait() every event is done");
      want(read(blocks[0], elems) == scaled(values, 12), "events order streams");
      // A copy on a stream; wait() waits for all streams.
      std::vector<float> out(static_cast<size_t>(elems));
      ok(hal_.copy_on(hal_.device, streams[0], blocks[1], blocks[0], elems * 4), "copy_on");
      ok(hal_.copy_on(hal_.device, streams[0], out.data(), blocks[1], elems * 4), "copy_on");
      ok(hal_.wait(hal_.device), "wait");
      want(out == scaled(values, 12), "wait() waits for all streams");
    }
    for (heddle_hal_event* event : events)
      if (event != nullptr) hal_.destroy_event(hal_.device, event);
    for (heddle_hal_stream* stream : streams)
      if (stream != nullptr) hal_.destroy_stream(hal_.device, stream);
    for (float* memory : blocks) release(memory, elems);
    if (loaded.program != nullptr) hal_.unload(hal_.device, loaded.program);
  }

  // Two streams, an event and memory for the following tests; null: could not be made.
  struct Two {
    heddle_hal_stream* streams[2] = {};
    heddle_hal_event* event = nullptr;
    float* memory = nullptr;
    bool made = false;
  };
  static constexpr int64_t kTwoElems = 48;  // three cache lines
  Two make_two() {
    Two two;
    two.memory = block(kTwoElems);
    two.made = two.memory != nullptr &&
               ok(hal_.create_stream(hal_.device, 0, &two.streams[0]), "create_stream") &&
               ok(hal_.create_stream(hal_.device, 0, &two.streams[1]), "create_stream") &&
               ok(hal_.create_event(hal_.device, &two.event), "create_event");
    return two;
  }
  void destroy(const Two& two) {
    if (two.event != nullptr) hal_.destroy_event(hal_.device, two.event);
    for (heddle_hal_stream* stream : two.streams)
      if (stream != nullptr) hal_.destroy_stream(hal_.device, stream);
    release(two.memory, kTwoElems);
  }

  // The event is recorded again, after a wait for it, on the waiting stream: no deadlock.
  void again() {
    const Two two = make_two();
    if (two.made) {
      const std::vector<float> values = numbers(16, 7);
      float *a = two.memory, *b = a + 16, *c = b + 16;
      ok(hal_.copy_on(hal_.device, two.streams[0], a, values.data(), 64), "copy_on");
      ok(hal_.record(hal_.device, two.streams[0], two.event), "record");
      ok(hal_.wait_for(hal_.device, two.streams[1], two.event), "wait_for");
      ok(hal_.copy_on(hal_.device, two.streams[1], b, a, 64), "copy_on");
      ok(hal_.record(hal_.device, two.streams[1], two.event), "record");
      ok(hal_.wait_for(hal_.device, two.streams[0], two.event), "wait_for");
      ok(hal_.copy_on(hal_.device, two.streams[0], c, b, 64), "copy_on");
      if (ok(hal_.wait(hal_.device), "wait"))
        want(read(c, 16) == values, "a wait refers to the last record before it");
    }
    destroy(two);
  }

  struct Calls {
    std::mutex mutex;
    std::vector<int> came;
  };
  struct OneCall {
    Calls* calls;
    int number;
  };
  static void note_call(void* argument) {
    const auto* call = static_cast<OneCall*>(argument);
    const std::lock_guard lock(call->calls->mutex);
    call->calls->came.push_back(call->number);
  }
  // Calls after copies on a stream that waits for the device's own stream, and a call on that one.
  void calls() {
    Calls calls;
    OneCall of_stream[] = {{&calls, 0}, {&calls, 1}, {&calls, 2}}, own{&calls, 9};
    const Two two = make_two();
    if (two.made) {
      const std::vector<float> values = numbers(16, 1);
      ok(hal_.copy(hal_.device, two.memory, values.data(), 64), "copy");
      ok(hal_.record(hal_.device, nullptr, two.event), "record");
      ok(hal_.wait_for(hal_.device, two.streams[0], two.event), "wait_for");
      for (OneCall& call : of_stream) {
        ok(hal_.copy_on(hal_.device, two.streams[0], two.memory + 16, two.memory, 64), "copy_on");
        ok(hal_.call_on(hal_.device, two.streams[0], note_call, &call), "call_on");
      }
      ok(hal_.call_on(hal_.device, nullptr, note_call, &own), "call_on");
      ok(hal_.wait(hal_.device), "wait");
      const std::lock_guard lock(calls.mutex);
      want(calls.came.size() == 4, "every call comes once, before wait() returns");
      std::erase(calls.came, 9);
      want(calls.came == std::vector<int>{0, 1, 2}, "calls of a stream come in order");
    }
    destroy(two);
  }

  // y = factor * x, z = y: recorded on this thread, and run by every replay.
  void recordings() {
    const Loaded loaded = load();
    const int64_t tasks = 4, elems = tasks * kernel_.elems_per_task;
    float *x = block(elems), *y = block(elems), *z = block(elems);
    if (loaded.function != nullptr && x != nullptr && y != nullptr && z != nullptr) {
      record(loaded.function, tasks, x, y, z);
      if (heddle_hal_has(&hal_, create_stream)) branch(loaded.function, tasks, x, y, z);
    }
    for (float* memory : {x, y, z}) release(memory, elems);
    if (loaded.program != nullptr) hal_.unload(hal_.device, loaded.program);
  }
  void record(const void* function, int64_t tasks, float* x, float* y, float* z) {
    const int64_t elems = tasks * kernel_.elems_per_task;
    const std::vector<float> none(static_cast<size_t>(elems), 0);
    ok(hal_.copy(hal_.device, y, none.data(), elems * 4), "copy");
    ok(hal_.copy(hal_.device, z, none.data(), elems * 4), "copy");
    ok(hal_.wait(hal_.device), "wait");
    if (!ok(hal_.begin_recording(hal_.device), "begin_recording")) return;
    launch(nullptr, function, x, y, tasks, false);
    ok(hal_.copy(hal_.device, z, y, elems * 4), "copy on the device, recorded");
    want(hal_.begin_recording(hal_.device) != 0, "a thread makes one recording at a time");
    // Meanwhile another thread launches and waits; its wait may last until the recording has ended.
    const std::vector<float> others = numbers(elems, 2);
    std::vector<float> theirs(others.size());
    std::thread other([&] {
      if (hal_.copy(hal_.device, x, others.data(), elems * 4) == 0 &&
          hal_.copy(hal_.device, theirs.data(), x, elems * 4) == 0)
        hal_.wait(hal_.device);
    });
    heddle_hal_recording* recording = nullptr;
    const bool ended = ok(hal_.end_recording(hal_.device, &recording), "end_recording");
    other.join();
    want(theirs == others, "other threads go on while one records");
    want(read(z, elems) == none, "what is recorded does not run");
    if (!ended) return;
    for (const float first : {3.0f, 4.0f}) {
      const std::vector<float> values = numbers(elems, first);
      ok(hal_.copy(hal_.device, x, values.data(), elems * 4), "copy");
      ok(hal_.replay(hal_.device, recording), "replay");
      want(read(z, elems) == scaled(values, 1), "a replay runs all of it, in order");
    }
    ok(hal_.replay(hal_.device, recording), "replay");
    hal_.destroy_recording(hal_.device, recording);
    ok(hal_.wait(hal_.device), "wait");
    spoil(function, tasks, x, y);
  }
  // y = factor * x on the device's own stream, then z = factor * y on a second stream that waits
  // for it.
  void branch(const void* function, int64_t tasks, float* x, float* y, float* z) {
    const int64_t elems = tasks * kernel_.elems_per_task;
    const Two two = make_two();
    heddle_hal_event* joined = nullptr;
    if (two.made && ok(hal_.create_event(hal_.device, &joined), "create_event") &&
        ok(hal_.begin_recording(hal_.device), "begin_recording")) {
      launch(nullptr, function, x, y, tasks, false);
      ok(hal_.record(hal_.device, nullptr, two.event), "record, recorded");
      ok(hal_.wait_for(hal_.device, two.streams[0], two.event), "wait_for, recorded");
      launch(two.streams[0], function, y, z, tasks, false);
      ok(hal_.record(hal_.device, two.streams[0], joined), "record, recorded");
      ok(hal_.wait_for(hal_.device, nullptr, joined), "wait_for, recorded");
      heddle_hal_recording* recording = nullptr;
      if (ok(hal_.end_recording(hal_.device, &recording), "end_recording")) {
        const std::vector<float> values = numbers(elems, 5);
        ok(hal_.copy(hal_.device, x, values.data(), elems * 4), "copy");
        ok(hal_.replay(hal_.device, recording), "replay");
        want(read(z, elems) == scaled(values, 2), "streams that wait for a recording are in it");
        hal_.destroy_recording(hal_.device, recording);
      }
    }
    if (joined != nullptr) hal_.destroy_event(hal_.device, joined);
    destroy(two);
  }
  // A wait during a recording would wait for work that never runs; an end needs a beginning.
  void spoil(const void* function, int64_t tasks, float* x, float* y) {
    if (!ok(hal_.begin_recording(hal_.device), "begin_recording")) return;
    launch(nullptr, function, x, y, tasks, false);
    want(hal_.wait(hal_.device) != 0, "a thread that records cannot wait");
    heddle_hal_recording* recording = nullptr;
    if (hal_.end_recording(hal_.device, &recording) == 0)
      hal_.destroy_recording(hal_.device, recording);
    want(hal_.end_recording(hal_.device, &recording) != 0, "an end has a beginning");
    ok(hal_.wait(hal_.device), "wait after a recording");
  }

  const heddle_hal& hal_;
  ConformanceKernel kernel_;
  std::vector<std::string> wrong_;
};

}  // namespace heddle::runtime
