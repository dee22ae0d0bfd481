// heddle explain: what was decided, and why.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "api/session.h"
#include "command_line.h"
#include "commands.h"
#include "commands_json.h"
#include "compiler/compiler.h"
#include "import/mapped_file.h"
#include "machine.h"
#include "memory_plan.h"
#include "mixed_text.h"
#include "model_options.h"
#include "output_file.h"
#include "program/nodes_text.h"
#include "program/program.h"
#include "program/views.h"
#include "report.h"
#include "report_document.h"
#include "session_options.h"
#include "temporary_folder.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr size_t kPrintedNodes = 8;  // of a kernel; JSON has all

// A kernel with the commands that launch it.
struct KernelUse {
  const program::Kernel* kernel;
  std::string operators;
  std::vector<std::string> commands, nodes;  // nodes: the model's own, each once
  bool once = false;                         // prepares weights
};

std::vector<KernelUse> uses_of(const program::Program& program) {
  std::vector<KernelUse> uses;
  std::map<uint32_t, size_t> places;
  std::set<std::pair<size_t, std::string_view>> seen;
  const auto add = [&](const std::vector<program::Command>& commands,
                       const std::vector<program::CommandInfo>& info, bool once) {
    program::for_each_command(
        program, commands, info,
        [&](const program::Command& command, const program::CommandInfo& about, int) {
          const auto* launch = std::get_if<program::Launch>(&command);
          if (launch == nullptr) return;
          const auto [place, added] = places.try_emplace(launch->kernel.value, uses.size());
          if (added)
            uses.push_back(
                {&program.kernels[launch->kernel.index()], about.operators, {}, {}, once});
          uses[place->second].commands.push_back(about.name);
          for (const std::string& node : about.nodes)
            if (seen.emplace(place->second, node).second) uses[place->second].nodes.push_back(node);
        });
  };
  add(program.commands, program.command_info, false);
  add(program.once, program.once_info, true);
  return uses;
}

void print_indented(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', at));
    fmt::print("    {}\n", std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
}

class Explain : public Command {
 public:
  std::string_view name() const override { return "explain"; }
  std::string_view summary() const override { return "shows every decision with its reason"; }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare_values(line);
    line.group("What to show");
    line.text(kernel_, "--kernel", "NAME", "only this kernel, with its loops");
    line.flag(schedules_, "--schedules",
              "how each kernel could be placed: every strategy, its price or why it was refused");
    line.flag(all_, "--all", "every edge and refusal, not only the first of each kind");
    line.output(html_, "--html", "F.html",
                "also writes one self-contained page (as heddle report)");
    line.text(profile_, "--profile", "F.json",
              "adds the times that heddle profile --json F.json measured");
    line.files()->reads([this](const FileUse::Add& add) { add("--profile", profile_); });
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle explain model.onnx\n"
        "  heddle explain model.onnx --fuse off --json explain.json\n"
        "  heddle profile model.onnx --json p.json && heddle explain model.onnx --html "
        "model.html --profile p.json\n");
  }

  Result<int> run() override {
    HEDDLE_RETURN_IF_ERROR(read_profile());
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    compile_.explain = true;
    const ReportedModel facts = reported_model(open_.model, model.get());
    words_ = compile_.words();
    std::unique_ptr<TemporaryFolder> folder;  // of all stages, for the page
    if (html_.given() && compile_.dump.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(folder, TemporaryFolder::make());
      compile_.dump = folder->file("stages");
    }
    const bool named = compile_.target != CompileChoices().target ||
                       std::string_view(compile_.device).starts_with("virtual:");
    const bool here = !named || info_of(model.get()).is_program;
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle handle, here ? compile_.compile(model.get(), true)
                                                             : decide(compile_, model.get()));
    const api::Program& program = api::unwrap(handle.get());
    if (program.compiled() == nullptr)
      return user_error("explain: device {} makes no decisions; use cpu", program.facts().device);
    const std::vector<KernelUse> uses = uses_of(*program.compiled());
    if (!kernel_.empty()) return show_kernel(program, uses);
    if (html_.given()) HEDDLE_RETURN_IF_ERROR(write_page(facts, program));
    if (!json_.only_json()) print(handle.get(), program, uses);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(program, uses)));
    return 0;
  }

 private:
  // Empty for a saved program: what was decided is of the compilation.
  static compiler::Report::KernelFacts facts_of(const api::Program& program,
                                                const std::string& kernel) {
    for (const compiler::Report::KernelFacts& facts : program.report().kernels)
      if (facts.name == kernel) return facts;
    return {};
  }
  static std::string places_of(const api::Program& program, const std::string& kernel) {
    return facts_of(program, kernel).places;
  }
  static double predicted_ns(const api::Program& program, const std::string& kernel) {
    return facts_of(program, kernel).predicted_ns;
  }

  // Of one launch; 0: not known.
  double measured_ms(const std::string& kernel) const {
    const auto found = measured_.find(kernel);
    return found == measured_.end() ? 0 : found->second;
  }

  std::string time_text(const api::Program& program, const std::string& kernel) const {
    std::string text;
    if (const double ns = predicted_ns(program, kernel); ns > 0)
      text = fmt::format("predicted {}", ms_text(ns / 1e6));
    if (const double ms = measured_ms(kernel); ms > 0)
      text += fmt::format("{}measured {}", text.empty() ? "" : ", ", ms_text(ms));
    return text.empty() ? "no prediction" : text;
  }

  Status read_profile() {
    if (profile_.empty()) return {};
    const auto file = import::MappedFile::open(profile_);
    if (!file) return error_in("--profile", file.error());
    const auto json = ordered_json::parse((*file)->bytes(), nullptr, /*allow_exceptions=*/false);
    const auto wrong = [&] {
      return user_error("--profile {}: wanted what heddle profile --json writes, by kernel",
                        profile_);
    };
    if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_array())
      return wrong();
    for (const ordered_json& one : json["kernels"]) {
      if (!one.is_object() || !one.contains("kernel") || !one["kernel"].is_string()) return wrong();
      for (const char* number : {"commands", "ms"})
        if (!one.contains(number) || !one[number].is_number()) return wrong();
      const double launches = one["commands"];
      if (launches > 0) measured_[one["kernel"]] = one["ms"].get<double>() / launches;
    }
    return {};
  }

  static std::string edge_text(const compiler::UnfusedEdge& edge) {
    return fmt::format("{} ({}): {}: {}; {}", edge.value, bytes_text(edge.bytes), edge.code,
                       edge.reason, ms_text(edge.ns / 1e6));
  }

  Status write_page(const ReportedModel& model, const api::Program& program) const {
    ReportSources sources{model, program, compile_.dump, words_of_this_process(), open_.words(), {},
                          {},    {}};
    for (const std::string& word : words_) sources.options.push_back(word);
    const program::Program& compiled = *program.compiled();
    if (!measured_.empty()) {
      sources.times.source = profile_;
      program::for_each_command(
          compiled, compiled.commands, compiled.command_info,
          [&](const program::Command& command, const program::CommandInfo&, int) {
            const auto* launch = std::get_if<program::Launch>(&command);
            sources.times.commands.push_back(
                launch == nullptr ? 0 : measured_ms(compiled.kernels[launch->kernel.index()].name));
          });
    }
    HEDDLE_ASSIGN_OR_RETURN(const ReportDocument document, report_document(sources));
    return html_.write(document.html());
  }

  Result<int> show_kernel(const api::Program& program, const std::vector<KernelUse>& uses) const {
    for (const KernelUse& use : uses) {
      if (use.kernel->name != kernel_ && use.kernel->label != kernel_) continue;
      fmt::print("{} {}: {}\n", use.kernel->name, use.kernel->label, use.operators);
      if (schedules_) print_indented(facts_of(program, use.kernel->name).strategies);
      print_indented(use.kernel->schedule);
      print_indented(places_of(program, use.kernel->name));
      fmt::print("{}", use.kernel->text);
      return 0;
    }
    return user_error(
        "--kernel {}: the program has no kernel of that name; heddle explain without --kernel "
        "names them all",
        kernel_);
  }

  void print(const heddle_program* handle, const api::Program& program,
             const std::vector<KernelUse>& uses) const {
    const api::ProgramFacts& facts = program.facts();
    fmt::print("{} on {}: {}\n", open_.model, where_text(info_of(handle)), facts.options);
    print_notes(handle);
    fmt::print("\nsteps:\n");
    for (const auto& [step, ms] : program.steps()) fmt::print("  {:<12} {}\n", step, ms_text(ms));
    fmt::print("\nkernels ({}), one for each pattern that was taken:\n", uses.size());
    for (const KernelUse& use : uses) {
      fmt::print("  {} {}, {}launches {}: {}\n", use.kernel->name, use.kernel->label,
                 use.once ? "weight preparation, " : "", use.commands.size(), use.operators);
      fmt::print("    for {}\n", fmt::join(use.commands, ", "));
      if (!use.nodes.empty())
        fmt::print("    nodes {}\n", program::nodes_text(use.nodes, kPrintedNodes));
      fmt::print("    {}\n", time_text(program, use.kernel->name));
      if (schedules_) print_indented(facts_of(program, use.kernel->name).strategies);
      print_indented(use.kernel->schedule);
      print_indented(places_of(program, use.kernel->name));
    }
    if (program.report().mixed) fmt::print("{}", mixed_text(*program.report().mixed));
    print_library_calls(program.report());
    print_edges(program.report());
    print_refusals(program.report());
    print_order(*program.compiled());
    print_memory(facts);
    const program::Program& compiled = *program.compiled();
    if (compiled.own_memory)
      fmt::print("{}", crossings_text(program::count_crossings(compiled), compiled.host_memory));
    fmt::print("{}", text_of(memory_plan_of(*program.compiled())));
  }

  static void print_library_calls(const compiler::Report& report) {
    if (report.library_calls.empty()) return;
    fmt::print("\nlibrary calls ({}):\n", report.library_calls.size());
    for (const auto& call : report.library_calls)
      fmt::print("  {}: {} by {}, {}\n    {}\n", call.name, call.library, call.implementation,
                 call.why, call.operation);
  }

  void print_edges(const compiler::Report& report) const {
    std::map<std::string, std::vector<const compiler::UnfusedEdge*>> by_code;
    double total_ns = 0;
    for (const compiler::UnfusedEdge& edge : report.edges) {
      by_code[edge.code].push_back(&edge);
      total_ns += edge.ns;
    }
    fmt::print("\nedges not fused ({}, estimated to cost {}):\n", report.edges.size(),
               ms_text(total_ns / 1e6));
    for (const auto& [code, edges] : by_code) {
      double ns = 0;
      for (const auto* edge : edges) ns += edge->ns;
      fmt::print("  {}: {}, {}\n", code, edges.size(), ms_text(ns / 1e6));
      for (const auto* edge : edges) {
        fmt::print("    {} -> {}: {}\n", edge->producer, edge->consumer, edge_text(*edge));
        if (!all_) break;
      }
    }
  }

  void print_refusals(const compiler::Report& report) const {
    std::map<std::string, std::vector<const compiler::Report::Refusal*>> by_code;
    for (const auto& refusal : report.refusals) by_code[refusal.code].push_back(&refusal);
    fmt::print("\npatterns refused ({}):\n", report.refusals.size());
    for (const auto& [code, refusals] : by_code) {
      fmt::print("  {}: {}\n", code, refusals.size());
      for (const auto* refusal : refusals) {
        fmt::print("    {} into {}: {}\n", refusal->producer, refusal->consumer, refusal->reason);
        if (!all_) break;
      }
      if (!all_ && refusals.size() > 1)
        fmt::print("    and {} more (--all)\n", refusals.size() - 1);
    }
  }

  static void print_order(const program::Program& program) {
    fmt::print("\norder ({} commands of a run, {} of weight preparation):\n",
               program::command_count(program, program.commands),
               program::command_count(program, program.once));
    int64_t number = 0;
    program::for_each_command(
        program, program.commands, program.command_info,
        [&](const program::Command&, const program::CommandInfo& info, int depth) {
          fmt::print("  {:>4} {:{}}{}: {}\n", number++, "", 2 * depth,
                     program::where_text(info.name, info.nodes), info.operators);
        });
  }

  static void print_memory(const api::ProgramFacts& facts) {
    fmt::print("\nmemory: lower bound {}, planned {}{}, pool peak {}, without reuse {}\n",
               bytes_text(facts.temporary_lower_bound_bytes), bytes_text(facts.temporary_bytes),
               facts.temporary_optimal ? " (optimal in this order)" : "",
               bytes_text(facts.temporary_pool_peak_bytes),
               bytes_text(facts.temporary_unshared_bytes));
  }

  ordered_json json(const api::Program& program, const std::vector<KernelUse>& uses) const {
    ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["options"] = program.facts().options;
    json["target"] = program.facts().target;
    json["notes"] = program.notes();
    for (const auto& [step, ms] : program.steps()) json["steps_ms"][step] = ms;
    json["launches"] = program.facts().launches;
    json["kernels"] = ordered_json::array();
    for (const KernelUse& use : uses)
      json["kernels"].push_back({{"name", use.kernel->name},
                                 {"label", use.kernel->label},
                                 {"operators", use.operators},
                                 {"commands", use.commands},
                                 {"nodes", use.nodes},
                                 {"once", use.once},
                                 {"phases", use.kernel->phases.size()},
                                 {"predicted_ns", predicted_ns(program, use.kernel->name)},
                                 {"measured_ns", measured_ms(use.kernel->name) * 1e6},
                                 {"text", use.kernel->text},
                                 {"schedule", use.kernel->schedule},
                                 {"strategies", facts_of(program, use.kernel->name).strategies},
                                 {"places", places_of(program, use.kernel->name)}});
    if (program.report().mixed) json["mixed_precision"] = mixed_json(*program.report().mixed);
    json["library_calls"] = ordered_json::array();
    for (const auto& call : program.report().library_calls)
      json["library_calls"].push_back({{"name", call.name},
                                       {"library", call.library},
                                       {"implementation", call.implementation},
                                       {"operation", call.operation},
                                       {"why", call.why}});
    json["edges"] = ordered_json::array();
    for (const compiler::UnfusedEdge& edge : program.report().edges)
      json["edges"].push_back({{"producer", edge.producer},
                               {"consumer", edge.consumer},
                               {"value", edge.value},
                               {"bytes", edge.bytes},
                               {"code", edge.code},
                               {"reason", edge.reason},
                               {"ns", edge.ns}});
    json["refusals"] = ordered_json::array();
    for (const auto& refusal : program.report().refusals)
      json["refusals"].push_back({{"producer", refusal.producer},
                                  {"consumer", refusal.consumer},
                                  {"code", refusal.code},
                                  {"reason", refusal.reason}});
    json["order"] = ordered_json::array();
    for (const program::CommandInfo& info : program.compiled()->command_info)
      json["order"].push_back(info.name);
    json["commands"] = commands_json(*program.compiled());
    json["memory_bytes"] = {
        {"temporaries_lower_bound", program.facts().temporary_lower_bound_bytes},
        {"temporaries", program.facts().temporary_bytes},
        {"temporaries_optimal", program.facts().temporary_optimal},
        {"temporaries_pool_peak", program.facts().temporary_pool_peak_bytes},
        {"temporaries_unshared", program.facts().temporary_unshared_bytes}};
    const program::Program& compiled = *program.compiled();
    if (compiled.own_memory)
      json["host"] = crossings_json(program::count_crossings(compiled), compiled.host_memory);
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  std::string kernel_, profile_;
  std::vector<std::string> words_;  // of the compilation's options that were given
  OutputFile html_;
  std::map<std::string, double> measured_;  // ms of a launch, by kernel
  bool all_ = false, schedules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

}  // namespace heddle::tools
