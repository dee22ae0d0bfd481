#include "runtime/pooled_run.h"

#include <algorithm>

#include "base/check.h"
#include "program/views.h"
#include "runtime/address_device.h"
#include "runtime/command_ns.h"

namespace heddle::runtime {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::PoolBlock;
using program::Program;

PooledRun::PooledRun(const Device& device, const Program& program)
    : pool_(device), blocks_(program.pool_blocks.size()), touched_(program.commands.size()) {
  for (size_t b = 0; b < blocks_.size(); ++b) blocks_[b].bytes = program.pool_blocks[b].bytes;
  std::vector<bool> seen(program.buffers.size());
  for (size_t c = 0; c < program.commands.size(); ++c) {
    std::vector<size_t>& touched = touched_[c];
    const std::span one(&program.commands[c], 1);
    program::for_each_view_within(program, one, [&](const program::View& view, program::Use) {
      const Buffer& buffer = program.buffers[view.buffer.index()];
      if (buffer.kind != BufferKind::temporary || buffer.bytes == 0 ||
          buffer.space == program::Space::host)
        return;
      const auto above = std::upper_bound(
          program.pool_blocks.begin(), program.pool_blocks.end(), buffer.offset_bytes,
          [](int64_t offset, const PoolBlock& block) { return offset < block.offset_bytes; });
      const auto b = static_cast<size_t>(above - program.pool_blocks.begin()) - 1;
      touched.push_back(b);
      if (seen[view.buffer.index()]) return;
      seen[view.buffer.index()] = true;
      blocks_[b].members.push_back(
          {view.buffer, buffer.offset_bytes - program.pool_blocks[b].offset_bytes});
    });
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (size_t b : touched) ++blocks_[b].uses;
  }
}

void PooledRun::use_streams(program::StreamPlan plan) {
  streams_ = std::move(plan);
  std::vector<bool> found(touched_.size());
  std::vector<Pool::Clock> last(blocks_.size());
  for (size_t c = 0; c < touched_.size(); ++c)
    for (size_t b : touched_[c]) {
      last[b].resize(static_cast<size_t>(streams_->streams), 0);
      if (!streams_->alone[c])
        last[b][static_cast<size_t>(streams_->stream[c])] = static_cast<int64_t>(c) + 1;
    }
  for (const Pool::Clock& clock : last)
    for (int64_t command : clock)
      if (command > 0) found[static_cast<size_t>(command - 1)] = true;
  passed_ = std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(streams_->streams));
  last_uses_.clear();
  calls_.assign(found.size(), {nullptr, 0});
  for (size_t c = 0; c < found.size(); ++c)
    if (found[c]) {
      last_uses_.push_back(c);
      calls_[c] = {&passed_[static_cast<size_t>(streams_->stream[c])], static_cast<int64_t>(c) + 1};
    }
}

void PooledRun::has_passed(void* passed) {
  const auto& call = *static_cast<const Passed*>(passed);
  call.passed->store(call.command, std::memory_order_release);
}

namespace {

void join(Pool::Clock& clock, const Pool::Clock& other) {
  for (size_t s = 0; s < other.size(); ++s) clock[s] = std::max(clock[s], other[s]);
}

}  // namespace

// A command that runs alone is ordered after all earlier and before all later commands.
void PooledRun::begin_on_stream(size_t command) {
  if (streams_->alone[command]) {
    for (Pool::Clock& clock : now_)
      std::fill(clock.begin(), clock.end(), static_cast<int64_t>(command));
    return;
  }
  Pool::Clock& mine = now_[static_cast<size_t>(streams_->stream[command])];
  for (size_t other : streams_->waits[command]) join(mine, at_[other]);
}

Status PooledRun::end_on_stream(size_t command, CommandList* list) {
  const auto number = static_cast<int64_t>(command) + 1;
  if (streams_->alone[command]) {
    for (Pool::Clock& clock : now_) std::fill(clock.begin(), clock.end(), number);
    return {};
  }
  const auto stream = static_cast<size_t>(streams_->stream[command]);
  now_[stream][stream] = number;
  at_[command] = now_[stream];
  for (size_t b : touched_[command]) {
    Pool::Clock& last = blocks_[b].last;
    last.resize(now_.size(), 0);
    last[stream] = number;
  }
  if (list == nullptr || calls_[command].passed == nullptr) return {};
  return list->streams()->call(command, &PooledRun::has_passed, &calls_[command]);
}

Status PooledRun::take(size_t block, size_t command, CommandList* list) {
  Counted& taken = blocks_[block];
  if (!on_streams_) {
    HEDDLE_ASSIGN_OR_RETURN(taken.memory, pool_.allocate(taken.bytes));
    return {};
  }
  Pool::Clock& mine = now_[static_cast<size_t>(streams_->stream[command])];
  Pool::Clock behind;
  HEDDLE_ASSIGN_OR_RETURN(taken.memory, pool_.allocate(taken.bytes, &mine, &behind));
  taken.last.clear();
  if (list != nullptr && !behind.empty()) list->streams()->poll();
  for (size_t s = 0; s < behind.size(); ++s) {
    if (behind[s] <= mine[s]) continue;
    const auto other = static_cast<size_t>(behind[s] - 1);
    if (list != nullptr && passed_[s].load(std::memory_order_acquire) < behind[s])
      HEDDLE_RETURN_IF_ERROR(list->wait_for_other(command, other));
    join(mine, at_[other]);
  }
  return {};
}

Status PooledRun::before(size_t command, CommandList* list) {
  if (on_streams_) begin_on_stream(command);
  for (size_t b : touched_[command]) {
    Counted& block = blocks_[b];
    if (block.memory != nullptr) continue;
    HEDDLE_RETURN_IF_ERROR(take(b, command, list));
    block.uses_left = block.uses;
    if (list == nullptr) continue;
    for (const Member& member : block.members)
      list->set_base(member.buffer, block.memory + member.offset_bytes);
  }
  return {};
}

Status PooledRun::after(size_t command, CommandList* list) {
  if (on_streams_) HEDDLE_RETURN_IF_ERROR(end_on_stream(command, list));
  for (size_t b : touched_[command]) {
    Counted& block = blocks_[b];
    if (--block.uses_left > 0) continue;
    pool_.release(block.memory, block.last);
    block.memory = nullptr;
  }
  return {};
}

void PooledRun::give_all_back() {
  for (Counted& block : blocks_) {
    pool_.release(block.memory);
    block.memory = nullptr;
  }
}

Status PooledRun::walk(CommandList* list, std::span<CommandTime> times) {
  pool_.forget_clocks();
  on_streams_ = streams_ && times.empty() && (list == nullptr || list->streams() != nullptr);
  const auto count = static_cast<size_t>(on_streams_ ? streams_->streams : 0);
  now_.assign(count, Pool::Clock(count, 0));
  at_.assign(on_streams_ ? touched_.size() : 0, {});
  for (Counted& block : blocks_) block.last.clear();
  for (size_t s = 0; s < count; ++s) passed_[s].store(0, std::memory_order_relaxed);
  for (size_t c = 0; c < touched_.size(); ++c) {
    Status status = before(c, list);
    if (status && list != nullptr)
      status = on_streams_     ? list->run_on_streams(c)
               : times.empty() ? list->run_command(c)
                               : list->run_timed_command(c, times);
    if (status) status = after(c, list);
    if (!status) {
      give_all_back();
      return status;
    }
  }
  return {};
}

Status PooledRun::run(CommandList& list, std::span<CommandTime> times) {
  return walk(&list, times);
}

void PooledRun::end_run() {
  pool_.forget_clocks();
  pool_.consolidate();
}

Status PooledRun::rehearse() {
  HEDDLE_RETURN_IF_ERROR(walk(nullptr, {}));
  end_run();
  return {};
}

int64_t pool_peak_bytes(const Program& program, int64_t most_streams) {
  if (program.pool_blocks.empty()) return program.memory.plan_bytes;
  const AddressDevice addresses;
  const Device device = addresses.device();
  PooledRun run(device, program);
  if (most_streams > 1) {
    program::StreamOptions options;
    options.most_streams = most_streams;
    program::StreamPlan plan =
        program::plan_streams(program, program.commands, command_ns(program), options);
    if (plan.streams > 1) run.use_streams(std::move(plan));
  }
  for (int i = 0; i < 3; ++i) HEDDLE_CHECK(run.rehearse(), "addresses run out");
  return run.numbers().peak_held_bytes;
}

}  // namespace heddle::runtime
