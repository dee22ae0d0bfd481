#include "pass/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "base/hash.h"
#include "base/trace.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "pass/files.h"

namespace heddle::pass {
namespace {

using Step = Pipeline::Step;

tl::unexpected<Error> unknown_pass(const PassTable& table, std::string_view name,
                                   std::string_view where) {
  std::string known;
  for (const PassInfo* row : table.rows()) known += fmt::format(" {}", row->name);
  return user_error("{}: no pass is called `{}`; there are:{}", where, name, known);
}

Status check_names(const PassTable& table, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (!step.pass.empty() && !table.find(step.pass))
      return unknown_pass(table, step.pass, "pipeline");
    HEDDLE_RETURN_IF_ERROR(check_names(table, step.group));
  }
  return {};
}

class Runner {
 public:
  Runner(hlo::Module& module, const PassTable& table, const RunOptions& options,
         const PassContext& context)
      : module_(module),
        table_(table),
        options_(options),
        context_(context),
        dump_(options.dump_directory, options.dump_name) {
    prepare(rewrites_, &report_.notes);
  }

  Result<RunReport> run(const Pipeline& pipeline) {
    if (options_.verify) {
      if (Status status = hlo::verify(module_); !status) return error_in("before", status.error());
    }
    // Passes are deterministic, so the module before a failing one is made again from this copy
    // rather than kept before each. (Copies share their constants.)
    original_ = module_.clone();
    if (options_.check_changed) hash_ = hash();
    HEDDLE_RETURN_IF_ERROR(dump_.write(module_, "input"));
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

  Hash128 hash() const { return hash128(hlo::to_string(module_)); }

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

  // Ends when every member has run without a change since the last change of any.
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

  bool left_out(const PassInfo& pass) const {
    if (std::find(options_.disabled.begin(), options_.disabled.end(), pass.name) !=
        options_.disabled.end())
      return true;
    return !pass.required && options_.bisect_limit >= 0 &&
           static_cast<int64_t>(report_.changes.size()) >= options_.bisect_limit;
  }

  RunReport::PassRecord& record(const PassInfo& pass) {
    for (RunReport::PassRecord& record : report_.passes)
      if (record.pass == pass.name) return record;
    report_.passes.push_back({std::string(pass.name)});
    return report_.passes.back();
  }

  Result<bool> run_pass(const PassInfo& pass) {
    if (options_.stop_after == pass.name) report_.stopped = true;
    if (left_out(pass)) return false;
    const int64_t begin_ns = trace::now_ns();
    Result<bool> changed = pass.function(module_, context_);
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
    HEDDLE_RETURN_IF_ERROR(dump_.write(module_, pass.name));
    return true;
  }

  Status check(const PassInfo& pass, bool changed) {
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
    Status status = hlo::verify(module_);
    if (status) return {};
    return failure(pass, {ErrorKind::machine, "internal error: " + status.error().message});
  }

  // The error with the pass in front and the reproducer behind it.
  tl::unexpected<Error> failure(const PassInfo& pass, Error error) {
    std::string directory = options_.reproducer_directory;
    if (directory.empty()) directory = options_.dump_directory;
    const Result<std::string> path =
        write_reproducer(directory, *before_failure(), pass.name, error.message);
    error.message =
        fmt::format("pass {}: {} ({}{})", pass.name, error.message,
                    path ? "reproducer: " : "no reproducer: ", path ? *path : path.error().message);
    return tl::unexpected<Error>(std::move(error));
  }

  std::unique_ptr<hlo::Module> before_failure() {
    Rewrites rewrites;
    prepare(rewrites, nullptr);
    for (const PassInfo* pass : executed_)
      if (!pass->function(*original_, context_)) break;
    return std::move(original_);
  }

  hlo::Module& module_;
  const PassTable& table_;
  const RunOptions& options_;
  PassContext context_;
  Rewrites rewrites_;
  Dump dump_;
  RunReport report_;
  Hash128 hash_;
  std::unique_ptr<hlo::Module> original_;
  std::vector<const PassInfo*> executed_;
};

}  // namespace

Result<RunReport> run(hlo::Module& module, const Pipeline& pipeline, const PassTable& table,
                      const RunOptions& options, const PassContext& context) {
  HEDDLE_RETURN_IF_ERROR(check_names(table, pipeline.steps));
  for (const std::string& name : options.disabled) {
    const std::string pass = name.substr(0, name.find('.'));
    if (!table.find(pass)) return unknown_pass(table, pass, "disabled");
  }
  if (!options.stop_after.empty() && !table.find(options.stop_after))
    return unknown_pass(table, options.stop_after, "stop after");
  return Runner(module, table, options, context).run(pipeline);
}

Result<RunReport> run(hlo::Module& module, std::string_view pipeline, const PassTable& table,
                      const RunOptions& options, const PassContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(Pipeline parsed, parse_pipeline(pipeline));
  return run(module, parsed, table, options, context);
}

}  // namespace heddle::pass
