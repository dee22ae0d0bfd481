#include "runtime/virtual_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace heddle::runtime {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kPoison = 0xff;  // NaN in every float, -1 in every integer

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

thread_local std::string last_error_text;

}  // namespace

VirtualMachine::VirtualMachine(VirtualOptions wanted)
    : options(std::move(wanted)), random(options.seed) {
  streams.push_back(std::make_unique<Stream>());
  starved = random() % 4;
}

VirtualMachine::~VirtualMachine() {
  HEDDLE_CHECK(
      blocks.empty() && counts.live_streams == 0 && counts.live_events == 0,
      "device virtual: {} bytes in {} blocks, {} streams and {} events were not given back",
      counts.used_bytes, blocks.size(), counts.live_streams, counts.live_events);
}

int VirtualMachine::fail(std::string text) {
  last_error_text = std::move(text);
  return 1;
}

const char* VirtualMachine::last_error() { return last_error_text.c_str(); }

int VirtualMachine::allocate(int64_t bytes, void** memory) {
  ++counts.allocations;
  if (bytes < 0 || counts.allocations == options.faults.no_memory_at ||
      bytes > options.capacity_bytes - counts.used_bytes)
    return fail(fmt::format("no memory for {} bytes, {} of {} are in use", bytes, counts.used_bytes,
                            options.capacity_bytes));
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  *memory = std::aligned_alloc(kAlignment, rounded);
  if (*memory == nullptr) return fail(fmt::format("the host has no memory for {} bytes", bytes));
  std::memset(*memory, kPoison, rounded);
  blocks[static_cast<char*>(*memory)] = bytes;
  counts.used_bytes += bytes;
  counts.peak_bytes = std::max(counts.peak_bytes, counts.used_bytes);
  return 0;
}

// Runs queued work first: it may still use the block.
void VirtualMachine::release(void* memory, int64_t bytes) {
  drain();
  const auto found = blocks.find(static_cast<char*>(memory));
  HEDDLE_CHECK(found != blocks.end() && found->second == bytes, "release of {} bytes", bytes);
  counts.used_bytes -= bytes;
  std::free(memory);
  blocks.erase(found);
}

bool VirtualMachine::is_ours(const void* address, int64_t bytes) const {
  auto next = blocks.upper_bound(const_cast<char*>(static_cast<const char*>(address)));
  if (next == blocks.begin()) return false;
  --next;
  return static_cast<const char*>(address) + bytes <= next->first + next->second;
}

bool VirtualMachine::is_broken() {
  if (!broken.empty()) last_error_text = broken;
  return !broken.empty();
}
int VirtualMachine::break_down(std::string why) {
  broken = std::move(why);
  for (const auto& stream : streams)
    if (stream) stream->queue.clear();
  return fail(broken);
}
bool VirtualMachine::is_refused(Stream& stream) {
  if (is_broken()) return true;
  if (options.faults.lost_stream > 0 &&
      stream.number == static_cast<size_t>(options.faults.lost_stream)) {
    stream.lost = true;
    options.faults.lost_stream = 0;  // a later stream may reuse the number
  }
  if (stream.lost) fail(fmt::format("stream {} is lost", stream.number));
  return stream.lost;
}

bool VirtualMachine::is_lost() const {
  const int64_t done = counts.launches + counts.copies;
  return options.faults.lost_at > 0 && done >= options.faults.lost_at;
}

void VirtualMachine::note_access(Stream& stream, const void* at, int64_t bytes, bool writes,
                                 const std::string& what) {
  if (auto race = races.access(stream.number, at, bytes, writes, what)) {
    ++counts.races;
    if (first_race.empty()) first_race = "race: " + *race;
  }
}

int VirtualMachine::launch(Stream& stream, const heddle_hal_launch& wanted) {
  if (is_refused(stream)) return 1;
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
      return break_down(fmt::format("{}: buffer {} lies outside the device", what, i));
    if (access.reads) note_access(stream, wanted.buffers[i], access.bytes, false, what);
    if (access.writes) note_access(stream, wanted.buffers[i], access.bytes, true, what);
  }
  return put(stream, std::move(work));
}

int VirtualMachine::copy(Stream& stream, void* to, const void* from, int64_t bytes) {
  if (is_refused(stream)) return 1;
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
  return put(stream, std::move(work));
}

int VirtualMachine::record(Stream& stream, const std::shared_ptr<Event>& event) {
  if (is_refused(stream)) return 1;
  if (++counts.records == options.faults.lost_event_at) event->lost_from = event->recorded + 1;
  event->clock = races.clock(stream.number);
  Work work{Work::Kind::record};
  work.event = event;
  work.number = ++event->recorded;
  return put(stream, std::move(work));
}

int VirtualMachine::wait_for(Stream& stream, const std::shared_ptr<Event>& event) {
  if (is_refused(stream)) return 1;
  ++counts.waits;
  races.join(stream.number, event->clock);
  Work work{Work::Kind::wait};
  work.event = event;
  work.number = event->recorded;
  return put(stream, std::move(work));
}

int VirtualMachine::call_on(Stream& stream, Call call) {
  if (is_refused(stream)) return 1;
  ++counts.calls;
  Work work{Work::Kind::call};
  work.call = std::move(call);
  work.call.clock = races.clock(stream.number);
  return put(stream, std::move(work));
}

// With an odd seed some work runs at once.
int VirtualMachine::put(Stream& stream, Work work) {
  stream.queue.push_back(std::move(work));
  if (options.seed % 2 == 0) return 0;
  for (uint64_t steps = random() % 3; steps > 0; --steps)
    if (Stream* next = choose(); next != nullptr) step(*next);
  return 0;
}

bool VirtualMachine::can_go_on(const Stream& stream) {
  if (stream.queue.empty()) return false;
  const Work& work = stream.queue.front();
  return work.kind != Work::Kind::wait || work.event->happened >= work.number;
}

// The most hostile choice: any stream that can go on; the slow stream, or else the starved one,
// only if no other can.
VirtualMachine::Stream* VirtualMachine::choose() {
  const size_t held =
      options.faults.slow_stream > 0 ? static_cast<size_t>(options.faults.slow_stream) : starved;
  std::vector<Stream*> ready, last;
  for (const auto& stream : streams)
    if (stream && can_go_on(*stream))
      (stream->number == held ? last : ready).push_back(stream.get());
  std::vector<Stream*>& from = ready.empty() ? last : ready;
  return from.empty() ? nullptr : from[random() % from.size()];
}

void VirtualMachine::run_launch(const Work& work) {
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

void VirtualMachine::step(Stream& stream) {
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
    case Work::Kind::call:
      due.push_back(work.call);
      return;
  }
}

// Runs everything. Error: a stream waits for an event that never happens.
int VirtualMachine::drain() {
  if (is_broken()) return 1;
  while (Stream* stream = choose()) step(*stream);
  for (const auto& stream : streams)
    if (stream && !stream->queue.empty())
      return break_down(
          fmt::format("stream {} waits for an event that does not happen", stream->number));
  starved = random() % std::max<size_t>(streams.size(), 2);
  return 0;
}

int VirtualMachine::wait() {
  if (drain() != 0) return 1;
  if (!first_race.empty()) return break_down(first_race);
  races.forget();
  for (Call& call : due) call.clock.clear();
  for (const std::weak_ptr<Event>& event : events)
    if (const auto alive = event.lock()) alive->clock.clear();
  return 0;
}

int VirtualMachine::is_done(Event& event, int32_t* done) {
  if (is_broken()) return 1;
  for (uint64_t left = random() % 4 + 1; left > 0 && event.happened < event.recorded; --left) {
    Stream* stream = choose();
    if (stream == nullptr) return break_down("an event does not happen");
    step(*stream);
  }
  *done = event.happened >= event.recorded ? 1 : 0;
  if (*done != 0) races.observe(event.clock);
  return 0;
}

int VirtualMachine::create_stream(heddle_hal_stream** stream) {
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

void VirtualMachine::destroy_stream(Stream& stream) {
  drain();
  --counts.live_streams;
  streams[stream.number].reset();
}

std::shared_ptr<VirtualMachine::Event> VirtualMachine::create_event() {
  if (is_broken()) return nullptr;
  auto made = std::make_shared<Event>();
  std::erase_if(events, [](const auto& one) { return one.expired(); });
  events.push_back(made);
  ++counts.live_events;
  return made;
}

void VirtualMachine::call_back() {
  const std::lock_guard one_at_a_time(calling);
  std::vector<Call> calls;
  {
    const std::lock_guard lock(mutex);
    calls = std::exchange(due, {});
    for (const Call& call : calls) races.observe(call.clock);
  }
  for (const Call& call : calls) call.function(call.argument);
}

}  // namespace heddle::runtime
