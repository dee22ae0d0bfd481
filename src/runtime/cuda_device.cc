#include "runtime/cuda_device.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "program/gpu_code.h"

namespace heddle::runtime {
namespace {

constexpr int kDynamicScratch = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr unsigned kOwnStream = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned kUntimed = 2;    // CU_EVENT_DISABLE_TIMING
constexpr int kThisThread = 1;      // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr int kFewArguments = 64;   // of a launch; more need an allocation

thread_local std::string last_error_text;

int fail(std::string text) {
  last_error_text = std::move(text);
  return 1;
}

const char* cuda_last_error(void*) { return last_error_text.c_str(); }

struct Function {
  CudaDriver::Handle handle = nullptr;
  program::GpuFunction launch;
};

struct Module {
  CudaDriver::Handle handle = nullptr;
  std::map<std::string, Function> functions;
};

CudaDriver::Address address(const void* pointer) {
  return reinterpret_cast<CudaDriver::Address>(pointer);
}

bool graphs_are_off() {
  const char* value = std::getenv("HEDDLE_GPU_GRAPHS");
  return value != nullptr && std::string_view(value) == "0";
}

// The driver refuses to wait for a whole context while one of its streams is being captured. Waits
// run concurrently; a capture first waits for those in progress, and blocks new ones.
class Turns {
 public:
  template <typename Wait>
  auto wait(Wait&& function) {
    std::shared_lock<std::shared_mutex> turn;
    {
      const std::lock_guard lock(gate_);
      turn = std::shared_lock(waits_);
    }
    return function();
  }
  void begin_capture() {
    gate_.lock();
    waits_.lock();
  }
  void end_capture() {
    waits_.unlock();
    gate_.unlock();
  }

 private:
  std::mutex gate_;
  std::shared_mutex waits_;
};

// The device that this thread records and the capture stream, which replaces the device's own
// stream: other threads keep using that.
struct Capture {
  const void* device = nullptr;
  CudaDriver::Handle stream = nullptr;
};
thread_local Capture capture;

}  // namespace

struct CudaDevice::State {
  std::shared_ptr<const CudaDriver> driver;
  CudaDeviceInfo info;
  CudaDriver::Device number = 0;
  CudaDriver::Handle context = nullptr, stream = nullptr, begin = nullptr, end = nullptr;
  Turns turns;
  std::string name;
  heddle_hal hal{};

  static State& of(void* device) { return *static_cast<State*>(device); }

  int check(const char* what, CudaDriver::Code code) const {
    return code == 0 ? 0 : fail(fmt::format("cuda: {}: {}", what, driver->text(code)));
  }
  // Makes the context current for the calling thread. Others may have changed it; asking the driver
  // is faster than setting it every time.
  int enter() const {
    CudaDriver::Handle current = nullptr;
    if (driver->current_context(&current) == 0 && current == context) return 0;
    return check("context", driver->set_context(context));
  }

  static int allocate(void* device, int64_t bytes, void** memory) {
    State& s = of(device);
    CudaDriver::Address at = 0;
    if (bytes < 0) return fail(fmt::format("{} bytes", bytes));
    if (s.enter()) return 1;
    if (s.check("memory",
                s.driver->allocate(&at, static_cast<size_t>(std::max<int64_t>(1, bytes)))))
      return 1;
    *memory = reinterpret_cast<void*>(at);
    return 0;
  }
  static void release(void* device, void* memory, int64_t) {
    State& s = of(device);
    if (s.enter() == 0) s.driver->release(address(memory));
  }
  CudaDriver::Handle chosen(heddle_hal_stream* one) const {
    if (one != nullptr) return one;
    return capture.device == this ? capture.stream : stream;
  }
  // Host and device share one address space: the driver knows which memory an address belongs to.
  static int copy_on(void* device, heddle_hal_stream* stream, void* to, const void* from,
                     int64_t bytes) {
    State& s = of(device);
    if (bytes <= 0) return 0;
    if (s.enter()) return 1;
    return s.check("copy", s.driver->copy_async(address(to), address(from),
                                                static_cast<size_t>(bytes), s.chosen(stream)));
  }
  static int copy(void* device, void* to, const void* from, int64_t bytes) {
    return copy_on(device, nullptr, to, from, bytes);
  }
  static int load(void* device, const uint8_t* object, size_t bytes, heddle_hal_program** program) {
    State& s = of(device);
    auto code = program::decode_gpu_code({object, bytes});
    if (!code) return fail(code.error().message);
    if (s.enter()) return 1;
    auto module = std::make_unique<Module>();
    if (s.check("code", s.driver->load_module(&module->handle, code->cubin.data()))) return 1;
    for (program::GpuFunction& launch : code->functions) {
      Function function;
      int failed = s.check(launch.name.c_str(), s.driver->function(&function.handle, module->handle,
                                                                   launch.name.c_str()));
      if (!failed && launch.scratch_bytes > 0)
        failed = s.check(launch.name.c_str(),
                         s.driver->set_function_attribute(function.handle, kDynamicScratch,
                                                          static_cast<int>(launch.scratch_bytes)));
      if (failed) {
        s.driver->unload_module(module->handle);
        return 1;
      }
      function.launch = launch;
      module->functions.emplace(launch.name, std::move(function));
    }
    *program = reinterpret_cast<heddle_hal_program*>(module.release());
    return 0;
  }
  static void unload(void* device, heddle_hal_program* program) {
    State& s = of(device);
    std::unique_ptr<Module> module(reinterpret_cast<Module*>(program));
    if (s.enter() == 0) s.driver->unload_module(module->handle);
  }
  static int find(void*, heddle_hal_program* program, const char* symbol, const void** function) {
    const Module& module = *reinterpret_cast<Module*>(program);
    const auto found = module.functions.find(symbol);
    if (found == module.functions.end()) return fail(fmt::format("no function '{}'", symbol));
    *function = &found->second;
    return 0;
  }
  static int launch(void* device, const heddle_hal_launch* launch) {
    return launch_on(device, nullptr, launch);
  }
  static int launch_on(void* device, heddle_hal_stream* stream, const heddle_hal_launch* launch) {
    State& s = of(device);
    const Function& function = *static_cast<const Function*>(launch->function);
    if (launch->tasks <= 0) return 0;
    if (s.enter()) return 1;
    const auto buffers = static_cast<size_t>(function.launch.buffers);
    const size_t count = buffers + static_cast<size_t>(function.launch.dims);
    void* few[kFewArguments];
    std::vector<void*> many(count > kFewArguments ? count : 0);
    void** const arguments = many.empty() ? few : many.data();
    for (size_t i = 0; i < count; ++i)
      arguments[i] = i < buffers ? static_cast<void*>(const_cast<void**>(launch->buffers + i))
                                 : const_cast<int64_t*>(launch->dims + (i - buffers));
    return s.check(function.launch.name.c_str(),
                   s.driver->launch(function.handle, static_cast<unsigned>(launch->tasks), 1, 1,
                                    static_cast<unsigned>(function.launch.threads), 1, 1,
                                    static_cast<unsigned>(function.launch.scratch_bytes),
                                    s.chosen(stream), arguments, nullptr));
  }
  static int wait(void* device) {
    State& s = of(device);
    if (capture.device == device) return fail("cuda: wait: not while launches are recorded");
    if (s.enter()) return 1;
    return s.turns.wait([&] { return s.check("wait", s.driver->wait_all()); });
  }

  static int begin_recording(void* device) {
    State& s = of(device);
    if (capture.device != nullptr) return fail("cuda: record: this thread records already");
    CudaDriver::Handle stream = nullptr;
    if (s.enter() || s.check("record", s.driver->create_stream(&stream, kOwnStream))) return 1;
    s.turns.begin_capture();
    if (s.check("record", s.driver->begin_capture(stream, kThisThread))) {
      s.turns.end_capture();
      s.driver->destroy_stream(stream);
      return 1;
    }
    capture = {device, stream};
    return 0;
  }
  static int end_recording(void* device, heddle_hal_recording** recording) {
    State& s = of(device);
    if (capture.device != device) return fail("cuda: record: this thread records nothing");
    const CudaDriver::Handle stream = std::exchange(capture, {}).stream;
    CudaDriver::Handle graph = nullptr, executable = nullptr;
    int failed = s.check("record", s.driver->end_capture(stream, &graph));
    s.turns.end_capture();
    s.driver->destroy_stream(stream);
    if (!failed && graph == nullptr) failed = fail("cuda: record: nothing was recorded");
    if (!failed) failed = s.check("record", s.driver->instantiate(&executable, graph, 0));
    if (graph != nullptr) s.driver->destroy_graph(graph);
    if (!failed) *recording = static_cast<heddle_hal_recording*>(executable);
    return failed;
  }
  static int replay(void* device, heddle_hal_recording* recording) {
    State& s = of(device);
    return s.enter() || s.check("replay", s.driver->launch_graph(recording, s.stream));
  }
  static void destroy_recording(void* device, heddle_hal_recording* recording) {
    State& s = of(device);
    if (recording != nullptr && s.enter() == 0) s.driver->destroy_executable(recording);
  }

  // In the driver a smaller number is a higher priority; 0 is the lowest.
  static int create_stream(void* device, int32_t priority, heddle_hal_stream** stream) {
    State& s = of(device);
    int least = 0, greatest = 0;
    CudaDriver::Handle made = nullptr;
    if (s.enter() || s.check("priorities", s.driver->stream_priorities(&least, &greatest)))
      return 1;
    if (s.check("stream", s.driver->create_priority_stream(&made, kOwnStream,
                                                           std::clamp(-priority, greatest, least))))
      return 1;
    *stream = static_cast<heddle_hal_stream*>(made);
    return 0;
  }
  static void destroy_stream(void* device, heddle_hal_stream* stream) {
    State& s = of(device);
    if (stream != nullptr && s.enter() == 0) s.driver->destroy_stream(stream);
  }
  static int create_event(void* device, heddle_hal_event** event) {
    State& s = of(device);
    CudaDriver::Handle made = nullptr;
    if (s.enter() || s.check("event", s.driver->create_event(&made, kUntimed))) return 1;
    *event = static_cast<heddle_hal_event*>(made);
    return 0;
  }
  static void destroy_event(void* device, heddle_hal_event* event) {
    State& s = of(device);
    if (event != nullptr && s.enter() == 0) s.driver->destroy_event(event);
  }
  static int record(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
    State& s = of(device);
    return s.enter() || s.check("record", s.driver->record_event(event, s.chosen(stream)));
  }
  static int wait_for(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
    State& s = of(device);
    return s.enter() || s.check("wait", s.driver->stream_waits(s.chosen(stream), event, 0));
  }
  static int is_done(void* device, heddle_hal_event* event, int32_t* done) {
    State& s = of(device);
    if (s.enter()) return 1;
    const CudaDriver::Code code = s.driver->query_event(event);
    *done = code == 0;
    return code == CudaDriver::kNotReady ? 0 : s.check("event", code);
  }
  static int call_on(void* device, heddle_hal_stream* stream, void (*function)(void*),
                     void* argument) {
    State& s = of(device);
    return s.enter() || s.check("call", s.driver->call_on(s.chosen(stream), function, argument));
  }
  static int64_t worker_count(void*) { return 1; }

  const heddle_hal* fill() {
    hal.struct_bytes = sizeof(heddle_hal);
    hal.version = HEDDLE_HAL_VERSION;
    hal.name = name.c_str();
    hal.device = this;
    hal.last_error = &cuda_last_error;
    hal.allocate = &State::allocate;
    hal.release = &State::release;
    hal.copy = &State::copy;
    hal.load = &State::load;
    hal.unload = &State::unload;
    hal.find = &State::find;
    hal.launch = &State::launch;
    hal.wait = &State::wait;
    hal.worker_count = &State::worker_count;
    hal.own_memory = 1;
    hal.create_stream = &State::create_stream;
    hal.destroy_stream = &State::destroy_stream;
    hal.launch_on = &State::launch_on;
    hal.copy_on = &State::copy_on;
    hal.create_event = &State::create_event;
    hal.destroy_event = &State::destroy_event;
    hal.record = &State::record;
    hal.wait_for = &State::wait_for;
    hal.is_done = &State::is_done;
    hal.call_on = &State::call_on;
    if (!driver->has_graphs() || graphs_are_off()) return &hal;
    hal.begin_recording = &State::begin_recording;
    hal.end_recording = &State::end_recording;
    hal.replay = &State::replay;
    hal.destroy_recording = &State::destroy_recording;
    return &hal;
  }
};

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<const CudaDriver> driver,
                                                     int number) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<CudaDeviceInfo> devices, cuda_devices(*driver));
  if (number < 0 || number >= static_cast<int>(devices.size()))
    return error_of(ErrorKind::device, "device cuda:{}: there is none; this machine has {}", number,
                    devices.size());
  std::unique_ptr<CudaDevice> result(new CudaDevice);
  result->state_ = std::make_unique<State>();
  State& s = *result->state_;
  s.driver = std::move(driver);
  s.info = devices[static_cast<size_t>(number)];
  s.name = fmt::format("cuda:{}", number);
  const CudaDriver& d = *s.driver;
  CudaDriver::Code code = d.device(&s.number, number);
  if (code == 0) code = d.retain_context(&s.context, s.number);
  if (code == 0) code = d.set_context(s.context);
  if (code == 0) code = d.create_stream(&s.stream, kOwnStream);
  if (code == 0) code = d.create_event(&s.begin, 0);
  if (code == 0) code = d.create_event(&s.end, 0);
  if (code != 0) return error_of(ErrorKind::device, "device cuda:{}: {}", number, d.text(code));
  HEDDLE_ASSIGN_OR_RETURN(Device device, Device::make(s.fill()));
  result->device_ = std::make_unique<Device>(device);
  return result;
}

CudaDevice::~CudaDevice() {
  device_.reset();  // frees its streams and events
  if (!state_ || state_->context == nullptr) return;
  const CudaDriver& d = *state_->driver;
  d.set_context(state_->context);
  if (state_->begin) d.destroy_event(state_->begin);
  if (state_->end) d.destroy_event(state_->end);
  if (state_->stream) d.destroy_stream(state_->stream);
  d.release_context(state_->number);
}

const CudaDeviceInfo& CudaDevice::info() const { return state_->info; }

Status CudaDevice::begin_timing() {
  const State& s = *state_;
  if (s.enter() || s.check("event", s.driver->record_event(s.begin, s.stream)))
    return error_of(ErrorKind::device, "{}", last_error_text);
  return {};
}

Result<double> CudaDevice::end_timing_ms() {
  const State& s = *state_;
  float ms = 0;
  if (s.enter() || s.check("event", s.driver->record_event(s.end, s.stream)) ||
      s.check("event", s.driver->wait_event(s.end)) ||
      s.check("event", s.driver->elapsed_ms(&ms, s.begin, s.end)))
    return error_of(ErrorKind::device, "{}", last_error_text);
  return static_cast<double>(ms);
}

}  // namespace heddle::runtime
