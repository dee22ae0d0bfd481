// heddle opt: reads, verifies, runs passes, prints.
#include <fmt/format.h>

#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/session.h"
#include "command_line.h"
#include "commands.h"
#include "compiler/passes.h"
#include "compiler/pipeline.h"
#include "emit.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/hlo_proto.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "import/stablehlo.h"
#include "known_names.h"
#include "model_options.h"
#include "opt/pipeline.h"
#include "opt_kernel.h"
#include "output_file.h"
#include "pass/run.h"
#include "report.h"
#include "target/target.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using Modules = std::vector<std::unique_ptr<hlo::Module>>;

// Constants of models have their values in the file; to be read, a text has none of them.
constexpr int64_t kShownElems = 1024;

// The pipeline that a word stands for, or the word.
std::string pipeline_of(const std::string& word, const target::Target& target) {
  if (word == "O0") return opt::pipeline_for(opt::Level::O0);
  if (word == "O1") return opt::pipeline_for(opt::Level::O1);
  if (word == "O2") return opt::pipeline_for(opt::Level::O2, target.kind);
  compiler::Options options;
  if (word == "off")
    options.fuse = compiler::Fuse::off;
  else if (word == "greedy")
    options.fuse = compiler::Fuse::greedy;
  else if (word == "xla")
    options.fuse = compiler::Fuse::xla;
  else if (word != "stitch")
    return word;
  return compiler::fusing_pipeline(options, target);
}

std::string with_pipelines(const std::string& passes, const target::Target& target) {
  std::string text, word;
  for (const char c : passes + ",") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    text += pipeline_of(word, target) + c;
    word.clear();
  }
  text.pop_back();
  return text;
}

class Opt : public Command {
 public:
  std::string_view name() const override { return "opt"; }
  std::string_view summary() const override { return "runs passes over HLO and prints it"; }

  void declare(CommandLine& line) override {
    line.argument(open_.model, "F", "HLO text, or another model, which is printed as HLO", false);
    line.files()->reads([this](const FileUse::Add& add) {
      add("F", open_.model);
      add("--target", target_);
    });
    line.group("Passes");
    line.text(passes_, "--passes", "A,{B,C}*,…",
              "passes to run, in order; O0, O1 or O2 stands for those of that level; off, greedy, "
              "xla or stitch for those that fuse; default for those of a kernel");
    line.flag(list_, "--list", "lists all passes, by stage, and stops");
    line.flag(reproduce_, "--reproduce", "runs the passes that a reproducer names");
    line.text(stop_after_, "--stop-after", "PASS", "stops after the first run of this pass");
    line.text(disable_, "--disable", "A,B", "passes and rewrites to leave out");
    line.number(bisect_limit_, "--bisect-limit", "N",
                "runs only the first N passes that change something");
    line.number(rewrite_limit_, "--rewrite-limit", "N", "does only the first N rewrites");
    line.flag(check_changed_, "--check-changed",
              "fails where a pass misreports whether it changed something");
    line.flag(times_, "--times",
              "prints the time, runs and changes of each pass to standard error");
    line.output_folder(dump_, "--dump", "writes the module after each pass that changed it");
    line.text(target_, "--target", "NAME",
              "target of passes (default: this machine; for kernels, the kernel's own)");
    line.text(library_, "--library", "NAME",
              "the library that the pass call_libraries uses, or auto (default: none)");
    line.group("Kernels (text that begins with heddle.kernel)");
    line.number(lanes_, "--lanes", "N",
                "threads that share a task on a GPU (default: those of its loops)");
    line.text(trim_, "--trim", "TEXT",
              "dynamic dimensions for the pass trim, such as: extent in1 bound 64; in0 8; out0 8");
    line.group("Input and output");
    line.list(open_.dims, "--dim", "NAME=N", "sets a dynamic dimension of an ONNX model");
    line.list(open_.shapes, "--shape", "NAME=1x3x8", "sets all dimensions of an ONNX input");
    line.text(open_.module, "--module", "NAME", "only this module, if the file holds several");
    line.choice(emit_, "--emit", kEmitted,
                "output format: text of HLO or StableHLO, an HLO proto for XLA's tools, or an ONNX "
                "model for viewers (default: hlo)");
    line.output(output_, "-o,--output", "F",
                "the file to write, with all constants in full (default: standard output)");
    line.number(max_elems_, "--max-constant", "N",
                "larger constants print as {...} (default: none; for ONNX 1024)");
    json_.declare(line);
    line.examples(
        "  heddle opt model.hlo                          reads, verifies and prints\n"
        "  heddle opt model.hlo --passes=algebraic,dce\n"
        "  heddle opt model.onnx --passes=O2 --times\n"
        "  heddle opt model.onnx --emit proto -o model.pb\n"
        "  heddle opt model.hlo --passes=O2,stitch --disable merge_chains --target icelake\n"
        "  heddle opt model.hlo --passes=open_cover,join_producers,merge_turns\n"
        "  heddle opt softmax.kernel --passes=fetch_ahead --target spr\n"
        "  heddle opt --list\n");
  }

  Result<int> run() override {
    if (list_) return list();
    if (open_.model.empty()) return user_error("opt: which file? See heddle opt --help");
    HEDDLE_RETURN_IF_ERROR(check_target(target_));
    HEDDLE_RETURN_IF_ERROR(check_disabled(disable_));
    if (passes_.find('"') == std::string::npos) HEDDLE_RETURN_IF_ERROR(check_passes(passes_));
    HEDDLE_ASSIGN_OR_RETURN(const auto file, import::MappedFile::open(open_.model));
    if (is_kernel_text(file->bytes())) return optimize_kernel(file->bytes());
    const bool to_terminal = !output_.given() || output_.is_standard_output();
    if (is_binary(emit_) && to_terminal && isatty(STDOUT_FILENO) != 0)
      return user_error("--emit {}: binary output cannot go to a terminal; give -o F", emit_);
    HEDDLE_ASSIGN_OR_RETURN(const Modules modules, read());
    if (is_binary(emit_) && modules.size() > 1)
      return user_error("--emit {}: {} holds {} modules; choose one with --module", emit_,
                        open_.model, modules.size());
    std::string all;
    told_["modules"] = modules.size();
    for (const auto& module : modules) {
      if (Status verified = hlo::verify(*module); !verified)
        return error_in(open_.model + ": " + module->name(), verified.error());
      HEDDLE_ASSIGN_OR_RETURN(const std::string made, optimize(*module));
      if (!all.empty()) all += "\n// -----\n\n";
      all += made;
      told_["instructions"] = told_.value("instructions", int64_t{0}) + instructions_of(*module);
    }
    return finish(all);
  }

 private:
  Result<int> list() const {
    auto available = nlohmann::ordered_json::array();
    for (const compiler::Stage& stage : compiler::module_pass_stages()) {
      if (!json_.only_json()) fmt::print("{}:\n", stage.name);
      for (const compiler::ModulePass& pass : stage.passes) {
        available.push_back({{"name", pass.name},
                             {"stage", stage.name},
                             {"summary", pass.summary},
                             {"required", pass.required},
                             {"rounds", pass.rounds}});
        if (json_.only_json()) continue;
        fmt::print("{:<24} {}{}{}\n", pass.name, pass.summary, pass.required ? " (required)" : "",
                   pass.rounds ? " (changes rounding)" : "");
      }
      if (!json_.only_json()) fmt::print("\n");
    }
    if (!json_.only_json()) fmt::print("Of kernels:\n{}", list_kernel_passes());
    HEDDLE_RETURN_IF_ERROR(json_.write({{"schema", 1}, {"available", std::move(available)}}));
    return 0;
  }

  static int64_t instructions_of(const hlo::Module& module) {
    int64_t count = 0;
    for (const auto& computation : module.computations())
      count += static_cast<int64_t>(computation->instrs().size());
    return count;
  }

  // Writes the result, and what is told of it.
  Result<int> finish(const std::string& text) {
    if (output_.given()) {
      HEDDLE_RETURN_IF_ERROR(output_.write(text));
    } else if (!json_.only_json()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    nlohmann::ordered_json json = {{"schema", 1}, {"model", open_.model}, {"output", output_.path}};
    json.update(told_);
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

  Result<int> optimize_kernel(std::string_view text) {
    pass::RunReport report;
    HEDDLE_ASSIGN_OR_RETURN(
        const std::string made,
        run_kernel_passes(open_.model, text, passes_, target_, static_cast<int>(lanes_.value_or(0)),
                          trim_, run_options(), &report));
    if (emit_ != "hlo") return user_error("--emit {}: a kernel is no module", emit_);
    note(report.notes);
    take(report);
    return finish(made);
  }

  Result<Modules> read() {
    Modules modules;
    HEDDLE_ASSIGN_OR_RETURN(const import::ModelFile opened, import::open_model_file(open_.model));
    const std::string_view text = opened.file->bytes();
    if (import::is_stablehlo(opened.format) && open_.module.empty()) return read_stablehlo(text);
    if (opened.format == import::Format::hlo_proto) return read_proto(*opened.file, opened.file);
    if (opened.format != import::Format::hlo_text) {
      HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open());
      const hlo::Module* module = api::unwrap(model.get()).module();
      if (module == nullptr)
        return user_error("{}: a compiled program has no graph; see heddle inspect", open_.model);
      if (!max_elems_ && !output_.given()) max_elems_ = kShownElems;
      modules.push_back(module->clone());
      return modules;
    }
    if (reproduce_) {
      passes_ = pass::reproducer_pipeline(text);
      if (passes_.empty())
        return user_error("{}: not a reproducer: it names no passes", open_.model);
    }
    Result<Modules> parsed = hlo::parse_modules(text);
    if (!parsed) return error_in(open_.model, parsed.error());
    if (open_.module.empty() && !parsed->empty()) return parsed;
    auto one = import::choose_module(std::move(*parsed), open_.module);
    if (!one) return error_in(open_.model, one.error());
    modules.push_back(std::move(*one));
    return modules;
  }

  Result<Modules> read_proto(const import::MappedFile& file,
                             const std::shared_ptr<const void>& owner) {
    Result<import::HloFile> read = import::read_hlo_proto(file.bytes(), owner);
    if (!read) return error_in(open_.model, read.error());
    note(read->notes);
    Modules modules;
    modules.push_back(std::move(read->module));
    return modules;
  }

  // A module for each part of the file.
  Result<Modules> read_stablehlo(std::string_view text) {
    import::Options options;
    for (const std::string& shape : open_.shapes) {
      HEDDLE_ASSIGN_OR_RETURN(auto choice, parse_shape_choice(shape));
      options.shapes.insert(std::move(choice));
    }
    Modules modules;
    for (const import::StablehloPart& part : import::split_stablehlo(text)) {
      const Result<import::MlirModule> source = import::parse_stablehlo(part);
      if (!source) return import::error_in_file(open_.model, source.error());
      Result<import::Imported> imported = import::import_stablehlo(*source, options);
      if (!imported) return import::error_in_file(open_.model, imported.error());
      modules.push_back(std::move(imported->module));
    }
    return modules;
  }

  pass::RunOptions run_options() const {
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
    return options;
  }

  // The module's text behind its passes, with the covers that are open then.
  Result<std::string> optimize(hlo::Module& module) {
    Result<target::Target> target = target::find_target(target_.empty() ? "host" : target_);
    if (!target) return error_in("--target", target.error());
    compiler::Context context;
    context.target = &*target;
    context.library = library_.empty() ? "none" : library_;
    fuse::Covers covers(&module);
    const Result<pass::RunReport> report =
        compiler::run(covers, with_pipelines(passes_, *target), context, run_options());
    if (!report) return error_in(open_.model + ": " + module.name(), report.error());
    note(report->notes);
    take(*report);
    if (emit_ == "hlo") return fuse::to_string(covers, max_elems_.value_or(-1));
    std::vector<std::string> notes;
    Result<std::string> made = emit(module, emit_, &notes);
    if (!made) return error_in(open_.model, made.error());
    note(notes);
    return made;
  }

  void note(const std::vector<std::string>& notes) {
    for (const std::string& each : notes) {
      tell("note: {}", each);
      told_["notes"].push_back(each);
    }
  }

  // What ran, for --json and --times.
  void take(const pass::RunReport& report) {
    for (const auto& record : report.passes)
      told_["passes"].push_back({{"name", record.pass},
                                 {"runs", record.runs},
                                 {"changes", record.changes},
                                 {"ms", static_cast<double>(record.time_ns) / 1e6}});
    for (const auto& [rewrite, count] : report.rewrites)
      told_["rewrites"][rewrite] = told_["rewrites"].value(rewrite, int64_t{0}) + count;
    if (!times_) return;
    for (const auto& record : report.passes)
      fmt::print(stderr, "{:<24} {:>6} runs {:>6} changes {:>10.3f} ms\n", record.pass, record.runs,
                 record.changes, static_cast<double>(record.time_ns) / 1e6);
    for (const auto& [rewrite, count] : report.rewrites)
      fmt::print(stderr, "  {:<40} {:>6}\n", rewrite, count);
  }

  OpenChoices open_;
  JsonChoice json_;
  nlohmann::ordered_json told_ = {{"modules", 1},
                                  {"instructions", 0},
                                  {"passes", nlohmann::ordered_json::array()},
                                  {"rewrites", nlohmann::ordered_json::object()},
                                  {"notes", nlohmann::ordered_json::array()}};
  std::string emit_ = "hlo";
  OutputFile output_;
  std::string passes_, stop_after_, disable_, dump_, target_, library_, trim_;
  bool list_ = false, reproduce_ = false, check_changed_ = false, times_ = false;
  std::optional<int64_t> bisect_limit_, rewrite_limit_, max_elems_, lanes_;
};

}  // namespace

std::unique_ptr<Command> make_opt() { return std::make_unique<Opt>(); }

}  // namespace heddle::tools
