#include "report_document.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/parallel.h"
#include "compilation_files.h"
#include "compiler/compile_options.h"
#include "machine.h"
#include "memory_plan.h"
#include "mixed_text.h"
#include "page_text.h"
#include "program/program.h"
#include "program/views.h"
#include "report_commands.h"
#include "roofs.h"
#include "statistics.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr size_t kMostRefusals = 4000;

void add_head(const ReportSources& sources, ordered_json* json) {
  const api::ProgramFacts& facts = sources.program.facts();
  const ReportedModel& model = sources.model;
  (*json)["schema"] = kSchema;
  (*json)["model"] = {{"path", model.path},     {"name", model.name},
                      {"format", model.format}, {"producer", model.producer},
                      {"bytes", model.bytes},   {"unbound", ordered_json::object()}};
  for (const auto& [name, extent] : model.unbound) (*json)["model"]["unbound"][name] = extent;
  (*json)["heddle"] = {{"version", version_text()},
                       {"build", sources.program.compiled()->build_id}};
  (*json)["machine"] = {{"processor", processor_name()},
                        {"cores", available_cores()},
                        {"memory_bytes", memory_bytes()}};
  (*json)["target"] =
      ordered_json::parse(sources.program.compiled()->target, nullptr, /*allow_exceptions=*/false);
  (*json)["command"] = sources.words;
  (*json)["same_options"] = sources.options;
  (*json)["program"] = {{"device", facts.device},        {"isa", facts.isa},
                        {"target", facts.target},        {"level", facts.level},
                        {"precision", facts.precision},  {"options", facts.options},
                        {"threads", facts.threads},      {"kernels", facts.run_kernels},
                        {"launches", facts.launches},    {"flops", facts.flops},
                        {"min_bytes", facts.min_bytes},  {"code_bytes", facts.object_bytes},
                        {"compile_ms", facts.compile_ms}};
  (*json)["notes"] = sources.program.notes();
  for (const std::string& note : sources.notes) (*json)["notes"].push_back(note);
  (*json)["steps_ms"] = ordered_json::object();
  for (const auto& [step, ms] : sources.program.steps()) (*json)["steps_ms"][step] = ms;
}

void add_kernels(const ReportSources& sources, const KernelTexts& files, ReportDocument* document) {
  PageTexts& texts = document->texts;
  std::map<std::string, const compiler::Report::KernelFacts*> facts;
  for (const auto& one : sources.program.report().kernels) facts[one.name] = &one;
  document->json["kernels"] = ordered_json::array();
  for (const program::Kernel& kernel : sources.program.compiled()->kernels) {
    ordered_json code = {{"schedule", texts.add(kernel.schedule)}};
    ordered_json one = {{"name", kernel.name},
                        {"label", kernel.label},
                        {"phases", kernel.phases.size()},
                        {"tasks", kernel.phases.empty() ? 0 : kernel.phases[0].tasks},
                        {"scratch_bytes", kernel.scratch_bytes},
                        {"flops", kernel.flops},
                        {"min_bytes", kernel.min_bytes}};
    if (const auto found = facts.find(kernel.name); found != facts.end()) {
      one["predicted_ns"] = found->second->predicted_ns;
      code["places"] = texts.add(found->second->places);
      code["strategies"] = texts.add(found->second->strategies);
    }
    code["kernel"] = texts.add(kernel.text);
    // The code's files have the name of its symbols: several kernels may share one code.
    std::vector<std::string> names = {kernel.name};
    if (!kernel.phases.empty())
      names.push_back(kernel.phases[0].symbol.substr(0, kernel.phases[0].symbol.rfind("_p")));
    for (const std::string& name : names)
      if (const auto found = files.find(name); found != files.end())
        for (const auto& [kind, number] : found->second) code[kind] = number;
    for (auto at = code.begin(); at != code.end();)
      at = at.value() == -1 ? code.erase(at) : std::next(at);
    one["code"] = std::move(code);
    document->json["kernels"].push_back(std::move(one));
  }
}

void add_memory(const ReportSources& sources, ordered_json* json) {
  const api::ProgramFacts& facts = sources.program.facts();
  const MemoryPlan plan = memory_plan_of(*sources.program.compiled());
  ordered_json memory = {{"bytes", plan.bytes},
                         {"peak_bytes", plan.peak_bytes},
                         {"peak_command", plan.peak_command},
                         {"lower_bound_bytes", facts.temporary_lower_bound_bytes},
                         {"unshared_bytes", facts.temporary_unshared_bytes},
                         {"optimal", facts.temporary_optimal},
                         {"constant_bytes", facts.constant_bytes},
                         {"input_bytes", facts.input_bytes},
                         {"output_bytes", facts.output_bytes},
                         {"buffers", ordered_json::array()}};
  for (const PlannedBuffer& buffer : plan.buffers)
    memory["buffers"].push_back({{"name", buffer.name},
                                 {"offset", buffer.offset_bytes},
                                 {"bytes", buffer.bytes},
                                 {"first", buffer.first},
                                 {"last", buffer.last}});
  const program::Program& compiled = *sources.program.compiled();
  if (compiled.own_memory)
    memory["host"] = crossings_json(program::count_crossings(compiled), compiled.host_memory);
  (*json)["memory"] = std::move(memory);
}

// As heddle profile tells them: by kernel.
void add_roofs(const ReportSources& sources, ordered_json* json) {
  std::map<int64_t, MeasuredWork> kernels;
  for (const ordered_json& command : (*json)["commands"]) {
    if (!command.contains("kernel") || !command.contains("ms")) continue;
    const int64_t launches = command.value("launches", int64_t{1});
    MeasuredWork& work = kernels[command["kernel"]];
    work.flops += command["flops"].get<int64_t>() * launches;
    work.bytes += command["bytes"].get<int64_t>() * launches;
    work.ms += command["ms"].get<double>();
  }
  std::vector<MeasuredWork> works;
  for (const auto& [kernel, work] : kernels) works.push_back(work);
  const api::ProgramFacts& facts = sources.program.facts();
  const Roofs roofs = roofs_of(facts.peak_flops_per_ns, facts.bandwidth_bytes_per_ns, works);
  (*json)["roofs"] = {{"gflops_per_s", roofs.flops_per_ns},
                      {"gbytes_per_s", roofs.bytes_per_ns},
                      {"raised", roofs.raised},
                      {"target_gflops_per_s", facts.peak_flops_per_ns},
                      {"target_gbytes_per_s", facts.bandwidth_bytes_per_ns}};
}

void add_times(const ReportedTimes& times, ordered_json* json) {
  if (times.commands.empty()) return;
  ordered_json measured = {{"source", times.source}, {"inputs", times.inputs}};
  if (!times.runs.empty()) measured["runs"] = times.runs.size();
  if (!times.runs.empty()) measured["run_ms"] = to_json(statistics_of(times.runs));
  measured["threads"] = times.threads;
  measured["spans"] = ordered_json::array();
  const auto rounded = [](double us) { return std::round(us * 1000) / 1000; };
  for (const ThreadSpan& span : times.spans)
    measured["spans"].push_back(
        {span.thread, span.command, rounded(span.begin_us), rounded(span.us)});
  (*json)["measured"] = std::move(measured);
  (*json)["versus"] = times.versus;
}

void add_refusals(const compiler::Report& report, ReportDocument* document) {
  ordered_json& json = document->json;
  json["refusals"] = ordered_json::array();
  json["refusals_left_out"] =
      report.refusals.size() > kMostRefusals ? report.refusals.size() - kMostRefusals : 0;
  for (const auto& refusal : report.refusals) {
    if (json["refusals"].size() == kMostRefusals) break;
    json["refusals"].push_back({{"producer", refusal.producer},
                                {"consumer", refusal.consumer},
                                {"code", refusal.code},
                                {"reason", refusal.reason}});
  }
  json["library_calls"] = ordered_json::array();
  for (const auto& call : report.library_calls)
    json["library_calls"].push_back({{"name", call.name},
                                     {"library", call.library},
                                     {"implementation", call.implementation},
                                     {"operation", call.operation},
                                     {"why", call.why}});
  if (report.mixed) json["mixed_precision"] = mixed_json(*report.mixed);
}

}  // namespace

ReportedModel reported_model(const std::string& path, const heddle_model* model) {
  const heddle_model_info info = info_of(model);
  auto origin = sized<heddle_model_origin>();
  heddle_model_get_origin(model, &origin);
  ReportedModel result{path, info.format, info.name, origin.producer, 0, {}};
  if (*origin.producer_version != 0) result.producer += std::string(" ") + origin.producer_version;
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(path, unknown);
  if (!unknown) result.bytes = static_cast<int64_t>(bytes);
  heddle_dim dim;
  for (int64_t i = 0; (dim = heddle_model_unbound(model, i)).name != nullptr; ++i)
    result.unbound.emplace_back(dim.name, dim.size);
  return result;
}

bool fits(const ReportedTimes& times, const program::Program& program) {
  std::vector<std::string> names;
  program::for_each_command(program, program.commands, program.command_info,
                            [&](const program::Command&, const program::CommandInfo& info, int) {
                              names.push_back(info.name);
                            });
  return names == times.names;
}

Result<ReportDocument> report_document(const ReportSources& sources) {
  ReportDocument document;
  KernelTexts files;
  ordered_json changes = ordered_json::array();
  if (!sources.folder.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(files, kernel_texts(sources.folder, &document.texts));
    HEDDLE_ASSIGN_OR_RETURN(changes, pass_changes(sources.folder, &document.texts));
  }
  add_head(sources, &document.json);
  ReportCommands(sources, &document.texts).add_to(&document.json);
  add_kernels(sources, files, &document);
  add_memory(sources, &document.json);
  add_times(sources.times, &document.json);
  add_roofs(sources, &document.json);
  add_refusals(sources.program.report(), &document);
  if (!sources.check.is_null()) document.json["check"] = sources.check;
  document.json["passes"] = passes_json(sources.program.report());
  document.json["rewrites"] = rewrites_json(sources.program.report());
  document.json["pass_changes"] = std::move(changes);
  return document;
}

ordered_json ReportDocument::whole() const {
  ordered_json result = json;
  result["texts"] = texts.plain();
  return result;
}

std::string ReportDocument::html() const {
  ordered_json shown = json;
  shown["text_pieces"] = texts.places();
  std::string pieces;
  for (const std::string& piece : texts.packed())
    pieces += fmt::format("<script type=\"text/plain\" class=\"piece\">{}</script>\n", piece);
  return filled(kReportHtml, {{"{title}", escaped(json["model"]["path"].get<std::string>())},
                              {"{style}", kReportStyle},
                              {"{data}", script_text(shown)},
                              {"{pieces}", pieces},
                              {"{script}", kReportScript}});
}

}  // namespace heddle::tools
