#include "runtime/command_list.h"

#include "base/check.h"
#include "base/trace.h"
#include "program/views.h"

namespace heddle::runtime {

using program::Command;
using program::Copy;
using program::HostCall;
using program::Launch;
using program::View;

CommandList::CommandList(const Device& device, const program::Program& program,
                         const Functions& functions, const LinkedSection& section)
    : device_(device), section_(&section), patches_(program.buffers.size()) {
  // Records point into these two, so they take their final size first.
  size_t slots = 0, dims = 0;
  for (const Command& command : *section.commands) {
    program::for_each_view(command, [&](const View&, program::Use) { ++slots; });
    if (const auto* launch = std::get_if<Launch>(&command)) dims += launch->dims.size();
  }
  slots_.reserve(slots);
  dims_.reserve(dims);
  for (size_t i = 0; i < section.commands->size(); ++i) {
    const Command& command = (*section.commands)[i];
    first_record_.push_back(static_cast<uint32_t>(records_.size()));
    if (const auto* launch = std::get_if<Launch>(&command)) {
      add(*launch, program, functions);
    } else if (const auto* copy = std::get_if<Copy>(&command)) {
      add(*copy);
    } else {
      add(std::get<HostCall>(command), section.host[i]);
    }
    for (size_t r = first_record_.back(); r < records_.size(); ++r)
      records_[r].command = static_cast<uint32_t>(i);
  }
  first_record_.push_back(static_cast<uint32_t>(records_.size()));
  HEDDLE_CHECK(slots_.size() == slots && dims_.size() == dims);
}

void CommandList::add_slot(const View& view) {
  patches_[view.buffer.index()].push_back(
      {static_cast<uint32_t>(slots_.size()), view.offset_bytes});
  slots_.push_back(nullptr);
}

void CommandList::add(const Launch& launch, const program::Program& program,
                      const Functions& functions) {
  void* const* buffers = slots_.data() + slots_.size();
  for (const View& view : launch.arguments) add_slot(view);
  const int64_t* dims = dims_.data() + dims_.size();
  dims_.insert(dims_.end(), launch.dims.begin(), launch.dims.end());
  const program::Kernel& kernel = program.kernels[launch.kernel.index()];
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    Record record;
    record.launch.function = functions[launch.kernel.index()][phase];
    record.launch.buffers = buffers;
    record.launch.dims = dims;
    record.launch.tasks = kernel.phases[phase].tasks;
    record.launch.serial = kernel.phases[phase].serial || record.launch.tasks <= 1;
    if (!record.launch.serial) has_parallel_ = true;
    records_.push_back(record);
  }
}

void CommandList::add(const Copy& copy) {
  Record record;
  record.kind = Kind::copy;
  record.launch.buffers = slots_.data() + slots_.size();
  record.launch.tasks = program::stored_bytes(copy.from.shape);
  add_slot(copy.from);
  add_slot(copy.to);
  records_.push_back(record);
}

void CommandList::add(const HostCall& call, const HostCallable& function) {
  Record record;
  record.kind = Kind::host;
  record.host = static_cast<uint32_t>(hosts_.size());
  record.launch.buffers = slots_.data() + slots_.size();
  HostRecord host{&function, {}, {}};
  for (const View& view : call.arguments) {
    add_slot(view);
    host.arguments.push_back({&view.shape, nullptr});
  }
  for (const View& view : call.results) {
    add_slot(view);
    host.results.push_back({&view.shape, nullptr});
  }
  hosts_.push_back(std::move(host));
  records_.push_back(record);
}

void CommandList::set_base(program::BufferId buffer, char* base) {
  // An empty buffer has no memory; its views are empty too.
  for (const Patch& patch : patches_[buffer.index()])
    slots_[patch.slot] = base == nullptr ? nullptr : base + patch.offset_bytes;
}

void CommandList::set_scratch(char* scratch, int64_t stride_bytes) {
  for (Record& record : records_) {
    record.launch.scratch = scratch;
    record.launch.scratch_stride_bytes = stride_bytes;
  }
}

Status CommandList::failed(const Record& record, Error error) const {
  return error_in((*section_->info)[record.command].name, std::move(error));
}

Status CommandList::execute(const Record& record) {
  const heddle_hal& hal = device_.hal();
  if (record.kind == Kind::copy) {
    if (hal.copy(hal.device, record.launch.buffers[1], record.launch.buffers[0],
                 record.launch.tasks) != 0)
      return failed(record, device_.last_error("cannot copy").value());
    return {};
  }
  if (record.kind == Kind::launch) {
    if (hal.launch(hal.device, &record.launch) != 0)
      return failed(record, device_.last_error("cannot launch").value());
    return {};
  }
  HostRecord& host = hosts_[record.host];
  void* const* slot = record.launch.buffers;
  for (HostArgument& argument : host.arguments) argument.data = *slot++;
  for (HostResult& result : host.results) result.data = *slot++;
  // What was launched before must have run before the host looks at it.
  if (hal.wait(hal.device) != 0) return failed(record, device_.last_error("cannot wait").value());
  Status status = (*host.function)(host.arguments, host.results);
  if (!status) return failed(record, status.error());
  return {};
}

Status CommandList::run() {
  const heddle_hal& hal = device_.hal();
  const auto launch = hal.launch;
  void* const device = hal.device;
  for (const Record& record : records_) {
    if (__builtin_expect(record.kind == Kind::launch, 1)) {
      if (__builtin_expect(launch(device, &record.launch) == 0, 1)) continue;
      return failed(record, device_.last_error("cannot launch").value());
    }
    if (Status status = execute(record); !status) return status;
  }
  return {};
}

Status CommandList::run_command(size_t command) {
  for (size_t r = first_record_[command]; r < first_record_[command + 1]; ++r)
    if (Status status = execute(records_[r]); !status) return status;
  return {};
}

Status CommandList::run_timed(std::span<CommandTime> times) {
  const bool traced = trace::recording();
  int64_t begin_ns = trace::now_ns();
  for (size_t command = 0; command + 1 < first_record_.size(); ++command) {
    if (Status status = run_command(command); !status) return status;
    const int64_t end_ns = trace::now_ns(), took_ns = end_ns - begin_ns;
    CommandTime& time = times[command];
    time.min_ns = time.count == 0 ? took_ns : std::min(time.min_ns, took_ns);
    time.total_ns += took_ns;
    ++time.count;
    begin_ns = end_ns;
    if (!traced) continue;
    const program::CommandInfo& info = (*section_->info)[command];
    trace::add(info.name, end_ns - took_ns, end_ns, info.operators);
    begin_ns = trace::now_ns();  // recording is not the next command's time
  }
  return {};
}

}  // namespace heddle::runtime
