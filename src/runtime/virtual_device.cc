#include "runtime/virtual_device.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "runtime/loader.h"
#include "runtime/virtual_machine.h"

namespace heddle::runtime {
namespace {

using Event = VirtualMachine::Event;
using Stream = VirtualMachine::Stream;
using EventHandle = std::shared_ptr<Event>;

const std::shared_ptr<Event>& event_of(heddle_hal_event* event) {
  return *reinterpret_cast<EventHandle*>(event);
}

VirtualMachine& machine_of(void* device) { return *static_cast<VirtualMachine*>(device); }

// Holds the machine's lock; afterwards makes the callbacks that have become due.
struct Locked {
  explicit Locked(void* device) : machine(machine_of(device)), lock(machine.mutex) {}
  ~Locked() {
    const bool due = !machine.due.empty();
    lock.unlock();
    if (due) machine.call_back();
  }
  VirtualMachine* operator->() { return &machine; }
  Stream& chosen(heddle_hal_stream* stream) {
    return stream == nullptr ? *machine.streams[0] : *reinterpret_cast<Stream*>(stream);
  }
  VirtualMachine& machine;
  std::unique_lock<std::mutex> lock;
};

const char* hal_last_error(void*) { return VirtualMachine::last_error(); }
int hal_allocate(void* device, int64_t bytes, void** memory) {
  return Locked(device)->allocate(bytes, memory);
}
void hal_release(void* device, void* memory, int64_t bytes) {
  if (memory != nullptr) Locked(device)->release(memory, bytes);
}
int hal_copy_on(void* device, heddle_hal_stream* stream, void* to, const void* from,
                int64_t bytes) {
  Locked locked(device);
  return locked->copy(locked.chosen(stream), to, from, bytes);
}
int hal_copy(void* device, void* to, const void* from, int64_t bytes) {
  return hal_copy_on(device, nullptr, to, from, bytes);
}
int hal_load(void*, const uint8_t* object, size_t bytes, heddle_hal_program** program) {
  auto loaded = Object::load({object, bytes});
  if (!loaded) return VirtualMachine::fail(loaded.error().message);
  *program = reinterpret_cast<heddle_hal_program*>(loaded->release());
  return 0;
}
void hal_unload(void* device, heddle_hal_program* program) {
  Locked(device)->drain();
  delete reinterpret_cast<Object*>(program);
}
int hal_find(void*, heddle_hal_program* program, const char* symbol, const void** function) {
  *function = reinterpret_cast<Object*>(program)->find(symbol);
  return *function == nullptr ? VirtualMachine::fail(fmt::format("no function '{}'", symbol)) : 0;
}
int hal_launch_on(void* device, heddle_hal_stream* stream, const heddle_hal_launch* launch) {
  Locked locked(device);
  return locked->launch(locked.chosen(stream), *launch);
}
int hal_launch(void* device, const heddle_hal_launch* launch) {
  return hal_launch_on(device, nullptr, launch);
}
int hal_wait(void* device) {
  const int status = Locked(device)->wait();
  machine_of(device).call_back();  // including those of other threads
  return status;
}
int64_t hal_worker_count(void* device) { return machine_of(device).options.workers; }
int hal_create_stream(void* device, int32_t, heddle_hal_stream** stream) {
  return Locked(device)->create_stream(stream);
}
void hal_destroy_stream(void* device, heddle_hal_stream* stream) {
  if (stream != nullptr) Locked(device)->destroy_stream(*reinterpret_cast<Stream*>(stream));
}
int hal_create_event(void* device, heddle_hal_event** event) {
  auto made = Locked(device)->create_event();
  if (made == nullptr) return 1;
  *event = reinterpret_cast<heddle_hal_event*>(new EventHandle(std::move(made)));
  return 0;
}
void hal_destroy_event(void* device, heddle_hal_event* event) {
  if (event == nullptr) return;
  --Locked(device)->counts.live_events;
  delete reinterpret_cast<EventHandle*>(event);
}
int hal_record(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
  Locked locked(device);
  return locked->record(locked.chosen(stream), event_of(event));
}
int hal_wait_for(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
  Locked locked(device);
  return locked->wait_for(locked.chosen(stream), event_of(event));
}
int hal_is_done(void* device, heddle_hal_event* event, int32_t* done) {
  return Locked(device)->is_done(*event_of(event), done);
}
int hal_memory(void* device, int64_t* used_bytes, int64_t* capacity_bytes) {
  Locked locked(device);
  *used_bytes = locked->counts.used_bytes;
  *capacity_bytes = locked->options.capacity_bytes;
  return 0;
}
int hal_call_on(void* device, heddle_hal_stream* stream, void (*function)(void*), void* argument) {
  Locked locked(device);
  return locked->call_on(locked.chosen(stream), {function, argument, {}});
}

}  // namespace

struct VirtualDevice::State {
  explicit State(VirtualOptions options) : machine(std::move(options)) {}
  const heddle_hal* fill();
  VirtualMachine machine;
  std::string name;
  heddle_hal hal{};
};

const heddle_hal* VirtualDevice::State::fill() {
  name = "virtual:" + machine.options.name;
  hal.struct_bytes = sizeof(heddle_hal);
  hal.version = HEDDLE_HAL_VERSION;
  hal.name = name.c_str();
  hal.device = &machine;
  hal.last_error = &hal_last_error;
  hal.allocate = &hal_allocate;
  hal.release = &hal_release;
  hal.copy = &hal_copy;
  hal.load = &hal_load;
  hal.unload = &hal_unload;
  hal.find = &hal_find;
  hal.launch = &hal_launch;
  hal.wait = &hal_wait;
  hal.worker_count = &hal_worker_count;
  hal.own_memory = 1;
  if (machine.options.streams > 0) {
    hal.create_stream = &hal_create_stream;
    hal.destroy_stream = &hal_destroy_stream;
    hal.launch_on = &hal_launch_on;
    hal.copy_on = &hal_copy_on;
    hal.create_event = &hal_create_event;
    hal.destroy_event = &hal_destroy_event;
    hal.record = &hal_record;
    hal.wait_for = &hal_wait_for;
    hal.is_done = &hal_is_done;
    hal.call_on = &hal_call_on;
  }
  hal.memory = &hal_memory;
  return &hal;
}

VirtualDevice::VirtualDevice(VirtualOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  auto device = Device::make(state_->fill());
  HEDDLE_CHECK(device, "{}", device.error().message);
  device_ = std::make_unique<Device>(*device);
}

// First the managers' streams and events; then the machine's destructor finds what was not
// released.
VirtualDevice::~VirtualDevice() { device_.reset(); }

VirtualCounts VirtualDevice::counts() const {
  const std::lock_guard lock(state_->machine.mutex);
  return state_->machine.counts;
}

}  // namespace heddle::runtime
