#include "runtime/pooled_run.h"

#include <algorithm>

#include "base/check.h"
#include "program/views.h"
#include "runtime/address_device.h"

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
      if (buffer.kind != BufferKind::temporary || buffer.bytes == 0) return;
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

Status PooledRun::before(size_t command, CommandList* list) {
  for (size_t b : touched_[command]) {
    Counted& block = blocks_[b];
    if (block.memory != nullptr) continue;
    HEDDLE_ASSIGN_OR_RETURN(block.memory, pool_.allocate(block.bytes));
    block.uses_left = block.uses;
    if (list == nullptr) continue;
    for (const Member& member : block.members)
      list->set_base(member.buffer, block.memory + member.offset_bytes);
  }
  return {};
}

void PooledRun::after(size_t command) {
  for (size_t b : touched_[command]) {
    Counted& block = blocks_[b];
    if (--block.uses_left > 0) continue;
    pool_.release(block.memory);
    block.memory = nullptr;
  }
}

void PooledRun::give_all_back() {
  for (Counted& block : blocks_) {
    pool_.release(block.memory);
    block.memory = nullptr;
  }
}

Status PooledRun::run(CommandList& list, std::span<CommandTime> times) {
  for (size_t c = 0; c < touched_.size(); ++c) {
    Status status = before(c, &list);
    if (status) status = times.empty() ? list.run_command(c) : list.run_timed_command(c, times);
    if (!status) {
      give_all_back();
      return status;
    }
    after(c);
  }
  return {};
}

Status PooledRun::rehearse() {
  for (size_t c = 0; c < touched_.size(); ++c) {
    if (Status status = before(c, nullptr); !status) {
      give_all_back();
      return status;
    }
    after(c);
  }
  end_run();
  return {};
}

int64_t pool_peak_bytes(const Program& program) {
  if (program.pool_blocks.empty()) return program.memory.plan_bytes;
  const AddressDevice addresses;
  const Device device = addresses.device();
  PooledRun run(device, program);
  for (int i = 0; i < 3; ++i) HEDDLE_CHECK(run.rehearse(), "addresses run out");
  return run.numbers().peak_held_bytes;
}

}  // namespace heddle::runtime
