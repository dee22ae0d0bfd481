// heddle check: the compiled result against the reference interpreter, or against a file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "api/second_reference.h"
#include "api/snapshot.h"
#include "command_line.h"
#include "commands.h"
#include "comparison.h"
#include "layer_search.h"
#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "suggest.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
using tensor::Literal;
using tensor::NamedLiterals;

class Check : public Command {
 public:
  std::string_view name() const override { return "check"; }
  std::string_view summary() const override {
    return "compares the compiled result with the reference interpreter";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    inputs_.declare(line);
    line.group("Comparison");
    line.text(expected_, "--expected", "F.npz",
              "the expected outputs (default: the reference interpreter's)");
    line.files()->reads([this](const FileUse::Add& add) { add("--expected", expected_); });
    line.real(rtol_, "--rtol", "X",
              "|a-b| <= atol + rtol|b| (default: derived from types and lengths of sums)");
    line.real(atol_, "--atol", "X", "see --rtol");
    line.list(tolerances_, "--tolerance", "NAME=RTOL[,ATOL]", "--rtol and --atol of one output");
    line.flag(layers_, "--layers",
              "if an output differs: names the first instruction whose value is wrong; each is "
              "compiled as an output and compared");
    line.real(cosine_, "--cosine", "X",
              "the least cosine similarity that passes, instead of a tolerance (default with "
              "--amp: 0.999, with f16 0.9999)");
    compile_.declare(line);
    json_.declare(line);
    line.examples(
        "  heddle check model.onnx\n"
        "  heddle check model.onnx --inputs in.npz --expected out.npz --rtol 1e-4 --atol 1e-5\n"
        "  heddle check model.onnx --tolerance logits=1e-3 --layers\n"
        "  heddle check softmax.hlo --level O0 --json result.json\n");
  }

  Result<int> run() override {
    for (const auto& tolerance : {rtol_, atol_})
      if (tolerance && !(*tolerance >= 0)) return user_error("a tolerance must be at least 0");
    if (cosine_ && !(*cosine_ >= -1 && *cosine_ <= 1))
      return user_error("--cosine {}: wanted -1 to 1", *cosine_);
    if (layers_ && !expected_.empty())
      return user_error("--layers: {} has no values of instructions; leave out --expected",
                        expected_);
    HEDDLE_ASSIGN_OR_RETURN(NamedLiterals given, inputs_.read());
    HEDDLE_ASSIGN_OR_RETURN(api::Snapshot snapshot, api::use_snapshot(open_.model, given));
    if (expected_.empty()) stored_ = std::move(snapshot.results);
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(given, inputs_));
    HEDDLE_ASSIGN_OR_RETURN(const bool stopped, compile_.stopped(model.get()));
    if (stopped) return 0;
    if (expected_.empty() && info_of(model.get()).is_program)
      return user_error("{}: a compiled program has no graph to interpret; give --expected F.npz",
                        open_.model);
    HEDDLE_ASSIGN_OR_RETURN(InputValues inputs, inputs_.values(model.get(), given));
    if (snapshot.used) inputs.description = "of the snapshot";
    given.clear();
    unbound_ = unbound_of(model.get());
    HEDDLE_RETURN_IF_ERROR(read_tolerances(model.get()));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> got, run_compiled(model.get(), inputs));
    HEDDLE_ASSIGN_OR_RETURN(
        const std::vector<Literal> want,
        against_interp() ? run_on("interp", model.get(), inputs) : read_expected(model.get(), got));
    HEDDLE_RETURN_IF_ERROR(compare(model.get(), got, want, inputs));
    if (layers_ && !pass_) {
      HEDDLE_ASSIGN_OR_RETURN(found_, search_layers(model.get(), compile_, inputs.values));
    }
    if (!json_.only_json()) print(inputs);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(inputs)));
    return pass_ ? 0 : 1;
  }

 private:
  Result<std::vector<Literal>> run_compiled(heddle_model* model, InputValues& inputs) {
    HEDDLE_ASSIGN_OR_RETURN(const ProgramHandle program,
                            compile_.compile(model, !against_interp() && !layers_));
    where_ = where_text(info_of(program.get()));
    notes_ = notes_of(program.get());
    return run_once(program.get(), inputs.values);
  }

  static Result<std::vector<Literal>> run_on(const char* device, heddle_model* model,
                                             InputValues& inputs) {
    auto options = sized<heddle_compile_options>();
    options.device = device;
    Progress progress;
    progress.show("running the reference interpreter");
    heddle_program* made = nullptr;
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_compile(model, &options, &made)));
    const ProgramHandle program(made);
    return run_once(program.get(), inputs.values);
  }

  bool against_interp() const { return expected_.empty() && stored_.empty(); }
  std::string against() const {
    if (!expected_.empty()) return expected_;
    return stored_.empty() ? "the reference interpreter" : "the snapshot's result";
  }

  Result<std::vector<Literal>> read_expected(const heddle_model* model,
                                             const std::vector<Literal>& got) {
    NamedLiterals file = stored_;
    if (!expected_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(file, tensor::read_npz(expected_));
    }
    std::vector<Literal> want;
    for (int64_t i = 0; i < info_of(model).outputs; ++i) {
      const heddle_port port = output_of(model, i);
      if (port.type == HEDDLE_TOKEN) {
        want.emplace_back();
        continue;
      }
      const Literal* found = nullptr;
      for (const auto& [name, value] : file)
        if (name == port.name) found = &value;
      if (found == nullptr) return user_error("{}: no value for output {}", against(), port.name);
      Result<Literal> typed = tensor::as_type(*found, static_cast<tensor::Type>(port.type));
      if (!typed) return error_in(fmt::format("output {}", port.name), typed.error());
      const tensor::Shape& shape = got[static_cast<size_t>(i)].shape();
      if (typed->shape().extents() != shape.extents())
        return user_error("{}: output {} is {} there, the model gives {}", against(), port.name,
                          tensor::to_string(typed->shape(), false),
                          tensor::to_string(shape, false));
      want.push_back(std::move(*typed));
    }
    return want;
  }

  // --tolerance NAME=RTOL[,ATOL]
  Status read_tolerances(const heddle_model* model) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < info_of(model).outputs; ++i)
      names.emplace_back(output_of(model, i).name);
    for (const std::string& text : tolerances_) {
      const size_t equals = text.rfind('='), comma = text.find(',', equals);
      const std::string name = text.substr(0, equals);
      tensor::Tolerance tolerance;
      const bool ok =
          equals != std::string::npos &&
          parse_real(text.substr(equals + 1, comma - equals - 1), tolerance.relative) &&
          (comma == std::string::npos || parse_real(text.substr(comma + 1), tolerance.absolute));
      if (!ok)
        return user_error("--tolerance {}: wanted NAME=RTOL or NAME=RTOL,ATOL, such as y=1e-3,1e-5",
                          text);
      if (std::find(names.begin(), names.end(), name) == names.end())
        return user_error("--tolerance {}: no output is called {}; there are {}{}", text, name,
                          fmt::join(names, ", "), did_you_mean(name, names));
      of_outputs_[name] = tolerance;
    }
    return {};
  }

  static bool parse_real(const std::string& text, double& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc{} && end == text.data() + text.size() && to >= 0;
  }

  tensor::Tolerance tolerance(const heddle_model* model, int64_t output) const {
    tensor::Tolerance tolerance;
    if (const auto own = of_outputs_.find(output_of(model, output).name); own != of_outputs_.end())
      return own->second;
    if (rtol_ || atol_) {
      tolerance.relative = rtol_.value_or(0);
      tolerance.absolute = atol_.value_or(0);
      return tolerance;
    }
    auto derived = sized<heddle_tolerance>();
    heddle_model_tolerance(model, output, &derived);
    tolerance.absolute = derived.absolute;
    tolerance.relative = derived.relative;
    tolerance.relative_to_max = derived.relative_to_max;
    return tolerance;
  }

  std::optional<double> least_cosine() const {
    if (cosine_ || rtol_ || atol_ || compile_.amp.empty() || compile_.amp == "off") return cosine_;
    return compile_.amp == "f16" ? 0.9999 : 0.999;
  }

  Status compare(heddle_model* model, const std::vector<Literal>& got,
                 const std::vector<Literal>& want, InputValues& inputs) {
    std::vector<const void*> bytes;
    for (const Literal& value : inputs.values) bytes.push_back(value.data());
    std::optional<api::SecondReference> second;
    for (size_t i = 0; i < got.size(); ++i) {
      if (!got[i].shape().is_array()) continue;
      const auto number = static_cast<int64_t>(i);
      const char* name = output_of(model, number).name;
      OutputCheck check = check_output(name, got[i], want[i], tolerance(model, number));
      if (tensor::is_float(want[i].type())) check.least_cosine = least_cosine();
      // The model itself may lose more than types and lengths tell.
      if (!check.equal() && against_interp() && !rtol_ && !atol_ && !of_outputs_.contains(name)) {
        if (!second) second.emplace(api::unwrap(model), bytes);
        HEDDLE_ASSIGN_OR_RETURN(check, recheck(check, i, got[i], want[i], *second));
      }
      pass_ = pass_ && check.equal();
      checks_.push_back(std::move(check));
    }
    return {};
  }

  void print(const InputValues& inputs) const {
    const std::string where = fmt::format("{} against {}", where_, against());
    fmt::print("{}\n", to_string(Head{open_.model, where, unbound_, inputs.all_random,
                                      inputs_.seed_or_default()}));
    fmt::print("inputs: {}\n", inputs.description);
    print_notes(notes_);
    for (const OutputCheck& check : checks_) fmt::print("output {}\n", to_string(check));
    if (found_) fmt::print("{}\n", to_string(*found_));
    fmt::print("{}\n", pass_ ? "PASS" : "FAIL");
  }

  ordered_json json(const InputValues& inputs) const {
    ordered_json json;
    json["schema"] = 1;
    json["model"] = open_.model;
    json["where"] = where_;
    json["against"] = against_interp() ? "interp" : against();
    json["bound_dimensions"] = to_json(unbound_);
    json["inputs"] = inputs.description;
    json["seed"] = inputs_.seed_or_default();
    json["notes"] = notes_;
    json["pass"] = pass_;
    json["outputs"] = ordered_json::array();
    for (const OutputCheck& check : checks_) json["outputs"].push_back(to_json(check));
    if (found_) json["layers"] = to_json(*found_);
    return json;
  }

  OpenChoices open_;
  InputChoices inputs_;
  CompileChoices compile_;
  JsonChoice json_;
  std::string expected_;
  NamedLiterals stored_;  // a snapshot's result
  std::optional<double> rtol_, atol_, cosine_;
  std::vector<std::string> tolerances_;
  std::map<std::string, tensor::Tolerance, std::less<>> of_outputs_;
  bool layers_ = false;
  std::optional<LayerSearch> found_;

  std::string where_;
  Unbound unbound_;
  std::vector<std::string> notes_;
  std::vector<OutputCheck> checks_;
  bool pass_ = true;
};

}  // namespace

std::unique_ptr<Command> make_check() { return std::make_unique<Check>(); }

}  // namespace heddle::tools
