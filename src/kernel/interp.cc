#include "kernel/interp.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "base/check.h"
#include "kernel/expand.h"
#include "kernel/interp_exec.h"
#include "kernel/verify.h"
#include "tensor/shape.h"

namespace heddle::kernel {
namespace {

constexpr size_t kMaxFaults = 20;
constexpr int64_t kMaxTasks = int64_t{1} << 30;
constexpr int64_t kMaxElems = int64_t{1} << 31;

// The reason why the kernel cannot be run; empty: none.
std::string refuse(const Kernel& kernel, const std::vector<void*>& memory,
                   const std::vector<int64_t>& dims) {
  if (Status status = verify(kernel); !status) {
    const std::string& message = status.error().message;
    return "the kernel is not valid: " + message.substr(0, message.find('\n'));
  }
  if (dims.size() != kernel.dims.size()) {
    return fmt::format("{} run-time dimensions are given, {} wanted", dims.size(),
                       kernel.dims.size());
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return fmt::format("dimension {} is {}", kernel.dims[i], dims[i]);
  }
  if (static_cast<int64_t>(memory.size()) != kernel.global_count()) {
    return fmt::format("{} buffers are given, {} wanted", memory.size(), kernel.global_count());
  }
  if (kernel.scratch_bytes > kMaxElems) return "too much scratch to interpret";
  for (const Buffer& buffer : kernel.buffers) {
    std::vector<int64_t> extents = buffer.extents;
    for (int64_t& extent : extents) {
      if (extent < 0) extent = dims[static_cast<size_t>(-1 - extent)];
    }
    extents.push_back(std::max(1, buffer.lanes));
    auto elems = tensor::checked_product(extents);
    if (!elems || *elems > kMaxElems)
      return fmt::format("buffer {} is too big to interpret", buffer.name);
  }
  for (const Phase& phase : kernel.phases) {
    double tasks = 0;
    for (const Group& group : phase.groups) {
      double product = 1;
      for (const GridDim& dim : group.grid) {
        product *=
            static_cast<double>(std::max<int64_t>(0, evaluate_extent(kernel, dim.extent, dims)));
      }
      tasks += product;
    }
    if (tasks > static_cast<double>(kMaxTasks)) return "a phase has too many tasks to interpret";
  }
  return "";
}

std::vector<int64_t> task_order(int64_t tasks, std::mt19937_64* random) {
  std::vector<int64_t> order(static_cast<size_t>(tasks));
  std::iota(order.begin(), order.end(), 0);
  if (random == nullptr) return order;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[(*random)() % i]);
  return order;
}

// In ascending order: the first, the last, and others chosen by `random`.
std::vector<int64_t> sample_of(int64_t tasks, int64_t most, std::mt19937_64* random) {
  std::set<int64_t> chosen = {0, tasks - 1};
  while (std::ssize(chosen) < most)
    chosen.insert(static_cast<int64_t>((*random)() % static_cast<uint64_t>(tasks)));
  return {chosen.begin(), chosen.end()};
}

// most_tasks: of the last phase; 0: all.
InterpReport run(const Kernel& kernel, const std::vector<void*>& memory,
                 const std::vector<int64_t>& dims, uint64_t seed, int64_t most_tasks) {
  InterpReport report;
  report.buffers.resize(kernel.buffers.size());
  if (std::string reason = refuse(kernel, memory, dims); !reason.empty()) {
    report.faults.push_back(reason);
    report.op_counts.resize(kOpCount);
    return report;
  }
  std::vector<std::string> problems;
  InterpMemory shadow(kernel, memory, dims, problems);
  InterpProgram program = make_program(kernel, dims);
  InterpExec exec(kernel, std::move(program), shadow, kMaxFaults);
  for (const std::string& problem : problems) exec.add_fault(problem);
  std::mt19937_64 random(seed);
  for (size_t p = 0; p < kernel.phases.size() && problems.empty(); ++p) {
    const int64_t tasks = task_count(kernel, kernel.phases[p], dims);
    shadow.begin_phase(tasks);
    const bool sampled = most_tasks > 0 && p + 1 == kernel.phases.size() && tasks > most_tasks;
    for (int64_t task : sampled ? sample_of(tasks, most_tasks, &random)
                                : task_order(tasks, seed == 0 ? nullptr : &random)) {
      exec.run_task(p, task);
      if (exec.stopped()) break;
    }
  }
  if (problems.empty() && !exec.stopped() && most_tasks == 0) {
    for (const std::string& missing : shadow.never_stored()) exec.add_fault(missing);
  }
  report = exec.take_report();
  report.buffers = shadow.counts();
  if (most_tasks > 0) report.stored = shadow.stored();
  return report;
}

}  // namespace

int64_t InterpReport::bank_conflicts() const {
  int64_t conflicts = 0;
  for (const BufferCounts& counts : buffers)
    conflicts += std::max<int64_t>(0, counts.bank_passes - counts.requests);
  return conflicts;
}

double InterpReport::sector_excess() const {
  int64_t sectors = 0, least = 0;
  for (const BufferCounts& counts : buffers) {
    sectors += counts.sectors;
    least += counts.least_sectors;
  }
  return least == 0 ? 1 : static_cast<double>(sectors) / static_cast<double>(least);
}

InterpReport interpret(const Kernel& kernel, const std::vector<void*>& memory,
                       const std::vector<int64_t>& dims, uint64_t seed) {
  if (!kernel.inner.empty() && verify(kernel))
    return run(expand_tables(kernel), memory, dims, seed, 0);
  return run(kernel, memory, dims, seed, 0);
}

InterpReport interpret_sample(const Kernel& kernel, const std::vector<void*>& memory,
                              int64_t most_tasks, uint64_t seed, const std::vector<int64_t>& dims) {
  HEDDLE_CHECK(most_tasks >= 2, "a sample of {} tasks", most_tasks);
  if (!kernel.inner.empty() && verify(kernel))
    return run(expand_tables(kernel), memory, dims, seed, most_tasks);
  return run(kernel, memory, dims, seed, most_tasks);
}

}  // namespace heddle::kernel
