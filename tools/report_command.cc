// heddle report: one page, or one document, of all that is known of a program and its runs.
#include <fmt/format.h>

#include "api/session.h"
#include "api/snapshot.h"
#include "command_line.h"
#include "commands.h"
#include "import/mapped_file.h"
#include "machine.h"
#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "report_document.h"
#include "report_measure.h"
#include "rivals.h"
#include "session_options.h"
#include "statistics.h"
#include "temporary_folder.h"
#include "values.h"

namespace heddle::tools {
namespace {

class Report : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override {
    return "makes one page of what was compiled, where its time and memory go, and why";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("Output");
    line.output(page_, "-o,--output", "F.html", "the page: one file that loads nothing else");
    measure_.declare(line);
    line.text(check_, "--check", "F.json", "adds what heddle check --json F.json found");
    line.files()->reads([this](const FileUse::Add& add) { add("--check", check_); });
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle report model.onnx -o page.html\n"
        "  heddle report model.onnx -o page.html --profile --threads 2\n"
        "  heddle report model.onnx -o page.html --profile --vs onnxruntime\n"
        "  heddle check model.onnx --json c.json && heddle report model.onnx -o page.html --check "
        "c.json\n"
        "  heddle report model.onnx --json document.json --target zen5\n");
  }

  Result<int> run() override {
    HEDDLE_RETURN_IF_ERROR(measure_.check());
    if (!page_.given() && !json_.file.given() && compile_.stop_after.empty())
      return user_error("report: nothing to write; name the page with -o F.html, or --json F");
    HEDDLE_ASSIGN_OR_RETURN(nlohmann::ordered_json check, read_check());
    HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(const api::Snapshot snapshot, api::use_snapshot(open_.model, given));
    const tensor::NamedLiterals all_given = given;
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(given, inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    HEDDLE_RETURN_IF_ERROR(check_peers(model.get()));
    HEDDLE_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::make());
    HEDDLE_ASSIGN_OR_RETURN(MeasuredInputs inputs,
                            measured_inputs(model.get(), given, all_given, *folder));
    if (snapshot.used) inputs.description = "of the snapshot";
    const ReportedModel facts = reported_model(open_.model, model.get());
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle handle, compiled(model.get(), *folder));
    const api::Program& program = api::unwrap(handle.get());
    if (program.compiled() == nullptr)
      return user_error("report: device {} makes no decisions; use cpu", program.facts().device);
    ReportSources sources{
        facts, program, compile_.dump, words_of_this_process(), same_options(), {}, {}, {}};
    sources.check = std::move(check);
    if (measure_.asked()) {
      HEDDLE_ASSIGN_OR_RETURN(sources.times,
                              measure_report(measure_, handle.get(), std::move(inputs)));
      keep_what_fits(&sources);
    }
    return write(sources);
  }

 private:
  bool is_here(const heddle_model* model) const {
    const bool named = compile_.target != CompileChoices().target ||
                       std::string_view(compile_.device).starts_with("virtual:");
    return !named || info_of(model).is_program;
  }

  // Only what is shown of it; null without --check.
  Result<nlohmann::ordered_json> read_check() const {
    nlohmann::ordered_json result;
    if (check_.empty()) return result;
    const auto file = import::MappedFile::open(check_);
    if (!file) return error_in("--check", file.error());
    const auto json = nlohmann::ordered_json::parse((*file)->bytes(), nullptr, false);
    const auto wrong = [&] {
      return user_error("--check {}: wanted what heddle check --json writes", check_);
    };
    if (!json.is_object() || !json.contains("outputs") || !json["outputs"].is_array() ||
        !json.contains("pass") || !json["pass"].is_boolean())
      return wrong();
    result = {{"source", check_}, {"pass", json["pass"]}};
    for (const char* text : {"against", "inputs"})
      result[text] = json.contains(text) && json[text].is_string() ? json[text] : "";
    result["outputs"] = nlohmann::ordered_json::array();
    for (const nlohmann::ordered_json& one : json["outputs"]) {
      if (!one.is_object() || !one.contains("name") || !one["name"].is_string() ||
          !one.contains("equal") || !one["equal"].is_boolean())
        return wrong();
      nlohmann::ordered_json shown = {{"name", one["name"]}, {"equal", one["equal"]}};
      for (const char* number :
           {"mismatches", "max_error", "max_error_over_max", "worst_ulp", "cosine"})
        if (one.contains(number) && one[number].is_number()) shown[number] = one[number];
      result["outputs"].push_back(std::move(shown));
    }
    return result;
  }

  Status check_peers(const heddle_model* model) const {
    if (measure_.asked() && !is_here(model))
      return user_error("{}: nothing is run for target {} on device {}; leave out one of them",
                        measure_.profile ? "--profile" : "--vs", compile_.target,
                        compile_.device.empty() ? "cpu" : compile_.device);
    if (!measure_.versus.empty() && std::string_view(info_of(model).format) != "ONNX")
      return user_error("--vs {}: {} is {}; the peers read ONNX", measure_.versus[0], open_.model,
                        info_of(model).format);
    return {};
  }

  Result<MeasuredInputs> measured_inputs(const heddle_model* model,
                                         const tensor::NamedLiterals& given,
                                         const tensor::NamedLiterals& all_given,
                                         const TemporaryFolder& folder) const {
    MeasuredInputs inputs{open_.model, folder.file("inputs.npz"), "", {}};
    if (!measure_.asked()) return inputs;
    HEDDLE_ASSIGN_OR_RETURN(InputValues values, inputs_.values(model, given));
    inputs.description = std::move(values.description);
    inputs.values = std::move(values.values);
    if (!measure_.versus.empty())
      HEDDLE_RETURN_IF_ERROR(write_inputs_of_rivals(inputs.peers_inputs, model, inputs.values,
                                                    all_given, open_.fixed));
    return inputs;
  }

  // With all stages as files: those of the user, or of a folder that goes.
  Result<ProgramHandle> compiled(heddle_model* model, const TemporaryFolder& folder) {
    compile_.explain = true;
    if (compile_.dump.empty()) compile_.dump = folder.file("stages");
    return is_here(model) ? compile_.compile(model, true) : decide(compile_, model);
  }

  static void keep_what_fits(ReportSources* sources) {
    if (fits(sources->times, *sources->program.compiled())) return;
    sources->notes.push_back(fmt::format(
        "shapes are known late: a run consists of several programs, {} commands in {} "
        "(median); this is the report of one of them, with predicted times",
        sources->times.names.size(), ms_text(statistics_of(sources->times.runs).median)));
    sources->times = {};
  }

  std::vector<std::string> same_options() const {
    CompileChoices choices = compile_;
    choices.dump.clear();
    std::vector<std::string> words = open_.words();
    for (const std::string& word : choices.words()) words.push_back(word);
    return words;
  }

  Result<int> write(const ReportSources& sources) const {
    HEDDLE_ASSIGN_OR_RETURN(const ReportDocument document, report_document(sources));
    if (page_.given()) HEDDLE_RETURN_IF_ERROR(page_.write(document.html()));
    if (json_.file.given()) HEDDLE_RETURN_IF_ERROR(json_.write(document.whole()));
    if (page_.given() && !page_.is_standard_output() && !json_.only_json())
      fmt::print("{} commands, {} kernels{}: {}\n", document.json["commands"].size(),
                 document.json["kernels"].size(), sources.times.runs.empty() ? "" : ", measured",
                 page_.path);
    return 0;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  MeasureChoices measure_;
  JsonChoice json_;
  OutputFile page_;
  std::string check_;
};

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<Report>(); }

}  // namespace heddle::tools
