#include "runtime/virtual_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "base/check.h"
#include "runtime/loader.h"
#include "runtime/race_check.h"

namespace heddle::runtime {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kPoison = 0xff;  // NaN in every float, -1 in every integer

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

thread_local std::string last_error_text;

int fail(std::string text) {
  last_error_text = std::move(text);
  return 1;
}

struct Event {
  int64_t recorded = 0, happened = 0;  // how often
  int64_t lost_from = INT64_MAX;       // records from this one on are never seen
  RaceCheck::Clock clock;              // of the last record
};

// What waits on a stream: a launch, a copy, an event's record, or a wait for it.
struct Work {
  enum class Kind : uint8_t { launch, copy, record, wait } kind;
  heddle_hal_launch launch{};
  std::vector<void*> buffers;
  std::vector<int64_t> dims;
  void* to = nullptr;
  const void* from = nullptr;
  std::vector<char> bytes;  // of the host, as they were; then `from` is null
  int64_t size = 0;
  std::shared_ptr<Event> event;
  int64_t number = 0;  // of the event's records
};

struct Stream {
  size_t number = 0;
  std::deque<Work> queue;
};

struct EventHandle {
  std::shared_ptr<Event> event;
};

Stream* stream_of(heddle_hal_stream* stream) { return reinterpret_cast<Stream*>(stream); }
EventHandle* event_of(heddle_hal_event* event) { return reinterpret_cast<EventHandle*>(event); }

}  // namespace

struct VirtualDevice::State {
  explicit State(VirtualOptions wanted) : options(std::move(wanted)), random(options.seed) {
    streams.push_back(std::make_unique<Stream>());  // of launch() and copy()
    starved = random() % 4;
  }
  ~State() {
    for (const auto& [address, bytes] : blocks) std::free(address);
  }
  static State& of(void* device) { return *static_cast<State*>(device); }

  // --- memory ---

  int allocate(int64_t bytes, void** memory) {
    ++counts.allocations;
    if (bytes < 0 || counts.allocations == options.faults.no_memory_at ||
        bytes > options.capacity_bytes - counts.used_bytes)
      return fail(fmt::format("no memory for {} bytes, {} of {} are in use", bytes,
                              counts.used_bytes, options.capacity_bytes));
    const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
    *memory = std::aligned_alloc(kAlignment, rounded);
    if (*memory == nullptr) return fail(fmt::format("the host has no memory for {} bytes", bytes));
    std::memset(*memory, kPoison, rounded);
    blocks[static_cast<char*>(*memory)] = bytes;
    counts.used_bytes += bytes;
    counts.peak_bytes = std::max(counts.peak_bytes, counts.used_bytes);
    return 0;
  }

  // Work that may still use it runs first.
  void release(void* memory, int64_t bytes) {
    drain();
    const auto found = blocks.find(static_cast<char*>(memory));
    HEDDLE_CHECK(found != blocks.end() && found->second == bytes, "release of {} bytes", bytes);
    counts.used_bytes -= bytes;
    std::free(memory);
    blocks.erase(found);
  }

  bool is_ours(const void* address, int64_t bytes) const {
    auto next = blocks.upper_bound(const_cast<char*>(static_cast<const char*>(address)));
    if (next == blocks.begin()) return false;
    --next;
    return static_cast<const char*>(address) + bytes <= next->first + next->second;
  }

  // --- what is asked for ---

  bool is_broken() {
    if (!broken.empty()) last_error_text = broken;
    return !broken.empty();
  }
  int break_down(std::string why) {
    broken = std::move(why);
    for (const auto& stream : streams)
      if (stream) stream->queue.clear();
    return fail(broken);
  }
  bool is_lost() {
    const int64_t done = counts.launches + counts.copies;
    return options.faults.lost_at > 0 && done >= options.faults.lost_at;
  }

  void note_access(Stream& stream, const void* at, int64_t bytes, bool writes,
                   const std::string& what) {
    if (auto race = races.access(stream.number, at, bytes, writes, what)) {
      ++counts.races;
      if (first_race.empty()) first_race = "race: " + *race;
    }
  }

  int launch(Stream& stream, const heddle_hal_launch& wanted) {
    if (is_broken()) return 1;
    ++counts.launches;
    if (is_lost()) return break_down("the device is lost");
    Work work{Work::Kind::launch};
    work.launch = wanted;
    work.buffers.assign(wanted.buffers, wanted.buffers + wanted.buffer_count);
    work.dims.assign(wanted.dims, wanted.dims + wanted.dim_count);
    races.advance(stream.number);
    const std::string what = fmt::format("launch {}", counts.launches);
    for (int64_t i = 0; wanted.accesses != nullptr && i < wanted.buffer_count; ++i) {
      const heddle_hal_access& access = wanted.accesses[i];
      if (access.bytes > 0 && !is_ours(wanted.buffers[i], access.bytes))
        return break_down(fmt::format("{}: buffer {} lies outside of the device", what, i));
      if (access.reads) note_access(stream, wanted.buffers[i], access.bytes, false, what);
      if (access.writes) note_access(stream, wanted.buffers[i], access.bytes, true, what);
    }
    stream.queue.push_back(std::move(work));
    return 0;
  }

  int copy(Stream& stream, void* to, const void* from, int64_t bytes) {
    if (is_broken()) return 1;
    if (bytes <= 0) return 0;
    ++counts.copies;
    if (is_lost()) return break_down("the device is lost");
    Work work{Work::Kind::copy};
    work.to = to;
    work.size = bytes;
    races.advance(stream.number);
    const std::string what = fmt::format("copy {}", counts.copies);
    if (is_ours(from, bytes)) {
      work.from = from;
      note_access(stream, from, bytes, false, what);
    } else {
      const auto* host = static_cast<const char*>(from);
      work.bytes.assign(host, host + bytes);
    }
    if (is_ours(to, bytes)) note_access(stream, to, bytes, true, what);
    stream.queue.push_back(std::move(work));
    return 0;
  }

  int record(Stream& stream, const std::shared_ptr<Event>& event) {
    if (is_broken()) return 1;
    if (++counts.records == options.faults.lost_event_at) event->lost_from = event->recorded + 1;
    event->clock = races.clock(stream.number);
    Work work{Work::Kind::record};
    work.event = event;
    work.number = ++event->recorded;
    stream.queue.push_back(std::move(work));
    return 0;
  }

  int wait_for(Stream& stream, const std::shared_ptr<Event>& event) {
    if (is_broken()) return 1;
    ++counts.waits;
    races.join(stream.number, event->clock);
    Work work{Work::Kind::wait};
    work.event = event;
    work.number = event->recorded;
    stream.queue.push_back(std::move(work));
    return 0;
  }

  // --- what runs ---

  static bool can_go_on(const Stream& stream) {
    if (stream.queue.empty()) return false;
    const Work& work = stream.queue.front();
    return work.kind != Work::Kind::wait || work.event->happened >= work.number;
  }

  // The most hostile choice: any stream that can go on, but the starved and the slow one only when
  // no other can.
  Stream* choose() {
    std::vector<Stream*> ready, last;
    for (const auto& stream : streams) {
      if (!stream || !can_go_on(*stream)) continue;
      const bool waits = stream->number == starved ||
                         (options.faults.slow_stream > 0 &&
                          stream->number == static_cast<size_t>(options.faults.slow_stream));
      (waits ? last : ready).push_back(stream.get());
    }
    std::vector<Stream*>& from = ready.empty() ? last : ready;
    return from.empty() ? nullptr : from[random() % from.size()];
  }

  void run_launch(const Work& work) {
    const heddle_hal_launch& launch = work.launch;
    const auto call = [&](int64_t begin, int64_t end, int64_t worker) {
      if (begin < end)
        reinterpret_cast<Kernel>(const_cast<void*>(launch.function))(
            work.buffers.data(), work.dims.data(), begin, end,
            launch.scratch + worker * launch.scratch_stride_bytes);
    };
    if (launch.serial != 0) return call(0, launch.tasks, 0);
    const auto cut = static_cast<int64_t>(random() % static_cast<uint64_t>(launch.tasks + 1));
    const auto worker = static_cast<int64_t>(random() % static_cast<uint64_t>(options.workers));
    call(cut, launch.tasks, worker);
    call(0, cut, 0);
  }

  void step(Stream& stream) {
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    switch (work.kind) {
      case Work::Kind::launch:
        return run_launch(work);
      case Work::Kind::copy:
        std::memmove(work.to, work.from != nullptr ? work.from : work.bytes.data(),
                     static_cast<size_t>(work.size));
        return;
      case Work::Kind::record:
        if (work.number < work.event->lost_from)
          work.event->happened = std::max(work.event->happened, work.number);
        return;
      case Work::Kind::wait:
        return;
    }
  }

  // Runs everything. Error: a stream waits for what never happens.
  int drain() {
    if (is_broken()) return 1;
    while (Stream* stream = choose()) step(*stream);
    for (const auto& stream : streams)
      if (stream && !stream->queue.empty())
        return break_down(
            fmt::format("stream {} waits for an event that does not happen", stream->number));
    starved = random() % std::max<size_t>(streams.size(), 2);
    return 0;
  }

  int wait() {
    if (drain() != 0) return 1;
    if (!first_race.empty()) return break_down(first_race);
    races.forget();
    for (const std::weak_ptr<Event>& event : events)
      if (const auto alive = event.lock()) alive->clock.clear();
    return 0;
  }

  int is_done(Event& event, int32_t* done) {
    if (is_broken()) return 1;
    for (uint64_t left = random() % 4 + 1; left > 0; --left) {
      Stream* stream = choose();
      if (stream == nullptr) {
        if (event.happened < event.recorded) return break_down("an event does not happen");
        break;
      }
      step(*stream);
    }
    *done = event.happened >= event.recorded ? 1 : 0;
    return 0;
  }

  int create_stream(heddle_hal_stream** stream) {
    if (is_broken()) return 1;
    if (counts.live_streams >= options.streams)
      return fail(fmt::format("no more than {} streams", options.streams));
    size_t number = 1;
    while (number < streams.size() && streams[number]) ++number;
    if (number == streams.size()) streams.emplace_back();
    streams[number] = std::make_unique<Stream>();
    streams[number]->number = number;
    ++counts.live_streams;
    *stream = reinterpret_cast<heddle_hal_stream*>(streams[number].get());
    return 0;
  }

  void destroy_stream(Stream& stream) {
    drain();
    --counts.live_streams;
    streams[stream.number].reset();
  }

  int create_event(heddle_hal_event** event) {
    if (is_broken()) return 1;
    auto made = std::make_unique<EventHandle>(EventHandle{std::make_shared<Event>()});
    std::erase_if(events, [](const auto& one) { return one.expired(); });
    events.push_back(made->event);
    ++counts.live_events;
    *event = reinterpret_cast<heddle_hal_event*>(made.release());
    return 0;
  }

  Stream& chosen(heddle_hal_stream* stream) {
    return stream == nullptr ? *streams[0] : *stream_of(stream);
  }

  const heddle_hal* fill();

  VirtualOptions options;
  std::mutex mutex;
  std::mt19937_64 random;
  std::map<char*, int64_t> blocks;
  std::vector<std::unique_ptr<Stream>> streams;  // null: destroyed
  std::vector<std::weak_ptr<Event>> events;
  RaceCheck races;
  std::string broken, first_race;
  size_t starved = 0;
  VirtualCounts counts;
  std::string name;
  heddle_hal hal{};
};

namespace {

// The HAL's functions under the device's lock.
template <typename StateT>
struct Hal {
  struct Locked {
    explicit Locked(void* device) : state(StateT::of(device)), lock(state.mutex) {}
    StateT* operator->() { return &state; }
    StateT& state;
    std::lock_guard<std::mutex> lock;
  };

  static const char* last_error(void*) { return last_error_text.c_str(); }
  static int allocate(void* device, int64_t bytes, void** memory) {
    return Locked(device)->allocate(bytes, memory);
  }
  static void release(void* device, void* memory, int64_t bytes) {
    if (memory != nullptr) Locked(device)->release(memory, bytes);
  }
  static int copy_on(void* device, heddle_hal_stream* stream, void* to, const void* from,
                     int64_t bytes) {
    Locked locked(device);
    return locked->copy(locked->chosen(stream), to, from, bytes);
  }
  static int copy(void* device, void* to, const void* from, int64_t bytes) {
    return copy_on(device, nullptr, to, from, bytes);
  }
  static int load(void*, const uint8_t* object, size_t bytes, heddle_hal_program** program) {
    auto loaded = Object::load({object, bytes});
    if (!loaded) return fail(loaded.error().message);
    *program = reinterpret_cast<heddle_hal_program*>(loaded->release());
    return 0;
  }
  static void unload(void* device, heddle_hal_program* program) {
    Locked(device)->drain();
    delete reinterpret_cast<Object*>(program);
  }
  static int find(void*, heddle_hal_program* program, const char* symbol, const void** function) {
    *function = reinterpret_cast<Object*>(program)->find(symbol);
    return *function == nullptr ? fail(fmt::format("no function '{}'", symbol)) : 0;
  }
  static int launch_on(void* device, heddle_hal_stream* stream, const heddle_hal_launch* launch) {
    Locked locked(device);
    return locked->launch(locked->chosen(stream), *launch);
  }
  static int launch(void* device, const heddle_hal_launch* launch) {
    return launch_on(device, nullptr, launch);
  }
  static int wait(void* device) { return Locked(device)->wait(); }
  static int64_t worker_count(void* device) { return StateT::of(device).options.workers; }
  static int create_stream(void* device, int32_t, heddle_hal_stream** stream) {
    return Locked(device)->create_stream(stream);
  }
  static void destroy_stream(void* device, heddle_hal_stream* stream) {
    if (stream != nullptr) Locked(device)->destroy_stream(*stream_of(stream));
  }
  static int create_event(void* device, heddle_hal_event** event) {
    return Locked(device)->create_event(event);
  }
  static void destroy_event(void* device, heddle_hal_event* event) {
    if (event == nullptr) return;
    --Locked(device)->counts.live_events;
    delete event_of(event);
  }
  static int record(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
    Locked locked(device);
    return locked->record(locked->chosen(stream), event_of(event)->event);
  }
  static int wait_for(void* device, heddle_hal_stream* stream, heddle_hal_event* event) {
    Locked locked(device);
    return locked->wait_for(locked->chosen(stream), event_of(event)->event);
  }
  static int is_done(void* device, heddle_hal_event* event, int32_t* done) {
    return Locked(device)->is_done(*event_of(event)->event, done);
  }
  static int memory(void* device, int64_t* used_bytes, int64_t* capacity_bytes) {
    Locked locked(device);
    *used_bytes = locked->counts.used_bytes;
    *capacity_bytes = locked->options.capacity_bytes;
    return 0;
  }
};

}  // namespace

const heddle_hal* VirtualDevice::State::fill() {
  using Functions = Hal<State>;
  name = "virtual:" + options.name;
  hal.struct_bytes = sizeof(heddle_hal);
  hal.version = HEDDLE_HAL_VERSION;
  hal.name = name.c_str();
  hal.device = this;
  hal.last_error = &Functions::last_error;
  hal.allocate = &Functions::allocate;
  hal.release = &Functions::release;
  hal.copy = &Functions::copy;
  hal.load = &Functions::load;
  hal.unload = &Functions::unload;
  hal.find = &Functions::find;
  hal.launch = &Functions::launch;
  hal.wait = &Functions::wait;
  hal.worker_count = &Functions::worker_count;
  hal.own_memory = 1;
  if (options.streams > 0) {
    hal.create_stream = &Functions::create_stream;
    hal.destroy_stream = &Functions::destroy_stream;
    hal.launch_on = &Functions::launch_on;
    hal.copy_on = &Functions::copy_on;
    hal.create_event = &Functions::create_event;
    hal.destroy_event = &Functions::destroy_event;
    hal.record = &Functions::record;
    hal.wait_for = &Functions::wait_for;
    hal.is_done = &Functions::is_done;
  }
  hal.memory = &Functions::memory;
  return &hal;
}

VirtualDevice::VirtualDevice(VirtualOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  auto device = Device::make(state_->fill());
  HEDDLE_CHECK(device, "{}", device.error().message);
  device_ = std::make_unique<Device>(*device);
}

VirtualDevice::~VirtualDevice() = default;

VirtualCounts VirtualDevice::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace heddle::runtime
