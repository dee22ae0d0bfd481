#include "reducer.h"

#include <fmt/format.h>

#include <algorithm>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "opt/passes.h"
#include "pass/run.h"

namespace heddle::tools {
namespace {

using hlo::Instr;
using hlo::Module;

// Extents are tried from the smallest.
constexpr int64_t kExtents[] = {1, 2, 3, 4, 8, 16, 17, 32, 64, 128, 256, 1024, 4096};

bool apply_pass(Module& module, const char* pipeline) {
  const pass::PassTable table(opt::passes());
  pass::RunOptions options;
  options.verify = false;
  const auto report = pass::run(module, std::string(pipeline), table, options);
  return report && report->changed;
}

}  // namespace

Reducer::Reducer(std::unique_ptr<Module> module, ReducerHooks hooks)
    : module_(std::move(module)), hooks_(std::move(hooks)) {}

Result<bool> Reducer::attempt(const std::string& what, const Edit& edit) {
  if (done()) return false;
  std::unique_ptr<Module> next = module_->clone();
  if (!edit(*next)) return false;
  clean(*next);
  if (!(size_of(*next) < size_of(*module_)) || !hlo::verify(*next)) return false;
  const std::string text = hlo::to_string(*next);
  if (!tried_.insert(text).second) return false;
  ++trials_;
  HEDDLE_ASSIGN_OR_RETURN(const bool fails, hooks_.fails(text));
  if (!fails) return false;
  module_ = std::move(next);
  progress_ = true;
  HEDDLE_RETURN_IF_ERROR(hooks_.accepted(text, size_of(*module_), what));
  return true;
}

std::vector<int64_t> Reducer::computations() const {
  std::vector<int64_t> ids = {module_->entry()->id()};
  for (const auto& computation : module_->computations())
    if (computation.get() != module_->entry()) ids.push_back(computation->id());
  return ids;
}

const hlo::Computation* Reducer::find(int64_t id) const {
  for (const auto& computation : module_->computations())
    if (computation->id() == id) return computation.get();
  return nullptr;
}

// Pieces of the list of instructions, from its end: halves, quarters, … single ones.
Status Reducer::drop_chunks(int64_t computation) {
  const auto ids_now = [&] {
    const hlo::Computation* found = find(computation);
    return found == nullptr ? std::vector<int64_t>{} : droppable(*found);
  };
  std::vector<int64_t> ids = ids_now();
  for (size_t size = std::max<size_t>(ids.size() / 2, 1); !ids.empty(); size /= 2) {
    for (size_t end = ids.size(); end > 0;) {
      const size_t begin = end > size ? end - size : 0;
      const std::vector<int64_t> chunk(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                       ids.begin() + static_cast<std::ptrdiff_t>(end));
      bool dropped = false;
      for (const bool cut : {false, true}) {
        HEDDLE_ASSIGN_OR_RETURN(
            dropped, attempt(fmt::format("{} instructions less", chunk.size()),
                             [&](Module& m) { return drop_instrs(m, computation, chunk, cut); }));
        if (dropped) break;
      }
      if (dropped) ids = ids_now();
      end = std::min(begin, ids.size());
    }
    if (size <= 1 || done()) break;
    size = std::min(size, std::max<size_t>(ids.size(), 2));
  }
  return {};
}

Status Reducer::free_all_constants() {
  std::vector<int64_t> ids = large_constants(*module_);
  for (size_t size = ids.size(); size > 0; size /= 2) {
    for (size_t begin = 0; begin < ids.size(); begin += size) {
      const std::vector<int64_t> chunk(
          ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), begin + size)));
      Result<bool> freed = attempt(fmt::format("{} constants are inputs", chunk.size()),
                                   [&](Module& m) { return free_constants(m, chunk); });
      if (!freed) return tl::unexpected<Error>(freed.error());
    }
    if (size == 1) break;
  }
  return {};
}

Status Reducer::run_passes() {
  for (const char* pipeline : {"inline_calls", "fold_tuples,dce", "simplify_control,dce",
                               "remove_identities,dce", "cse,dce", "hoist_invariant,dce"}) {
    Result<bool> ran = attempt(pipeline, [&](Module& m) { return apply_pass(m, pipeline); });
    if (!ran) return tl::unexpected<Error>(ran.error());
  }
  return {};
}

// One instruction at a time: its regions, one of its operands in its place, a plainer operator.
Status Reducer::edit_instrs(int64_t computation) {
  const hlo::Computation* found = find(computation);
  if (found == nullptr) return {};
  struct Target {
    int64_t id;
    std::string name;
    size_t operands, called;
  };
  std::vector<Target> targets;
  for (const Instr* instr : found->instrs())
    targets.push_back({instr->id(), std::string(hlo::opcode_text(instr->opcode())),
                       instr->operands().size(), instr->called().size()});
  std::reverse(targets.begin(), targets.end());
  for (const Target& target : targets) {
    bool gone = false;
    for (size_t i = 0; i < target.called && !gone; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(
          gone, attempt(fmt::format("a region of {}", target.name), [&](Module& m) {
            return take_region(m, computation, target.id, i) && apply_pass(m, "inline_calls");
          }));
    }
    for (size_t i = 0; i < target.operands && !gone; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(gone, attempt(fmt::format("without {}", target.name), [&](Module& m) {
                                return bypass(m, computation, target.id, i);
                              }));
    }
    if (gone) continue;
    Result<bool> plain = attempt(fmt::format("a plainer {}", target.name),
                                 [&](Module& m) { return plainest(m, computation, target.id); });
    if (!plain) return tl::unexpected<Error>(plain.error());
  }
  return {};
}

Status Reducer::shrink_extents() {
  for (int64_t from : extents_of(*module_)) {
    bool smaller = false;
    for (int64_t to : kExtents) {
      for (const bool multiples : {true, false}) {
        if (to >= from || smaller) break;
        HEDDLE_ASSIGN_OR_RETURN(
            smaller, attempt(fmt::format("extent {} is {}", from, to),
                             [&](Module& m) { return shrink_extent(m, from, to, multiples); }));
      }
    }
  }
  return {};
}

Status Reducer::round() {
  HEDDLE_RETURN_IF_ERROR(free_all_constants());
  for (int64_t computation : computations()) HEDDLE_RETURN_IF_ERROR(drop_chunks(computation));
  HEDDLE_RETURN_IF_ERROR(shrink_extents());
  HEDDLE_RETURN_IF_ERROR(run_passes());
  for (int64_t computation : computations()) HEDDLE_RETURN_IF_ERROR(edit_instrs(computation));
  return {};
}

Status Reducer::run() {
  Result<bool> extras =
      attempt("metadata, aliases and layouts", [](Module& m) { return drop_extras(m); });
  if (!extras) return tl::unexpected<Error>(extras.error());
  do {
    progress_ = false;
    HEDDLE_RETURN_IF_ERROR(round());
  } while (progress_ && !done());
  return {};
}

}  // namespace heddle::tools
