// The runner for any kind of unit that passes rewrite: a module, a kernel. Included where run() is
// defined for a kind; run.h has it for modules and documents the options.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/trace.h"
#include "pass/files.h"
#include "pass/run.h"

namespace heddle::pass {

// The runner's interface to a unit. A specialisation has
//   static constexpr std::string_view kSuffix;            extension of its text files: ".hlo"
//   static Status verify(const Unit&);
//   static std::unique_ptr<Unit> copy(const Unit&);
//   static std::string text(const Unit&);                 all of it
//   static std::string short_text(const Unit&);           for dumps: without large constants
// and, if its text does not describe a unit completely (the open covers of a module):
//   static std::string_view begun_by(const Unit&);        the pass that began such a state; ""
template <typename Unit>
struct UnitTraits;

namespace running {

using Step = Pipeline::Step;

template <typename Table>
tl::unexpected<Error> unknown_pass(const Table& table, std::string_view name,
                                   std::string_view where) {
  std::string known;
  for (const auto* row : table.rows()) known += fmt::format(" {}", row->name);
  return user_error("{}: no pass is called `{}`; there are:{}", where, name, known);
}

template <typename Table>
Status check_names(const Table& table, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (!step.pass.empty() && !table.find(step.pass))
      return unknown_pass(table, step.pass, "pipeline");
    HEDDLE_RETURN_IF_ERROR(check_names(table, step.group));
  }
  return {};
}

template <typename Unit, typename Context>
class Runner {
 public:
  using Traits = UnitTraits<Unit>;
  using Info = PassInfoOf<Unit, Context>;

  Runner(Unit& unit, const PassTableOf<Unit, Context>& table, const RunOptions& options,
         const Context& context)
      : unit_(unit), table_(table), options_(options), context_(context) {
    prepare(rewrites_, &report_.notes);
  }

  Result<RunReport> run(const Pipeline& pipeline) {
    if (options_.verify) {
      if (Status status = Traits::verify(unit_); !status) return error_in("before", status.error());
    }
    // Passes are deterministic, so the module before a failing pass is recomputed from this copy
    // instead of being kept before each pass.
    if (options_.reproduce) original_ = Traits::copy(unit_);
    if (options_.check_changed) hash_ = hash();
    HEDDLE_RETURN_IF_ERROR(dump("input"));
    HEDDLE_ASSIGN_OR_RETURN(report_.changed, run_list(pipeline.steps));
    report_.rewrites = rewrites_.by_name();
    return std::move(report_);
  }

 private:
  void prepare(Rewrites& rewrites, std::vector<std::string>* notes) {
    rewrites.set_limit(options_.rewrite_limit);
    for (const std::string& name : options_.disabled)
      if (name.find('.') != std::string::npos) rewrites.disable(name);
    context_.rewrites = &rewrites;
    context_.notes = notes;
  }

  Hash128 hash() const { return hash128(Traits::text(unit_)); }

  Status dump(std::string_view what) {
    if (options_.dump_directory.empty()) return {};
    Status* failure = options_.dump_failure;
    if (failure != nullptr && !*failure) return {};
    Status written = write_text(
        options_.dump_directory,
        fmt::format("{}_{:03}_{}{}", options_.dump_name, dumped_++, what, Traits::kSuffix),
        Traits::short_text(unit_));
    if (failure == nullptr) return written;
    *failure = std::move(written);
    return {};
  }

  Result<bool> run_list(const std::vector<Step>& steps) {
    bool changed = false;
    for (const Step& step : steps) {
      HEDDLE_ASSIGN_OR_RETURN(bool step_changed, run_step(step));
      changed |= step_changed;
      if (report_.stopped) break;
    }
    return changed;
  }

  Result<bool> run_step(const Step& step) {
    return step.pass.empty() ? run_group(step) : run_pass(*table_.find(step.pass));
  }

  // Ends when every member has run without a change since the last change by any of them.
  Result<bool> run_group(const Step& step) {
    bool changed = false;
    size_t quiet = 0;
    for (int64_t round = 0; round < step.max_rounds; ++round) {
      for (const Step& member : step.group) {
        HEDDLE_ASSIGN_OR_RETURN(bool member_changed, run_step(member));
        changed |= member_changed;
        quiet = member_changed ? 0 : quiet + 1;
        if (quiet == step.group.size() || report_.stopped) return changed;
      }
    }
    report_.converged = false;
    return changed;
  }

  bool left_out(const Info& pass) const {
    if (std::find(options_.disabled.begin(), options_.disabled.end(), pass.name) !=
        options_.disabled.end())
      return true;
    return !pass.required && options_.bisect_limit >= 0 &&
           static_cast<int64_t>(report_.changes.size()) >= options_.bisect_limit;
  }

  RunReport::PassRecord& record(const Info& pass) {
    for (RunReport::PassRecord& record : report_.passes)
      if (record.pass == pass.name) return record;
    report_.passes.push_back({std::string(pass.name)});
    return report_.passes.back();
  }

  Result<bool> run_pass(const Info& pass) {
    if (options_.stop_after == pass.name) report_.stopped = true;
    if (left_out(pass)) return false;
    const int64_t begin_ns = trace::now_ns();
    Result<bool> changed = pass.function(unit_, context_);
    const int64_t end_ns = trace::now_ns();
    if (trace::recording()) trace::add(pass.name, begin_ns, end_ns, "pass");
    RunReport::PassRecord& times = record(pass);
    ++times.runs;
    times.time_ns += end_ns - begin_ns;
    if (!changed) return failure(pass, changed.error());
    HEDDLE_RETURN_IF_ERROR(check(pass, *changed));
    executed_.push_back(&pass);
    if (!*changed) return false;
    ++times.changes;
    report_.changes.emplace_back(pass.name);
    HEDDLE_RETURN_IF_ERROR(dump(pass.name));
    return true;
  }

  Status check(const Info& pass, bool changed) {
    if (options_.check_changed) {
      const Hash128 now = hash();
      const bool differs = now != hash_;
      hash_ = now;
      if (differs != changed)
        return failure(
            pass, {ErrorKind::machine,
                   fmt::format("internal error: it says that it changed {}, but it {}",
                               changed ? "something" : "nothing", differs ? "did" : "did not")});
    }
    if (!changed || !options_.verify) return {};
    Status status = Traits::verify(unit_);
    if (status) return {};
    return failure(pass, {ErrorKind::machine, "internal error: " + status.error().message});
  }

  // The error, prefixed by the pass and followed by the reproducer.
  tl::unexpected<Error> failure(const Info& pass, Error error) {
    if (!original_) {
      error.message = fmt::format("pass {}: {}", pass.name, error.message);
      return tl::unexpected<Error>(std::move(error));
    }
    std::string directory = options_.reproducer_directory;
    if (directory.empty()) directory = options_.dump_directory;
    const Result<std::string> path =
        write_reproducer(directory, Traits::short_text(*before_failure()), Traits::kSuffix,
                         pass.name, failing_pipeline(pass), error.message);
    error.message =
        fmt::format("pass {}: {} ({}{})", pass.name, error.message,
                    path ? "reproducer: " : "no reproducer: ", path ? *path : path.error().message);
    return tl::unexpected<Error>(std::move(error));
  }

  // The failing pass, preceded by the passes whose effect the unit's text does not show.
  std::string failing_pipeline(const Info& pass) const {
    std::string text;
    if constexpr (requires { Traits::begun_by(unit_); }) {
      const std::string_view first = Traits::begun_by(unit_);
      size_t at = first.empty() ? 0 : executed_.size();
      while (at > 0 && executed_[at - 1]->name != first) --at;
      if (at > 0)
        for (size_t i = at - 1; i < executed_.size(); ++i)
          text += std::string(executed_[i]->name) + ",";
    }
    return text + std::string(pass.name);
  }

  std::unique_ptr<Unit> before_failure() {
    Rewrites rewrites;
    prepare(rewrites, nullptr);
    for (const Info* pass : executed_)
      if (!pass->function(*original_, context_)) break;
    return std::move(original_);
  }

  Unit& unit_;
  const PassTableOf<Unit, Context>& table_;
  const RunOptions& options_;
  Context context_;
  Rewrites rewrites_;
  int dumped_ = 0;
  RunReport report_;
  Hash128 hash_;
  std::unique_ptr<Unit> original_;
  std::vector<const Info*> executed_;
};

}  // namespace running

template <typename Unit, typename Context>
Result<RunReport> run_passes(Unit& unit, const Pipeline& pipeline,
                             const PassTableOf<Unit, Context>& table, const RunOptions& options,
                             const Context& context) {
  HEDDLE_RETURN_IF_ERROR(running::check_names(table, pipeline.steps));
  for (const std::string& name : options.disabled) {
    const std::string pass = name.substr(0, name.find('.'));
    if (!table.find(pass)) return running::unknown_pass(table, pass, "disabled");
  }
  if (!options.stop_after.empty() && !table.find(options.stop_after))
    return running::unknown_pass(table, options.stop_after, "stop after");
  return running::Runner<Unit, Context>(unit, table, options, context).run(pipeline);
}

}  // namespace heddle::pass
