#include "runtime/command_list.h"

#include "base/check.h"
#include "program/side_by_side.h"
#include "program/spaces.h"
#include "program/views.h"

namespace heddle::runtime {

using program::Branch;
using program::Carried;
using program::Command;
using program::CommandInfo;
using program::Concatenate;
using program::Copy;
using program::HostCall;
using program::Launch;
using program::LibraryCall;
using program::Loop;
using program::Update;
using program::View;

namespace {

constexpr int64_t kShares = 4096;  // tasks of a merged launch of several kernels

}  // namespace

CommandList::CommandList(const Device& device, const program::Program& program,
                         const Functions& functions, const LinkedSection& section)
    : device_(device),
      program_(&program),
      functions_(&functions),
      section_(&section),
      boxes_(place_boxes(program, *section.commands)),
      patches_(program.buffers.size()),
      host_patches_(program.buffers.size()),
      bases_(program.buffers.size()),
      recordings_(device),
      on_device_(program.buffers.size()) {
  // Records point into these arrays, so reserve their final size first.
  size_t slots = 0, dims = 0, accesses = 0;
  program::for_each_command(
      program, *section.commands, *section.info, [&](const Command& command, const auto&, int) {
        program::for_each_view(command, [&](const View&, program::Use) { ++slots; });
        const auto* launch = std::get_if<Launch>(&command);
        if (launch == nullptr) return;
        dims += launch->dims.size();
        accesses += launch->arguments.size();
      });
  slots_.reserve(slots);
  accesses_.reserve(accesses);
  dims_.reserve(dims);
  add_commands(*section.commands, *section.info, /*own=*/true);
  first_record_.push_back(static_cast<uint32_t>(records_.size()));
  HEDDLE_CHECK(slots_.size() <= slots && dims_.size() == dims && accesses_.size() == accesses);
  for (const Record& record : records_)
    if (record.together > 0) launches_[record.together - 1]->first = &record;
}

void CommandList::add_commands(const std::vector<Command>& commands,
                               const std::vector<CommandInfo>& info, bool own) {
  std::vector<size_t> firsts;
  for (size_t i = 0; i < commands.size(); ++i) {
    const size_t first = records_.size();
    firsts.push_back(first);
    if (own) first_record_.push_back(static_cast<uint32_t>(first));
    infos_.push_back(&info[i]);
    std::visit([&](const auto& command) { add(command); }, commands[i]);
    records_[first].begins = true;
  }
  firsts.push_back(records_.size());
  join_launches(program::side_by_side(*program_, commands), firsts);
}

// Only on the cpu device: the merged launch calls the kernels from one host function.
void CommandList::join_launches(const std::vector<size_t>& groups,
                                const std::vector<size_t>& firsts) {
  if (std::string_view(device_.hal().name) != "cpu") return;
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t first = firsts[i], end = firsts[i + groups[i]];
    if (groups[i] < 2 || end - first != groups[i]) continue;  // a result is stored in place
    auto made = std::make_unique<Together>(Together{nullptr, groups[i], 0, {}});
    made->self = reinterpret_cast<int64_t>(made.get());
    made->launch.function = reinterpret_cast<const void*>(&run_together);
    made->launch.dims = &made->self;
    made->launch.tasks = kShares;
    made->launch.serial = 1;
    for (size_t r = first; r < end; ++r) made->launch.serial &= records_[r].launch.serial;
    launches_.push_back(std::move(made));
    records_[first].together = static_cast<uint32_t>(launches_.size());
  }
}

// A share of the merged tasks is the same share of each kernel's tasks; every other kernel is split
// from its end, so that short kernels do not all fall to the same worker.
void CommandList::run_together(void* const*, const int64_t* dims, int64_t begin, int64_t end,
                               void* scratch) {
  using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);
  const auto& together = *reinterpret_cast<const Together*>(dims[0]);
  for (size_t i = 0; i < together.count; ++i) {
    const heddle_hal_launch& launch = together.first[i].launch;
    const bool turned = i % 2 == 1;
    const int64_t from = launch.tasks * (turned ? kShares - end : begin) / kShares;
    const int64_t to = launch.tasks * (turned ? kShares - begin : end) / kShares;
    if (from < to)
      reinterpret_cast<Kernel>(const_cast<void*>(launch.function))(launch.buffers, launch.dims,
                                                                   from, to, scratch);
  }
}

CommandList::Record& CommandList::add_record(Kind kind, uint32_t command) {
  Record& record = records_.emplace_back();
  record.kind = kind;
  record.command = command;
  record.launch.buffers = next_slots();
  return record;
}

void CommandList::add_slot(const View& view, program::Space space) {
  const bool host = program_->own_memory && space == program::Space::host &&
                    program_->buffers[view.buffer.index()].kind == program::BufferKind::constant;
  (host ? host_patches_ : patches_)[view.buffer.index()].push_back(
      {static_cast<uint32_t>(slots_.size()), view.offset_bytes});
  slots_.push_back(nullptr);
}

void CommandList::add(const Launch& launch) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  const auto boxes = boxes_.of_launch.find(&launch);
  if (boxes != boxes_.of_launch.end()) {
    const size_t first = updates_.size();
    for (const PlacedBox& box : boxes->second) {
      add_record(Kind::aim, command).index = static_cast<uint32_t>(updates_.size());
      add_box(*box.update);
    }
    for (size_t i = 0; i < boxes->second.size(); ++i)
      updates_[first + i].aimed = static_cast<uint32_t>(slots_.size() + boxes->second[i].argument);
  }
  void* const* buffers = next_slots();
  const heddle_hal_access* accesses = accesses_.data() + accesses_.size();
  for (const View& view : launch.arguments) add_slot(view);
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    accesses_.push_back({program::stored_bytes(launch.arguments[i].shape),
                         place < launch.inputs || place >= launch.inputs + launch.outputs,
                         place >= launch.inputs});
  }
  const int64_t* dims = dims_.data() + dims_.size();
  dims_.insert(dims_.end(), launch.dims.begin(), launch.dims.end());
  const program::Kernel& kernel = program_->kernels[launch.kernel.index()];
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    Record& record = add_record(Kind::launch, command);
    record.launch.function = (*functions_)[launch.kernel.index()][phase];
    record.launch.buffers = buffers;
    record.launch.dims = dims;
    record.launch.buffer_count = static_cast<int64_t>(launch.arguments.size());
    record.launch.dim_count = static_cast<int64_t>(launch.dims.size());
    record.launch.accesses = accesses;
    record.launch.tasks = kernel.phases[phase].tasks;
    record.launch.serial = kernel.phases[phase].serial || record.launch.tasks <= 1;
    if (!record.launch.serial) has_parallel_ = true;
  }
}

void CommandList::add(const Copy& copy) {
  const bool on_host = program::is_on_host(*program_, copy);
  Record& record =
      add_record(on_host ? Kind::host_copy : Kind::copy, static_cast<uint32_t>(infos_.size() - 1));
  record.launch.tasks = program::stored_bytes(copy.from.shape);
  if (program::goes_to_device(*program_, copy)) record.jump = to_device;
  if (program::goes_to_host(*program_, copy)) record.jump = to_host;
  const View& on_hosts_side = record.jump == to_device ? copy.from : copy.to;
  record.index = static_cast<uint32_t>(on_hosts_side.buffer.index());
  add_slot(copy.from, on_host ? program::Space::host : program::Space::device);
  add_slot(copy.to);
}

void CommandList::add(const HostCall& call) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  add_record(Kind::host, command).index = static_cast<uint32_t>(hosts_.size());
  HostRecord host{&section_->host[command], {}, {}};
  for (const View& view : call.arguments) {
    add_slot(view, program::Space::host);
    host.arguments.push_back({&view.shape, nullptr});
  }
  for (const View& view : call.results) {
    add_slot(view);
    host.results.push_back({&view.shape, nullptr});
  }
  hosts_.push_back(std::move(host));
}

void CommandList::add(const LibraryCall& call) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  auto run = std::make_unique<LibraryRun>();
  run->work = section_->library[command].get();
  run->self = reinterpret_cast<int64_t>(run.get());
  Record& record = add_record(Kind::library, command);
  record.index = static_cast<uint32_t>(library_runs_.size());
  record.launch.function = reinterpret_cast<const void*>(&run_library);
  record.launch.dims = &run->self;
  record.launch.dim_count = 1;
  record.launch.buffer_count = static_cast<int64_t>(call.arguments.size()) + 1;
  record.launch.tasks = run->work->tasks();
  record.launch.serial = record.launch.tasks <= 1;
  if (!record.launch.serial) has_parallel_ = true;
  for (const View& view : call.arguments) add_slot(view);
  add_slot(call.result);
  library_runs_.push_back(std::move(run));
}

void CommandList::add(const Update& update) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  if (boxes_.updates.count(&update)) {
    add_record(Kind::nothing, command);
    return;
  }
  add_record(Kind::update, command).index = static_cast<uint32_t>(updates_.size());
  add_box(update);
}

// Trailing dimensions that the slice fills form one contiguous run with the dimension before them.
void CommandList::add_box(const Update& update) {
  const bool on_host = program::is_on_host(*program_, update);
  const program::Space space = on_host ? program::Space::host : program::Space::device;
  add_slot(update.operand, space);
  add_slot(update.update, space);
  add_slot(update.result, space);
  for (const View& view : update.starts) add_slot(view, program::Space::host);
  const std::vector<int64_t> all = update.operand.shape.extents();
  const std::vector<int64_t> box = update.update.shape.extents();
  UpdateRecord& made = updates_.emplace_back();
  made.on_host = on_host;
  made.dims.resize(all.size());
  int64_t stride = tensor::type_bytes(update.operand.shape.type());
  made.run_bytes = stride;
  bool run = true;
  for (size_t d = all.size(); d-- > 0;) {
    made.dims[d] = {all[d] - box[d], stride, update.starts[d].shape.type()};
    if (run) {
      made.run_bytes *= box[d];
      run = box[d] == all[d];
    } else if (box[d] != 1) {
      made.loops.insert(made.loops.begin(), {box[d], stride});
    }
    stride *= all[d];
  }
  made.at.resize(made.loops.size());
}

void CommandList::add(const Concatenate& concatenate) {
  Record& record = add_record(Kind::concatenate, static_cast<uint32_t>(infos_.size() - 1));
  record.index = static_cast<uint32_t>(joins_.size());
  const bool on_host = program::is_on_host(*program_, concatenate);
  const program::Space space = on_host ? program::Space::host : program::Space::device;
  for (const View& view : concatenate.pieces) add_slot(view, space);
  add_slot(concatenate.result, space);
  JoinRecord& made = joins_.emplace_back();
  made.on_host = on_host;
  for (int64_t d = 0; d < concatenate.dimension; ++d) made.rows *= concatenate.result.shape.dim(d);
  if (made.rows == 0) return;
  for (const View& view : concatenate.pieces)
    made.row_bytes.push_back(program::stored_bytes(view.shape) / made.rows);
  made.stride_bytes = program::stored_bytes(concatenate.result.shape) / made.rows;
}

void CommandList::add_region(program::RegionId id) {
  const program::Region& region = program_->regions[id.index()];
  add_commands(region.commands, region.info, /*own=*/false);
}

void CommandList::add(const Loop& loop) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  const auto index = static_cast<uint32_t>(loops_.size());
  LoopRecord& made = loops_.emplace_back();
  for (const Carried& carried : loop.carried)
    if (carried.swapped)
      made.swaps.push_back(
          {carried.state.buffer, carried.next.buffer, program::stored_bytes(carried.state.shape),
           program_->buffers[carried.state.buffer.index()].space == program::Space::host});
  const bool swaps = !made.swaps.empty();
  add_record(Kind::enter, command);
  const auto head = static_cast<uint32_t>(records_.size());
  add_region(loop.condition);
  const size_t test = records_.size();
  add_record(Kind::test, command);
  add_slot(loop.predicate, program::Space::host);
  add_region(loop.body);
  Record& again = add_record(Kind::again, command);
  again.jump = head;
  again.index = index;
  records_[test].jump = static_cast<uint32_t>(records_.size());
  if (swaps) add_record(Kind::leave, command).index = index;
}

void CommandList::add(const Branch& branch) {
  const auto command = static_cast<uint32_t>(infos_.size() - 1);
  const auto count = static_cast<int64_t>(branch.regions.size());
  Record& select = add_record(Kind::select, command);
  select.index = static_cast<uint32_t>(targets_.size());
  select.launch.tasks = count;
  select.launch.serial = static_cast<int32_t>(branch.selector.shape.type());
  add_slot(branch.selector, program::Space::host);
  const size_t first_target = targets_.size();
  targets_.resize(first_target + branch.regions.size());
  std::vector<size_t> ends;
  for (size_t r = 0; r < branch.regions.size(); ++r) {
    targets_[first_target + r] = static_cast<uint32_t>(records_.size());
    add_region(branch.regions[r]);
    ends.push_back(records_.size());
    add_record(Kind::go, command);
  }
  for (size_t end : ends) records_[end].jump = static_cast<uint32_t>(records_.size());
}

void CommandList::point_slots(program::BufferId buffer, char* base) {
  // An empty buffer has no memory; its views are empty too.
  for (const Patch& patch : patches_[buffer.index()])
    slots_[patch.slot] = base == nullptr ? nullptr : base + patch.offset_bytes;
}

void CommandList::set_base(program::BufferId buffer, char* base, bool on_device) {
  bases_[buffer.index()] = base;
  if (on_device_[buffer.index()] != on_device) stretches_are_found_ = false;
  on_device_[buffer.index()] = on_device;
  point_slots(buffer, base);
}

void CommandList::set_host_base(program::BufferId buffer, const char* base) {
  for (const Patch& patch : host_patches_[buffer.index()])
    slots_[patch.slot] = const_cast<char*>(base) + patch.offset_bytes;
}

void CommandList::set_scratch(char* scratch, int64_t stride_bytes) {
  for (Record& record : records_) {
    record.launch.scratch = scratch;
    record.launch.scratch_stride_bytes = stride_bytes;
  }
  for (const auto& together : launches_) {
    together->launch.scratch = scratch;
    together->launch.scratch_stride_bytes = stride_bytes;
  }
}

}  // namespace heddle::runtime
