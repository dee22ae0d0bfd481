// Runs a command list: the loop over its records.
#include <algorithm>
#include <utility>

#include "base/trace.h"
#include "program/live.h"
#include "program/nodes_text.h"
#include "program/views.h"
#include "runtime/command_list.h"

namespace heddle::runtime {

namespace {

constexpr size_t kMostTracedNodes = 8;  // of one trace event

// Reads an integer; u64 values above the range of s64 saturate.
int64_t read_number(const void* data, tensor::Type type) {
  const auto* bytes = static_cast<const char*>(data);
  auto read = [&](auto value) {
    __builtin_memcpy(&value, bytes, sizeof(value));
    return value;
  };
  switch (type) {
    case tensor::Type::s8:
      return read(int8_t{});
    case tensor::Type::s16:
      return read(int16_t{});
    case tensor::Type::s32:
      return read(int32_t{});
    case tensor::Type::s64:
      return read(int64_t{});
    case tensor::Type::u8:
      return read(uint8_t{});
    case tensor::Type::u16:
      return read(uint16_t{});
    case tensor::Type::u32:
      return read(uint32_t{});
    case tensor::Type::u64:
      return static_cast<int64_t>(std::min<uint64_t>(read(uint64_t{}), INT64_MAX));
    default:
      return read(uint8_t{}) != 0;
  }
}

}  // namespace

Result<int64_t> CommandList::read_now(const void* data, tensor::Type type) {
  const heddle_hal& hal = device_.hal();
  if (program_->own_memory || !device_.has_own_memory()) {
    if (!device_.has_own_memory() || writes_host_) {
      if (hal.wait(hal.device) != 0) return device_.last_error("cannot wait");
      writes_host_ = reads_host_ = false;
    }
    return read_number(data, type);
  }
  int64_t copy = 0;
  HEDDLE_RETURN_IF_ERROR(device_.copy_now(&copy, data, tensor::type_bytes(type)));
  return read_number(&copy, type);
}

// After a failure all addresses are restored to the state that a run starts from.
Status CommandList::failed(const Record& record, Error error) {
  for (LoopRecord& loop : loops_) exchange(loop, false);
  const program::CommandInfo& info = *infos_[record.command];
  return error_in(program::where_text(info.name, info.nodes), std::move(error));
}

void CommandList::exchange(LoopRecord& loop, bool odd) {
  if (loop.odd == odd) return;
  loop.odd = odd;
  for (const Swap& swap : loop.swaps) {
    char *state = bases_[swap.state.index()], *next = bases_[swap.next.index()];
    if (odd) std::swap(state, next);
    point_slots(swap.state, state);
    point_slots(swap.next, next);
  }
}

// Commands after the loop read the state at its original address.
Status CommandList::leave(LoopRecord& loop, const Record& record) {
  if (!loop.odd) return {};
  exchange(loop, false);
  for (const Swap& swap : loop.swaps)
    HEDDLE_RETURN_IF_ERROR(copy_bytes(record, swap.on_host, bases_[swap.state.index()],
                                      bases_[swap.next.index()], swap.bytes));
  return {};
}

Status CommandList::settle(const Record& record, bool writes_only) {
  const heddle_hal& hal = device_.hal();
  if (device_.has_own_memory() && !writes_host_ && (writes_only || !reads_host_)) return {};
  if (hal.wait(hal.device) != 0) return failed(record, device_.last_error("cannot wait").value());
  writes_host_ = reads_host_ = false;
  return {};
}

// Copies within one space.
Status CommandList::copy_bytes(const Record& record, bool on_host, void* to, const void* from,
                               int64_t bytes) {
  const heddle_hal& hal = device_.hal();
  if (on_host) {
    HEDDLE_RETURN_IF_ERROR(settle(record));
    if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
    return {};
  }
  if (hal.copy(hal.device, to, from, bytes) != 0)
    return failed(record, device_.last_error("cannot copy").value());
  return {};
}

// The device may read the host's bytes at the time of the call, so they must be written by then.
Status CommandList::execute_copy(const Record& record) {
  void* const* slots = record.launch.buffers;
  if (stays_on_device(record))
    return copy_bytes(record, /*on_host=*/false, slots[1], slots[0], record.launch.tasks);
  if (record.jump == to_device) HEDDLE_RETURN_IF_ERROR(settle(record, /*writes_only=*/true));
  HEDDLE_RETURN_IF_ERROR(
      copy_bytes(record, record.kind == Kind::host_copy, slots[1], slots[0], record.launch.tasks));
  reads_host_ = reads_host_ || record.jump == to_device;
  writes_host_ = writes_host_ || record.jump == to_host;
  return {};
}

// The host works on copies in its own memory.
Status CommandList::execute_host_apart(const Record& record) {
  HostRecord& host = hosts_[record.index];
  if (host.copies.empty()) {
    for (const HostArgument& one : host.arguments)
      host.copies.emplace_back(static_cast<size_t>(program::stored_bytes(*one.shape)));
    for (const HostResult& one : host.results)
      host.copies.emplace_back(static_cast<size_t>(program::stored_bytes(*one.shape)));
  }
  void* const* slot = record.launch.buffers;
  size_t i = 0;
  for (HostArgument& argument : host.arguments) {
    std::vector<char>& copy = host.copies[i++];
    if (Status done = device_.copy_now(copy.data(), *slot++, static_cast<int64_t>(copy.size()));
        !done)
      return failed(record, done.error());
    argument.data = copy.data();
  }
  for (HostResult& result : host.results) result.data = host.copies[i++].data();
  Status status = (*host.function)(host.arguments, host.results);
  if (!status) return failed(record, status.error());
  i = host.arguments.size();
  for (size_t r = 0; r < host.results.size(); ++r) {
    const std::vector<char>& copy = host.copies[i++];
    if (Status done = device_.copy_now(*slot++, copy.data(), static_cast<int64_t>(copy.size()));
        !done)
      return failed(record, done.error());
  }
  return {};
}

Status CommandList::execute_host(const Record& record) {
  if (device_.has_own_memory() && !program_->own_memory) return execute_host_apart(record);
  HostRecord& host = hosts_[record.index];
  void* const* slot = record.launch.buffers;
  for (HostArgument& argument : host.arguments) argument.data = *slot++;
  for (HostResult& result : host.results) result.data = *slot++;
  HEDDLE_RETURN_IF_ERROR(settle(record));
  Status status = (*host.function)(host.arguments, host.results);
  if (!status) return failed(record, status.error());
  return {};
}

// Has the signature of a kernel, so that the device distributes its tasks over the workers.
void CommandList::run_library(void* const* buffers, const int64_t* dims, int64_t begin, int64_t end,
                              void*) {
  auto& run = *reinterpret_cast<LibraryRun*>(dims[0]);
  Status status = run.work->run(buffers, begin, end);
  if (status) return;
  const std::lock_guard lock(run.mutex);
  if (run.status) run.status = std::move(status);
}

Status CommandList::execute_library(const Record& record) {
  const heddle_hal& hal = device_.hal();
  LibraryRun& run = *library_runs_[record.index];
  if (Status ready = run.work->prepare(record.launch.buffers); !ready)
    return failed(record, ready.error());
  if (hal.launch(hal.device, &record.launch) != 0)
    return failed(record, device_.last_error("cannot launch").value());
  if (hal.wait(hal.device) != 0) return failed(record, device_.last_error("cannot wait").value());
  if (run.status) return {};
  return failed(record, std::exchange(run.status, Status()).error());
}

Result<char*> CommandList::box_address(const UpdateRecord& update, void* const* slots) {
  auto* to = static_cast<char*>(slots[2]);
  for (size_t d = 0; d < update.dims.size(); ++d) {
    const UpdateRecord::Dim& dim = update.dims[d];
    if (dim.limit == 0) continue;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t start, read_now(slots[3 + d], dim.type));
    to += std::clamp<int64_t>(start, 0, dim.limit) * dim.stride_bytes;
  }
  return to;
}

Status CommandList::execute_aim(const Record& record) {
  const UpdateRecord& update = updates_[record.index];
  const Result<char*> to = box_address(update, record.launch.buffers);
  if (!to) return failed(record, to.error());
  slots_[update.aimed] = *to;
  return {};
}

Status CommandList::execute_update(const Record& record) {
  UpdateRecord& update = updates_[record.index];
  void* const* slots = record.launch.buffers;
  if (update.run_bytes == 0) return {};
  const auto* from = static_cast<const char*>(slots[1]);
  const Result<char*> box = box_address(update, slots);
  if (!box) return failed(record, box.error());
  char* to = *box;
  const size_t depth = update.loops.size();
  for (const UpdateRecord::Loop& loop : update.loops)
    if (loop.count == 0) return {};
  for (;;) {
    HEDDLE_RETURN_IF_ERROR(copy_bytes(record, update.on_host, to, from, update.run_bytes));
    from += update.run_bytes;
    size_t d = depth;
    for (; d > 0; --d) {
      const UpdateRecord::Loop& loop = update.loops[d - 1];
      to += loop.to_stride_bytes;
      if (++update.at[d - 1] < loop.count) break;
      update.at[d - 1] = 0;
      to -= loop.count * loop.to_stride_bytes;
    }
    if (d == 0) return {};
  }
}

Status CommandList::execute_join(const Record& record) {
  return copy_pieces(record, [&](void* to, const void* from, int64_t bytes) {
    return copy_bytes(record, joins_[record.index].on_host, to, from, bytes);
  });
}

Status CommandList::execute(const Record& record, size_t* next) {
  const heddle_hal& hal = device_.hal();
  void* const* slots = record.launch.buffers;
  switch (record.kind) {
    case Kind::launch:
      if (hal.launch(hal.device, &record.launch) != 0)
        return failed(record, device_.last_error("cannot launch").value());
      return {};
    case Kind::copy:
    case Kind::host_copy:
      return execute_copy(record);
    case Kind::host:
      return execute_host(record);
    case Kind::update:
      return execute_update(record);
    case Kind::concatenate:
      return execute_join(record);
    case Kind::library:
      return execute_library(record);
    case Kind::aim:
      return execute_aim(record);
    case Kind::nothing:
    case Kind::enter:
      return {};
    case Kind::test: {
      const Result<int64_t> goes_on = read_now(slots[0], tensor::Type::pred);
      if (!goes_on) return failed(record, goes_on.error());
      if (*goes_on == 0) *next = record.jump;
      return {};
    }
    case Kind::again: {
      LoopRecord& loop = loops_[record.index];
      if (!loop.swaps.empty()) exchange(loop, !loop.odd);
      *next = record.jump;
      return {};
    }
    case Kind::leave:
      return leave(loops_[record.index], record);
    case Kind::select: {
      const auto type = static_cast<tensor::Type>(record.launch.serial);
      const Result<int64_t> selected = read_now(slots[0], type);
      if (!selected) return failed(record, selected.error());
      int64_t branch = *selected;
      if (type == tensor::Type::pred) branch = branch != 0 ? 0 : 1;
      if (branch < 0 || branch >= record.launch.tasks) branch = record.launch.tasks - 1;
      *next = targets_[record.index + static_cast<size_t>(branch)];
      return {};
    }
    case Kind::go:
      *next = record.jump;
      return {};
  }
  return {};
}

template <bool joined, bool recorded, typename Step>
Status CommandList::run_records(size_t at, size_t end, Step&& step) {
  const heddle_hal& hal = device_.hal();
  const auto launch = hal.launch;
  void* const device = hal.device;
  while (at < end) {
    const Record& record = records_[at];
    size_t next = at + 1;
    if constexpr (requires { step.before(record); }) step.before(record);
    if (__builtin_expect(cancellation_ != nullptr && cancellation_->is_asked(), 0))
      return failed(record, cancelled_error("cancelled").value());
    if constexpr (recorded)
      if (record.stretch > 0 && replayed(record, &at)) continue;
    if (__builtin_expect(record.kind == Kind::launch, 1)) {
      const heddle_hal_launch* work = &record.launch;
      if (joined && record.together > 0) {
        const Together& together = *launches_[record.together - 1];
        work = &together.launch;
        next = at + together.count;
      }
      if (__builtin_expect(launch(device, work) != 0, 0))
        return failed(record, device_.last_error("cannot launch").value());
    } else if (Status status = execute(record, &next); !status) {
      return status;
    }
    step(record);
    at = next;
  }
  return {};
}

Status CommandList::run() {
  if (streams_) return run_streams();
  const auto nothing = [](const Record&) {};
  if (is_recorded()) return run_records<true, true>(0, records_.size(), nothing);
  return run_records<true>(0, records_.size(), nothing);
}

Status CommandList::wait_for_all(const Record& record) {
  const heddle_hal& hal = device_.hal();
  if (hal.wait(hal.device) == 0) return {};
  return failed(record, device_.last_error("cannot wait").value());
}

Status CommandList::wait_for_other(size_t command, size_t other) {
  Status status = streams_->wait(command, other);
  return status ? status : failed(records_[first_record_[command]], status.error());
}

Status CommandList::run_on_stream(size_t command) {
  const heddle_hal& hal = device_.hal();
  heddle_hal_stream* stream = streams_->stream(command);
  const Record& begin = records_[std::min<size_t>(first_record_[command], records_.size() - 1)];
  if (Status ready = streams_->begin(command); !ready) return failed(begin, ready.error());
  for (size_t at = first_record_[command], next = at; at < first_record_[command + 1]; at = next) {
    const Record& record = records_[at];
    next = at + 1;
    void* const* slots = record.launch.buffers;
    if (record.kind == Kind::launch) {
      if (hal.launch_on(hal.device, stream, &record.launch) != 0)
        return failed(record, device_.last_error("cannot launch").value());
    } else if (record.kind == Kind::copy) {
      const bool crosses = !stays_on_device(record);
      if (crosses && record.jump == to_device)
        HEDDLE_RETURN_IF_ERROR(settle(record, /*writes_only=*/true));
      if (hal.copy_on(hal.device, stream, slots[1], slots[0], record.launch.tasks) != 0)
        return failed(record, device_.last_error("cannot copy").value());
      reads_host_ = reads_host_ || (crosses && record.jump == to_device);
      writes_host_ = writes_host_ || (crosses && record.jump == to_host);
    } else {  // the host reads computed values
      HEDDLE_RETURN_IF_ERROR(wait_for_all(record));
      HEDDLE_RETURN_IF_ERROR(execute(record, &next));
    }
  }
  if (Status ended = streams_->end(command); !ended) return failed(begin, ended.error());
  return {};
}

// A command that runs alone is on the device's own stream; the host waits before and after it.
Status CommandList::run_on_streams(size_t command) {
  if (command == 0) all_waited_ = false;
  if (records_.empty()) return {};
  const size_t first = first_record_[command], end = first_record_[command + 1];
  const bool alone = streams_->is_alone(command);
  if (first == end && !alone && !streams_->records(command)) return {};
  const Record& record = records_[std::min(first, records_.size() - 1)];
  if (cancellation_ != nullptr && cancellation_->is_asked())
    return failed(record, cancelled_error("cancelled").value());
  if (alone || !all_waited_) HEDDLE_RETURN_IF_ERROR(wait_for_all(record));
  all_waited_ = !alone;
  return alone ? run_records<false>(first, end, [](const Record&) {}) : run_on_stream(command);
}

Status CommandList::run_streams() {
  for (size_t command = 0; command + 1 < first_record_.size(); ++command)
    HEDDLE_RETURN_IF_ERROR(run_on_streams(command));
  return {};
}

Status CommandList::run_command(size_t command) {
  return run_records<false>(first_record_[command], first_record_[command + 1],
                            [](const Record&) {});
}

Status CommandList::run_timed(std::span<CommandTime> times) {
  return run_timed_records(0, records_.size(), times);
}

Status CommandList::run_timed_command(size_t command, std::span<CommandTime> times) {
  return run_timed_records(first_record_[command], first_record_[command + 1], times);
}

Status CommandList::run_timed_records(size_t at, size_t end, std::span<CommandTime> times) {
  const bool traced = trace::recording();
  const int64_t first = traced ? program::command_count(*program_, program_->once) : 0;
  int64_t begin_ns = trace::now_ns(), so_far_ns = 0;
  uint32_t last = UINT32_MAX;
  auto after = [&](const Record& record) {
    const int64_t end_ns = trace::now_ns(), took_ns = end_ns - begin_ns;
    CommandTime& time = times[record.command];
    time.total_ns += took_ns;
    // A command's time is the sum over its consecutive records.
    so_far_ns = record.begins || record.command != last ? took_ns : so_far_ns + took_ns;
    last = record.command;
    if (record.begins && record.kind != Kind::nothing) ++time.count;
    const bool ends = &record + 1 == records_.data() + records_.size() || (&record + 1)->begins ||
                      (&record + 1)->command != record.command;
    if (ends && (time.min_ns == 0 || so_far_ns < time.min_ns)) time.min_ns = so_far_ns;
    begin_ns = end_ns;
    const bool control = record.kind >= Kind::nothing;
    if (!traced || !ends || control) return;
    const program::CommandInfo& info = *infos_[record.command];
    trace::add(info.name, end_ns - so_far_ns, end_ns, info.operators,
               program::nodes_text(info.nodes, kMostTracedNodes));
    const int64_t number = first + record.command;
    trace::add_counter("temporaries", end_ns,
                       program::covered_bytes(program::alive(*program_, number, number + 1)));
    begin_ns = trace::now_ns();  // the time to record the event is not charged to the next command
  };
  struct Step {
    decltype(after)& done;
    const std::vector<const program::CommandInfo*>& infos;
    void before(const Record& record) const { trace::set_work(infos[record.command]->name); }
    void operator()(const Record& record) const { done(record); }
  };
  Status status = run_records<false>(at, end, Step{after, infos_});
  trace::set_work({});
  return status;
}

}  // namespace heddle::runtime
