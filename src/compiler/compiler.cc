#include "compiler/compiler.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "cache/build_id.h"
#include "compiler/code_generator.h"
#include "compiler/donated.h"
#include "compiler/equal_fusions.h"
#include "compiler/join_kernels.h"
#include "compiler/kernel_fusions.h"
#include "compiler/make_kernel.h"
#include "compiler/mixed_precision.h"
#include "compiler/options.h"
#include "compiler/pending.h"
#include "compiler/pipeline.h"
#include "compiler/run_time.h"
#include "compiler/trim_kernels.h"
#include "cost/delta.h"
#include "cost/latency.h"
#include "hlo/dim_classes.h"
#include "hlo/loop_trips.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/share_with_twins.h"
#include "pass/files.h"
#include "pass/run.h"
#include "schedule/place.h"
#include "stitch/stitch.h"

namespace heddle::compiler {
namespace {

class Compilation {
 public:
  Compilation(std::unique_ptr<hlo::Module> module, const target::Target& target,
              const Options& options, Report* report)
      : module_(std::move(module)),
        target_(target),
        options_(options),
        report_(report),
        gpu_(target.kind == target::DeviceKind::gpu),
        gpu_code_(target, options.gpu_assembler) {}

  Result<program::Program> run(const plan::Names& names) {
    HEDDLE_RETURN_IF_ERROR(check_options());
    HEDDLE_RETURN_IF_ERROR(dump("0-imported.hlo", [&] { return dump_text(); }));
    HEDDLE_RETURN_IF_ERROR(timed("optimize", [&] { return optimize(); }));
    HEDDLE_RETURN_IF_ERROR(dump("1-optimized.hlo", [&] { return dump_text(); }));
    HEDDLE_RETURN_IF_ERROR(timed("fuse", [&] { return fuse_module(); }));
    HEDDLE_RETURN_IF_ERROR(dump("2-fused.hlo", [&] { return dump_text(); }));
    if (report_) report_->fused_module = hlo::to_string(*module_, {.max_constant_elems = 16});
    HEDDLE_RETURN_IF_ERROR(timed("stitch", [&] { return stitch_all(); }));
    HEDDLE_RETURN_IF_ERROR(lost_dump_);
    std::vector<uint8_t> object;
    HEDDLE_RETURN_IF_ERROR(timed("codegen", [&]() -> Status {
      if (texts_.empty() || !options_.code) return {};
      if (gpu_) {
        HEDDLE_ASSIGN_OR_RETURN(object, gpu_code_.object(options_.object_cache_directory));
        return {};
      }
      HEDDLE_ASSIGN_OR_RETURN(object, generate_object(texts_, target_, options_));
      return {};
    }));
    Result<program::Program> program = user_error("not planned");
    HEDDLE_RETURN_IF_ERROR(timed("plan", [&]() -> Status {
      program = plan::plan(*module_, kernels_, names, target_, plan_options(options_));
      return program ? Status() : Status(tl::unexpect, program.error());
    }));
    program->object = std::move(object);
    static const int anchor = 0;
    program->build_id = cache::build_id(&anchor);
    program->options = options_text(options_);
    program->notes.insert(program->notes.end(), notes_.begin(), notes_.end());
    return program;
  }

  Result<std::string> text_behind(const std::string& pass) {
    HEDDLE_RETURN_IF_ERROR(check_options());
    HEDDLE_RETURN_IF_ERROR(optimize());
    fuse::Covers covers(module_.get());
    pass::RunOptions run = fusing_pass_options(options_, pass_changes_.size());
    run.stop_after = pass;
    HEDDLE_ASSIGN_OR_RETURN(const pass::RunReport done,
                            run_fusing(&covers, options_, target_, run, nullptr, nullptr));
    if (!done.stopped)
      return user_error("stop after '{}': no such pass in {}", pass,
                        fusing_pipeline(options_, target_));
    return fuse::to_string(covers);
  }

  Result<std::unique_ptr<hlo::Module>> fused() {
    HEDDLE_RETURN_IF_ERROR(check_options());
    HEDDLE_RETURN_IF_ERROR(optimize());
    HEDDLE_RETURN_IF_ERROR(fuse_module());
    return std::move(module_);
  }

 private:
  Status check_options() const {
    HEDDLE_RETURN_IF_ERROR(check_precision(options_));
    return check_pass_names(options_);
  }

  template <typename Function>
  Status timed(const char* what, Function&& function) {
    if (options_.progress && !options_.progress(what))
      return cancelled_error("compilation cancelled before {}", what);
    auto start = std::chrono::steady_clock::now();
    Status status = function();
    if (report_)
      report_->times_ms.emplace_back(
          what, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                    .count());
    return status;
  }

  template <typename Text>
  Status dump(const std::string& name, Text&& text) const {
    if (options_.dump_directory.empty()) return {};
    Status written = pass::write_text(options_.dump_directory, name, text());
    return written ? written : error_in("--dump", written.error());
  }

  // Weights are left out: they are the model's, and can be gigabytes of text.
  std::string dump_text() const { return hlo::to_string(*module_, {.max_constant_elems = 4096}); }

  Status optimize() {
    HEDDLE_ASSIGN_OR_RETURN(pass::RunReport done,
                            pass::run(*module_, graph_pipeline(options_, target_), graph_passes(),
                                      pass_options(options_)));
    notes_ = done.notes;
    tell(done);
    pass_changes_ = std::move(done.changes);
    HEDDLE_ASSIGN_OR_RETURN(fused_, mix_precision(&module_, options_, target_, &notes_, report_));
    if (report_) report_->notes = notes_;
    return {};
  }

  void tell(const pass::RunReport& done) const {
    if (!report_) return;
    for (const pass::RunReport::PassRecord& one : done.passes)
      report_->passes.push_back({one.pass, one.runs, one.changes, one.time_ns});
    for (const auto& [name, count] : done.rewrites) report_->rewrites[name] += count;
  }

  // Takes the module as mix_precision() fused it, unless dumps or bisection need the passes to run.
  Status fuse_module() {
    if (!fused_ || !options_.dump_directory.empty() || options_.bisect_limit >= 0) {
      const pass::RunOptions run = fusing_pass_options(options_, pass_changes_.size());
      HEDDLE_ASSIGN_OR_RETURN(fused_, fused_module(std::move(module_), options_, target_, run));
    }
    module_ = std::move(fused_->module);
    const std::vector<fuse::Refusal>& refusals = fused_->refusals;
    const pass::RunReport& done = fused_->done;
    tell(done);
    notes_.insert(notes_.end(), done.notes.begin(), done.notes.end());
    pass_changes_.insert(pass_changes_.end(), done.changes.begin(), done.changes.end());
    if (Status verified = hlo::verify(*module_); !verified)
      HEDDLE_UNREACHABLE("after fuse: {}", verified.error().message);
    if (report_ && report_->mixed) report_->mixed->cast_kernels = count_cast_kernels(*module_);
    if (report_) report_->edges = unfused_edges(*module_, refusals, target_);
    if (!report_) return {};
    Report& said = fused_->report;
    std::move(said.refusals.begin(), said.refusals.end(), std::back_inserter(report_->refusals));
    for (const fuse::Refusal& refusal : refusals)
      report_->refusals.push_back(
          {refusal.producer, refusal.consumer, refusal.code, refusal.reason});
    report_->library_calls = std::move(said.library_calls);
    return {};
  }

  Status stitch_all() {
    // Twins and extents that are known at run time only are matched fusion by fusion.
    is_bounded_ = !hlo::symbols_of(*module_).empty();
    const bool one_by_one = gpu_ || !options_.twins.empty() || is_bounded_;
    std::vector<Pending> all = stitch_each(one_by_one);
    if (!gpu_) {
      for (const auto& [before, after] : trim_kernels(*module_, &all, run_, report_))
        described_.emplace(after, described_.at(before));
      HEDDLE_RETURN_IF_ERROR(share_with_twins_of(&all));
      share_alike(&all, run_, options_.level);
      share_extents_of(&all, run_, options_.level);
    }
    for (Pending& one : all)
      if (!one.refused) HEDDLE_RETURN_IF_ERROR(finish(std::move(one)));
    drop_first_rows();
    return {};
  }

  // Kernels have their bounds by now.
  void drop_first_rows() {
    hlo::Computation* entry = module_->entry();
    const std::vector<hlo::Instr*> all = entry->instrs();
    for (hlo::Instr* instr : all) {
      if (!hlo::is_first_rows(*instr)) continue;
      entry->replace_all_uses(instr, instr->operand(0));
      entry->remove(instr);
    }
  }

  // `one_by_one`: a Pending per fusion, also for equal fusions.
  std::vector<Pending> stitch_each(bool one_by_one) {
    std::vector<Pending> all;
    std::unordered_map<uint64_t, std::vector<std::pair<size_t, std::vector<bool>>>> alike;
    for (const hlo::Instr* fusion : kernel_fusions(*module_)) {
      std::vector<bool> streamed = streamed_outputs(*fusion, target_);
      if (one_by_one) {
        all.push_back(stitch_or_copy(fusion, &stitched_, std::move(streamed)));
        continue;
      }
      const hlo::Computation& computation = *fusion->called().at(0);
      auto& places = alike[shallow_hash(computation)];
      const auto known = std::find_if(places.begin(), places.end(), [&](const auto& place) {
        const hlo::Instr* one = all[place.first].fusion;
        return place.second == streamed && are_equal(computation, *one->called()[0]);
      });
      if (known != places.end()) {
        all[known->first].equals.push_back(fusion);
      } else {
        all.push_back(stitch_one(fusion, streamed));
        places.emplace_back(all.size() - 1, std::move(streamed));
      }
    }
    return all;
  }

  // If the module has twins: kernels that serve the rows of all of them.
  Status share_with_twins_of(std::vector<Pending>* all) {
    Options options = options_;
    options.twins.clear();
    options.dump_directory.clear();
    std::vector<std::vector<Pending>> twins;
    for (const std::shared_ptr<const hlo::Module>& twin : options_.twins) {
      Compilation other(twin->clone(), target_, options, nullptr);
      HEDDLE_RETURN_IF_ERROR(other.optimize());
      HEDDLE_RETURN_IF_ERROR(other.fuse_module());
      if (twins.emplace_back(other.stitch_each(true)).size() != all->size()) return {};
    }
    for (size_t i = 0; i < all->size() && !twins.empty(); ++i) {
      Pending& one = (*all)[i];
      std::vector<kernel::Kernel> kernels;
      for (const std::vector<Pending>& twin : twins) kernels.push_back(twin[i].stitched.kernel);
      auto shared = lower::share_with_twins(std::move(kernels), one.stitched.kernel,
                                            open_pass(run_, nullptr));
      kernel::Kernel open = one.stitched.kernel;
      if (!shared || shared->dims.back().empty() || !open_pass(run_, one.fusion)(&open, {}))
        continue;
      one.stitched.kernel = std::move(shared->kernel);
      one.dims = std::move(shared->dims.back());
      one.shares_extents = true;
    }
    return {};
  }

  // Distinct fusions by hash: their kernels and streamed outputs.
  using Known = std::unordered_map<uint64_t, std::deque<std::pair<Pending, std::vector<bool>>>>;

  // Equal fusions, as those of equal layers, are stitched once.
  Pending stitch_or_copy(const hlo::Instr* fusion, Known* known, std::vector<bool> streamed) {
    const hlo::Computation& computation = *fusion->called().at(0);
    auto& alike = (*known)[shallow_hash(computation)];
    for (const auto& [one, its_streamed] : alike) {
      if (streamed != its_streamed || !are_equal(computation, *one.fusion->called().at(0)))
        continue;
      Pending result = one;
      result.fusion = fusion;
      return result;
    }
    alike.emplace_back(stitch_one(fusion, streamed), streamed);
    return alike.back().first;
  }

  // One kernel from those of a loop's step, which have no launches of their own.
  Pending stitch_loop(const hlo::Instr* fusion) {
    std::unordered_map<const hlo::Instr*, Pending> steps;
    auto kernel_of = [&](const hlo::Instr* step) -> const stitch::Stitched& {
      auto known = steps.find(step);
      if (known == steps.end()) known = steps.emplace(step, stitch_one(step, {})).first;
      return known->second.stitched;
    };
    const hlo::Computation& computation = *fusion->called()[0];
    Pending result{
        fusion, stitch::stitch_loop(computation, "kernel", target_, kernel_of), {}, {}, {}, 0};
    check(result);
    for (const hlo::Instr* instr : computation.instrs()) {
      if (!instr->is(hlo::Opcode::while_)) continue;
      const hlo::Instr* loop = hlo::loop_of_steps(instr);
      const int64_t strips = loop == instr ? 1 : *hlo::known_trips(instr);
      result.schedule += fmt::format("one kernel: {} strips, {} steps each, of {} kernels\n",
                                     strips, *hlo::known_trips(loop), steps.size());
    }
    result.predicted_ns = loop_kernel_ns(computation, target_, [&](const hlo::Instr* step) {
      const auto known = steps.find(step);
      return known == steps.end() ? 0 : known->second.predicted_ns;
    });
    return described(std::move(result));
  }

  // One kernel from those of the fusions inside.
  Pending stitch_joined(const hlo::Instr* fusion) {
    const hlo::Computation& computation = *fusion->called()[0];
    const StreamedParts streamed = streamed_parts(computation, streamed_outputs(*fusion, target_));
    std::vector<Pending> parts;
    std::unordered_map<const hlo::Instr*, size_t> numbers;
    for (const hlo::Instr* instr : computation.instrs()) {
      if (!instr->is(hlo::Opcode::fusion)) continue;
      numbers.emplace(instr, parts.size());
      parts.push_back(stitch_or_copy(instr, &inner_, streamed.at(instr)));
    }
    Pending result{.fusion = fusion};
    result.stitched = join_kernels(
        computation, hlo::join_of(*fusion), "kernel", target_,
        [&](const hlo::Instr* part) -> const stitch::Stitched& {
          return parts[numbers.at(part)].stitched;
        },
        run_);
    const kernel::Kernel& kernel = result.stitched.kernel;
    std::string places;
    if (!kernel.inner.empty())
      result.schedule = fmt::format("a table: {} kernels as {} in {} phases\n", parts.size(),
                                    kernel.inner.size(), kernel.phases.size());
    std::vector<double> parts_ns;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts_ns.push_back(parts[i].predicted_ns);
      if (!kernel.inner.empty()) {
        if (seen.insert(parts[i].text).second) result.schedule += parts[i].schedule;
        continue;
      }
      const std::string title = fmt::format("part {}: {}\n", i, parts[i].fusion->name());
      result.schedule += title + parts[i].schedule + "\n";
      places += title + described_.at(parts[i].text).first + "\n";
    }
    result.predicted_ns = joined_kernel_ns(parts_ns, target_);
    return described(std::move(result), places);
  }

  // `places`: the text of the values' places; empty: that of the schedule.
  Pending described(Pending result, const std::string& places = "") {
    check(result);
    result.text = kernel::to_string(result.stitched.kernel);
    described_.emplace(result.text, std::pair(places.empty() ? result.schedule : places,
                                              result.schedule + places));
    return result;
  }

  Pending stitch_one(const hlo::Instr* fusion, const std::vector<bool>& streamed) {
    const hlo::Computation& computation = *fusion->called().at(0);
    if (hlo::join_of(*fusion) == hlo::Join::loop) return stitch_loop(fusion);
    if (hlo::join_of(*fusion) != hlo::Join::none) return stitch_joined(fusion);
    std::vector<schedule::Attempt> attempts;
    stage::PlacedFusion placed =
        schedule::place(computation, target_, options_.numerics != Numerics::strict, &attempts);
    if (options_.level == Level::O0) roll_products(&placed);
    for (const std::string& rewrite : placed.graph.rewrites)
      if (std::count(notes_.begin(), notes_.end(), rewrite) == 0) notes_.push_back(rewrite);
    if (gpu_ && !placed.decision) return left_to_host(fusion, placed.decision.reason());
    HEDDLE_CHECK(static_cast<bool>(placed.decision), "{} was formed but cannot be placed: {}",
                 fusion->name(), placed.decision.reason());
    Pending result{fusion, kernel_of(placed, fusion->name(), streamed), {}, {}, {}, 0};
    check(result);
    result.predicted_ns = cost::latency(placed, target_).ns;
    result.strategies = schedule::to_string(attempts);
    result.waits_for_memory =
        !stage::is_template(placed) && result.stitched.flops <= result.stitched.min_bytes;
    // Equal fusions share one kernel: the schedule's text names instructions, so it is kept
    // outside.
    result.schedule = std::move(result.stitched.kernel.schedule);
    result.stitched.kernel.schedule.clear();
    result.text = kernel::to_string(result.stitched.kernel);
    if (described_.count(result.text) == 0) {
      std::string places = stage::describe(placed.graph, placed.schedule, placed.placement);
      std::string dumped;
      if (!options_.dump_directory.empty())
        dumped = result.schedule + "\n" + places + "\n" + stage::to_string(placed.graph);
      described_.emplace(result.text, std::pair(std::move(places), std::move(dumped)));
    }
    return result;
  }

  stitch::Stitched kernel_of(const stage::PlacedFusion& placed, const std::string& fusion,
                             const std::vector<bool>& streamed) {
    pass::RunOptions run = kernel_pass_options(options_, fusion, pass_changes_.size(), &lost_dump_);
    if (is_bounded_ && !gpu_) run.disabled.emplace_back(kBehindTrim);
    Result<stitch::Stitched> made =
        make_kernel(placed, "kernel", target_, streamed, run, &pass_changes_);
    HEDDLE_CHECK(made.has_value(), "{}: {}", fusion, made.error().message);
    return std::move(*made);
  }

  Pending left_to_host(const hlo::Instr* fusion, const std::string& reason) {
    notes_.push_back(
        fmt::format("{} has no GPU kernel and runs on the host: {}", fusion->name(), reason));
    Pending result{fusion, {}, {}, {}, {}, 0};
    result.refused = true;
    return result;
  }

  struct Named {
    std::string name, code, text;
  };

  // A kernel's name identifies what it computes; several may share the name of their code. Kernels
  // of equal text have equal names.
  const Named& name_of(Pending* pending) {
    const std::string form =
        std::string(pending->dims.empty() ? "" : "d") + (pending->shares_extents ? "e" : "") + ":";
    const auto [known, added] = named_.try_emplace(form + pending->text);
    if (!added) return known->second;
    auto named = [](const std::string& text) { return "k" + hash128(text).hex().substr(0, 16); };
    kernel::Kernel& kernel = pending->stitched.kernel;
    Named& result = known->second;
    result.code = named(pending->dims.empty() ? pending->text : kernel::to_string(kernel));
    result.name = pending->shares_extents ? named(pending->text) : result.code;
    kernel.name = result.code;
    result.text = kernel::to_string(kernel);
    return result;
  }

  Status finish(Pending pending) {
    const auto& [name, code, text] = name_of(&pending);
    if (gpu_ && !codes_.contains(code)) {
      pending.stitched.kernel.name = code;
      if (Status made = gpu_code_.add(pending.stitched); !made) {
        left_to_host(pending.fusion, made.error().message);
        return {};
      }
      HEDDLE_RETURN_IF_ERROR(dump("4-" + name + ".cu", [&] { return gpu_code_.last_text(); }));
    }
    plan::KernelUse use = use_of(pending, name, code, text, gpu_);
    if (known_.insert(name).second) {
      const auto& [places, dumped] = described_.at(pending.text);
      HEDDLE_RETURN_IF_ERROR(dump("3-" + name + ".schedule", [&] { return dumped; }));
      if (report_)
        report_->kernels.push_back({name, places, pending.strategies, pending.predicted_ns});
      HEDDLE_RETURN_IF_ERROR(dump("4-" + name + ".kernel", [&] { return use.kernel.text; }));
      if (codes_.insert(code).second) texts_.push_back(use.kernel.text);
    }
    pending.equals.push_back(pending.fusion);
    for (const hlo::Instr* equal : pending.equals) {
      use.in_place = inputs_to_overwrite(*equal, pending.stitched);
      kernels_.emplace(equal, use);
    }
    return {};
  }

  std::unique_ptr<hlo::Module> module_;
  std::optional<FusedModule> fused_;
  const target::Target& target_;
  const Options& options_;
  Report* report_;
  const bool gpu_;
  bool is_bounded_ = false;  // the module has symbols
  GpuCodeGenerator gpu_code_;
  plan::Kernels kernels_;
  Known stitched_, inner_;                         // of the module; of fusions of fusions
  std::unordered_set<std::string> known_, codes_;  // names of kernels, of their code
  // By the text of a kernel: the places of its values, and the dump of its schedule.
  std::unordered_map<std::string, std::pair<std::string, std::string>> described_;
  std::unordered_map<std::string, Named> named_;           // by what is shared and the text
  std::vector<std::string> texts_, notes_, pass_changes_;  // the last for bisection
  Status lost_dump_;  // the error of a dump that a kernel pass could not write
  const RunPass run_ = run_pass_of(options_, target_, &pass_changes_, &lost_dump_);
};

}  // namespace

Result<program::Program> compile(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                                 const target::Target& target, const Options& options,
                                 Report* report) {
  return Compilation(std::move(module), target, options, report).run(names);
}

Result<std::string> text_behind(std::unique_ptr<hlo::Module> module, const target::Target& target,
                                const Options& options, const std::string& pass) {
  return Compilation(std::move(module), target, options, nullptr).text_behind(pass);
}

Result<std::unique_ptr<hlo::Module>> fuse_only(std::unique_ptr<hlo::Module> module,
                                               const target::Target& target, const Options& options,
                                               Report* report) {
  return Compilation(std::move(module), target, options, report).fused();
}

}  // namespace heddle::compiler
