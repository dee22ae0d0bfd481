// heddle opt: reads, verifies, runs passes, prints.
#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "api/session.h"
#include "command_line.h"
#include "commands.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "model_options.h"
#include "opt/passes.h"
#include "opt/pipeline.h"
#include "pass/run.h"

namespace heddle::tools {
namespace {

using Modules = std::vector<std::unique_ptr<hlo::Module>>;

// Constants of models have their values in the file; to be read, a text has none of them.
constexpr int64_t kShownElems = 1024;

std::string all_of(const hlo::Module& module, int64_t max_elems) {
  hlo::PrintOptions options;
  options.max_constant_elems = max_elems;
  return hlo::to_string(module, options);
}

class Opt : public Command {
 public:
  std::string_view name() const override { return "opt"; }
  std::string_view summary() const override { return "runs passes over HLO and prints it"; }

  void declare(CommandLine& line) override {
    line.argument(open_.model, "F", "HLO text, or another model, which is printed as HLO", false);
    line.group("Passes");
    line.text(passes_, "--passes", "A,{B,C}*,…",
              "what to run, in order; O0, O1 or O2 stands for that level's");
    line.flag(list_, "--list", "names all passes and ends");
    line.flag(reproduce_, "--reproduce", "runs the passes that a reproducer names");
    line.text(stop_after_, "--stop-after", "PASS", "ends behind the first run of this pass");
    line.text(disable_, "--disable", "A,B", "passes and rewrites to leave out");
    line.number(bisect_limit_, "--bisect-limit", "N", "only N passes that change something");
    line.number(rewrite_limit_, "--rewrite-limit", "N", "only N rewrites");
    line.flag(check_changed_, "--check-changed", "fails where a pass says wrongly what it changed");
    line.flag(times_, "--times", "time, runs and changes of each pass, to standard error");
    line.text(dump_, "--dump", "DIR", "writes the module after each pass that changed it");
    line.group("Input and output");
    line.list(open_.dims, "--dim", "NAME=N", "binds a dynamic dimension of an ONNX model");
    line.list(open_.shapes, "--shape", "NAME=1x3x8", "binds all dimensions of an ONNX input");
    line.text(open_.module, "--module", "NAME", "only this module of a file of several");
    line.number(max_elems_, "--max-constant", "N",
                "larger constants print as {...} (never; for ONNX 1024)");
    line.examples(
        "  heddle opt model.hlo                          reads, verifies and prints\n"
        "  heddle opt model.hlo --passes=algebraic,dce\n"
        "  heddle opt model.onnx --passes=O2 --times\n"
        "  heddle opt --list\n");
  }

  Result<int> run() override {
    if (list_) {
      for (const pass::PassInfo& pass : opt::passes())
        fmt::print("{:<24} {}{}\n", pass.name, pass.summary, pass.required ? " (required)" : "");
      return 0;
    }
    if (open_.model.empty()) return user_error("opt: which file? See heddle opt --help");
    HEDDLE_ASSIGN_OR_RETURN(const Modules modules, read());
    bool first = true;
    for (const auto& module : modules) {
      if (Status verified = hlo::verify(*module); !verified)
        return error_in(open_.model + ": " + module->name(), verified.error());
      HEDDLE_RETURN_IF_ERROR(optimize(*module));
      if (!first) std::fputs("\n// -----\n\n", stdout);
      first = false;
      std::fputs(all_of(*module, max_elems_.value_or(-1)).c_str(), stdout);
    }
    return 0;
  }

 private:
  Result<Modules> read() {
    Modules modules;
    HEDDLE_ASSIGN_OR_RETURN(const auto file, import::MappedFile::open(open_.model));
    if (import::sniff(file->bytes().substr(0, 4096)) != import::Format::hlo_text) {
      HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open());
      const hlo::Module* module = api::unwrap(model.get()).module();
      if (module == nullptr)
        return user_error("{}: a compiled program has no graph; see heddle inspect", open_.model);
      if (!max_elems_) max_elems_ = kShownElems;
      modules.push_back(module->clone());
      return modules;
    }
    if (reproduce_) {
      passes_ = pass::reproducer_pipeline(file->bytes());
      if (passes_.empty()) return user_error("{}: no reproducer: it names no passes", open_.model);
    }
    Result<Modules> parsed = hlo::parse_modules(file->bytes());
    if (!parsed) return error_in(open_.model, parsed.error());
    std::string names;
    for (auto& module : *parsed) {
      names += (names.empty() ? "" : ", ") + module->name();
      if (open_.module.empty() || module->name() == open_.module)
        modules.push_back(std::move(module));
    }
    if (modules.empty())
      return user_error("{}: no module{}; there are: {}", open_.model,
                        open_.module.empty() ? "" : " " + open_.module,
                        names.empty() ? "none" : names);
    return modules;
  }

  Status optimize(hlo::Module& module) const {
    std::string text = passes_;
    if (text == "O0") text = opt::pipeline_for(opt::Level::O0);
    if (text == "O1") text = opt::pipeline_for(opt::Level::O1);
    if (text == "O2") text = opt::pipeline_for(opt::Level::O2);
    pass::RunOptions options;
    options.verify = true;
    options.check_changed = check_changed_;
    options.dump_directory = dump_;
    options.stop_after = stop_after_;
    options.bisect_limit = bisect_limit_.value_or(-1);
    options.rewrite_limit = rewrite_limit_.value_or(-1);
    std::istringstream names(disable_);
    for (std::string name; std::getline(names, name, ',');)
      if (!name.empty()) options.disabled.push_back(name);
    const pass::PassTable table(opt::passes());
    Result<pass::RunReport> report = pass::run(module, text, table, options);
    if (!report) return error_in(open_.model + ": " + module.name(), report.error());
    for (const std::string& note : report->notes) fmt::print(stderr, "note: {}\n", note);
    if (!times_) return {};
    for (const auto& record : report->passes)
      fmt::print(stderr, "{:<24} {:>6} runs {:>6} changes {:>10.3f} ms\n", record.pass, record.runs,
                 record.changes, static_cast<double>(record.time_ns) / 1e6);
    for (const auto& [rewrite, count] : report->rewrites)
      fmt::print(stderr, "  {:<40} {:>6}\n", rewrite, count);
    return {};
  }

  OpenChoices open_;
  std::string passes_, stop_after_, disable_, dump_;
  bool list_ = false, reproduce_ = false, check_changed_ = false, times_ = false;
  std::optional<int64_t> bisect_limit_, rewrite_limit_, max_elems_;
};

}  // namespace

std::unique_ptr<Command> make_opt() { return std::make_unique<Opt>(); }

}  // namespace heddle::tools
