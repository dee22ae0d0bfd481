#include "memory_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "program/nodes_text.h"
#include "program/views.h"
#include "report.h"

namespace heddle::tools {
namespace {

constexpr int64_t kColumns = 64, kRows = 12;  // of the map in text
constexpr size_t kListed = 8;                 // buffers at the peak

std::vector<const PlannedBuffer*> alive_at(const MemoryPlan& plan, int64_t command) {
  std::vector<const PlannedBuffer*> alive;
  for (const PlannedBuffer& buffer : plan.buffers)
    if (buffer.first <= command && command <= buffer.last) alive.push_back(&buffer);
  std::stable_sort(alive.begin(), alive.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return alive;
}

// Buffers may lie on one another where one is made in place of the other.
int64_t covered_bytes(std::vector<const PlannedBuffer*> buffers) {
  std::sort(buffers.begin(), buffers.end(),
            [](const auto* a, const auto* b) { return a->offset_bytes < b->offset_bytes; });
  int64_t covered = 0, end = 0;
  for (const PlannedBuffer* buffer : buffers) {
    const int64_t last = buffer->offset_bytes + buffer->bytes;
    covered += std::max<int64_t>(0, last - std::max(end, buffer->offset_bytes));
    end = std::max(end, last);
  }
  return covered;
}

std::string command_name(const MemoryPlan& plan, int64_t command) {
  const auto place = static_cast<size_t>(command);
  return place < plan.commands.size() ? plan.commands[place] : "";
}

}  // namespace

MemoryPlan memory_plan_of(const program::Program& program) {
  MemoryPlan plan;
  std::vector<const program::CommandInfo*> infos;
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const program::Command&, const program::CommandInfo& info, int) {
                              infos.push_back(&info);
                              plan.commands.push_back(program::where_text(info.name, info.nodes));
                            });
  const int64_t begin = program::command_count(program, program.once);
  for (const program::Buffer& buffer : program.buffers) {
    const bool is_run = buffer.first_command >= begin && buffer.last_command >= begin;
    if (buffer.kind != program::BufferKind::temporary || buffer.bytes == 0 || !is_run ||
        buffer.space == program::Space::host)
      continue;
    const int64_t first = buffer.first_command - begin;
    const bool known = first < std::ssize(infos);
    plan.buffers.push_back(
        {known ? program::where_text(buffer.name, infos[static_cast<size_t>(first)]->nodes)
               : buffer.name,
         buffer.offset_bytes, buffer.bytes, first, buffer.last_command - begin});
    plan.bytes = std::max(plan.bytes, buffer.offset_bytes + buffer.bytes);
  }
  std::stable_sort(plan.buffers.begin(), plan.buffers.end(),
                   [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; });
  // Only where something begins can there be more than before.
  for (const PlannedBuffer& buffer : plan.buffers) {
    const int64_t bytes = covered_bytes(alive_at(plan, buffer.first));
    if (bytes < plan.peak_bytes || (bytes == plan.peak_bytes && buffer.first >= plan.peak_command))
      continue;
    plan.peak_bytes = bytes;
    plan.peak_command = buffer.first;
  }
  return plan;
}

std::string text_of(const MemoryPlan& plan) {
  if (plan.buffers.empty()) return "";
  const auto commands = std::max<int64_t>(1, static_cast<int64_t>(plan.commands.size()));
  const int64_t columns = std::min(kColumns, commands);
  // A letter of every buffer where it covers the middle of a piece of address and time.
  std::array<std::string, kRows> map;
  map.fill(std::string(static_cast<size_t>(columns), '.'));
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlannedBuffer& buffer = plan.buffers[i];
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t address = (2 * row + 1) * plan.bytes / (2 * kRows);
      if (address < buffer.offset_bytes || address >= buffer.offset_bytes + buffer.bytes) continue;
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t time = (2 * column + 1) * commands / (2 * columns);
        if (time >= buffer.first && time <= buffer.last)
          map[static_cast<size_t>(row)][static_cast<size_t>(column)] =
              static_cast<char>('a' + i % 26);
      }
    }
  }
  std::string text;
  for (size_t row = kRows; row-- > 0;)
    text += fmt::format("  {:>10} |{}|\n",
                        bytes_text(static_cast<int64_t>(row + 1) * plan.bytes / kRows), map[row]);
  text += fmt::format("  {:>10} 0 … {} commands, one letter per buffer\n", "", commands);
  const auto alive = alive_at(plan, plan.peak_command);
  text +=
      fmt::format("  at the peak, command {} ({}), {} in {} buffers:\n", plan.peak_command,
                  command_name(plan, plan.peak_command), bytes_text(plan.peak_bytes), alive.size());
  for (size_t i = 0; i < std::min(kListed, alive.size()); ++i)
    text +=
        fmt::format("    {:>10} at {:>10}, commands {} to {}: {}\n", bytes_text(alive[i]->bytes),
                    alive[i]->offset_bytes, alive[i]->first, alive[i]->last, alive[i]->name);
  return text;
}

std::string crossings_text(const program::Crossings& crossings,
                           const program::MemoryNumbers& host) {
  return fmt::format(
      "copies: {} to the device ({}), {} to the host ({}), {} of them in loops; {} host "
      "calls\nhost temporaries: lower bound {}, plan {}, without reuse {}\n",
      crossings.to_device, bytes_text(crossings.to_device_bytes), crossings.to_host,
      bytes_text(crossings.to_host_bytes), crossings.in_loops, crossings.host_calls,
      bytes_text(host.lower_bound_bytes), bytes_text(host.plan_bytes),
      bytes_text(host.unshared_bytes));
}

nlohmann::ordered_json crossings_json(const program::Crossings& crossings,
                                      const program::MemoryNumbers& host) {
  return {{"copies_to_device", crossings.to_device},
          {"copies_to_device_bytes", crossings.to_device_bytes},
          {"copies_to_host", crossings.to_host},
          {"copies_to_host_bytes", crossings.to_host_bytes},
          {"copies_in_loops", crossings.in_loops},
          {"host_calls", crossings.host_calls},
          {"temporaries", host.plan_bytes},
          {"temporaries_lower_bound", host.lower_bound_bytes}};
}

}  // namespace heddle::tools
