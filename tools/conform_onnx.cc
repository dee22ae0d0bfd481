#include "conform_onnx.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "comparison.h"
#include "conform_module.h"
#include "hlo/module.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "import/onnx_case.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;
using import::OnnxKind;
using import::OnnxPort;
using import::OnnxSignature;
using import::OnnxValue;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// prefix0suffix, prefix1suffix, ... as far as there are files.
std::vector<std::string> numbered(const std::string& prefix, const std::string& suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (;;) {
    std::string path = prefix + std::to_string(paths.size()) + suffix;
    if (!fs::exists(path, error)) return paths;
    paths.push_back(std::move(path));
  }
}

void read_tolerances(const fs::path& folder, OnnxCase& test) {
  const auto file = import::MappedFile::open((folder / "data.json").string());
  if (!file) return;
  const auto json = nlohmann::json::parse((*file)->bytes(), nullptr, false);
  if (!json.is_object()) return;
  if (json.contains("rtol") && json["rtol"].is_number()) test.rtol = json["rtol"];
  if (json.contains("atol") && json["atol"].is_number()) test.atol = json["atol"];
}

// Values by the names that inputs and outputs have after import (CLI.md): x, x#0, ...; nothing has
// none.
using Values = std::map<std::string, Literal>;

void add_values(const std::string& name, const OnnxValue& value, Values& to) {
  if (value.kind == OnnxKind::tensor) to[name] = value.tensor;
  for (size_t i = 0; i < value.elements.size(); ++i)
    to[fmt::format("{}#{}", name, i)] = value.elements[i];
}

struct DataSet {
  Values inputs, outputs;
  std::shared_ptr<tensor::Vocabulary> vocabulary;
};

Result<DataSet> read_data_set(const std::string& folder, const OnnxSignature& signature) {
  DataSet set;
  const auto vocabulary = std::make_shared<tensor::Vocabulary>();
  set.vocabulary = vocabulary;
  const std::vector<std::string> inputs = numbered(folder + "/input_", ".pb");
  const std::vector<std::string> outputs = numbered(folder + "/output_", ".pb");
  if (inputs.size() > signature.inputs.size() || outputs.size() > signature.outputs.size())
    return user_error("{}: {} inputs and {} outputs, the model has {} and {}", folder,
                      inputs.size(), outputs.size(), signature.inputs.size(),
                      signature.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const OnnxValue value,
                            import::read_onnx_value(inputs[i], signature.inputs[i], vocabulary));
    add_values(signature.inputs[i].name, value, set.inputs);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const OnnxValue value,
                            import::read_onnx_value(outputs[i], signature.outputs[i], vocabulary));
    add_values(signature.outputs[i].name, value, set.outputs);
  }
  return set;
}

// i / n for the elements of each input; the shapes are the model's own.
Result<DataSet> light_data_set(const OnnxCase& test, const OnnxSignature& signature) {
  DataSet set;
  for (size_t i = 0; i < test.light.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const OnnxValue value,
                            import::read_onnx_value(test.light[i], signature.outputs.at(i)));
    add_values(signature.outputs[i].name, value, set.outputs);
  }
  HEDDLE_ASSIGN_OR_RETURN(const import::Imported model, import::import_onnx(test.model));
  for (const hlo::Instr* parameter : model.module->entry()->parameters()) {
    HEDDLE_ASSIGN_OR_RETURN(Literal value, Literal::make(parameter->shape()));
    const auto n = static_cast<double>(value.elems());
    for (int64_t i = 0; i < value.elems(); ++i) value.set_f64(i, static_cast<double>(i) / n);
    set.inputs[model.input_names[static_cast<size_t>(parameter->parameter_number())]] = value;
  }
  return set;
}

Result<std::vector<Literal>> run(api::Model& opened, const api::CompileOptions& options,
                                 const DataSet& set) {
  HEDDLE_ASSIGN_OR_RETURN(const auto program, api::Program::compile(opened, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto context, program->make_context());
  std::vector<Literal> inputs, outputs;
  for (const api::Port& port : opened.inputs()) {
    const auto found = set.inputs.find(port.name);
    if (found == set.inputs.end()) return user_error("input {} has no data", port.name);
    inputs.push_back(found->second);
    if (!(inputs.back().shape() == port.shape))
      return user_error("input {} is {}, its data is {}", port.name, to_string(port.shape),
                        to_string(inputs.back().shape()));
    HEDDLE_RETURN_IF_ERROR(
        context->bind_input(static_cast<int64_t>(inputs.size()) - 1, inputs.back().data()));
  }
  for (const api::Port& port : program->outputs()) {
    HEDDLE_ASSIGN_OR_RETURN(Literal output, Literal::make(port.shape));
    outputs.push_back(std::move(output));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_output(
        static_cast<int64_t>(i), outputs[i].bytes() > 0 ? outputs[i].mutable_data() : nullptr));
  HEDDLE_RETURN_IF_ERROR(context->run());
  return outputs;
}

bool draws_at_random(const hlo::Module& module) {
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->is(hlo::Opcode::rng_get_and_update_state)) return true;
  return false;
}

// The first difference from what was wanted; empty: none. `drawn`: values are not compared.
std::string difference(const OnnxCase& test, const api::Model& model,
                       const std::vector<Literal>& got, const Values& wanted, bool drawn) {
  if (got.size() != wanted.size())
    return fmt::format("form: {} output tensors, wanted {}", got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    const auto want = wanted.find(name);
    if (want == wanted.end()) return fmt::format("form: output {} is not wanted", name);
    if (!(got[i].shape() == want->second.shape()))
      return fmt::format("form: output {} is {}, wanted {}", name, to_string(got[i].shape()),
                         to_string(want->second.shape()));
    if (drawn) continue;
    constexpr double kHalfPrecision = 0x1p-6;
    tensor::Tolerance tolerance;
    tolerance.absolute = test.atol;
    tolerance.relative =
        got[i].type() == Type::bf16 ? std::max(test.rtol, kHalfPrecision) : test.rtol;
    const OutputCheck check = check_output(name, got[i], want->second, tolerance);
    if (!check.equal()) return "value: " + to_string(check);
  }
  return "";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// False: `outcome` says why there is no next data set to be run.
bool run_data_set(const OnnxCase& test, const DataSet& set, const api::CompileOptions& options,
                  double max_work, OnnxOutcome& outcome) {
  const auto stop = [&](const char* what, const std::string& why) {
    outcome.outcome = what;
    outcome.reason = first_line(why);
    if (const std::string prefix = test.model + ": "; outcome.reason.starts_with(prefix))
      outcome.reason.erase(0, prefix.size());
    return false;
  };
  api::OpenOptions open;
  open.values = set.inputs;
  open.vocabulary = set.vocabulary;
  auto model = api::Model::open(test.model, open);
  if (!model) return stop("refused", model.error().message);
  const std::unique_ptr<api::Model> opened = std::move(*model);
  outcome.late = outcome.late || opened->late() != nullptr;
  if (const double work = work_of(*opened->module());
      options.device.starts_with("interp") && work > max_work)
    return stop("too big", fmt::format("about {:.1e} operations for the interpreter", work));
  const bool drawn = draws_at_random(*opened->module());
  const auto got = run(*opened, options, set);
  if (!got) return stop("refused", got.error().message);
  const std::string wrong = difference(test, *opened, *got, set.outputs, drawn);
  if (!wrong.empty()) return stop("mismatch", wrong);
  return !drawn || stop("runs", "values are random; shapes and types are as expected");
}

}  // namespace

Result<std::vector<OnnxCase>> find_onnx_cases(const std::string& folder) {
  std::error_code error;
  std::vector<OnnxCase> cases;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  if (error) return user_error("{}: cannot be searched: {}", folder, error.message());
  for (const fs::directory_entry& entry : at) {
    const fs::path& path = entry.path();
    if (!entry.is_regular_file(error) || path.extension() != ".onnx") continue;
    OnnxCase test;
    test.model = path.string();
    if (path.filename() == "model.onnx") {
      test.name = path.parent_path().lexically_relative(folder).string();
      test.data_sets = numbered((path.parent_path() / "test_data_set_").string(), "");
      read_tolerances(path.parent_path(), test);
    } else {
      test.name = path.lexically_relative(folder).string();
      test.light = numbered((path.parent_path() / path.stem()).string() + "_output_", ".pb");
    }
    if (!test.data_sets.empty() || !test.light.empty()) cases.push_back(std::move(test));
  }
  if (cases.empty())
    return user_error("{}: it has no model.onnx with test_data_set_0 beside it", folder);
  std::sort(cases.begin(), cases.end(),
            [](const OnnxCase& a, const OnnxCase& b) { return a.name < b.name; });
  return cases;
}

std::vector<std::string> files_of(const OnnxCase& test) {
  std::vector<std::string> files = test.light, folders = test.data_sets;
  files.push_back(test.model);
  // External data and data.json; in a folder of many light cases other things lie beside them.
  if (test.light.empty()) folders.push_back(fs::path(test.model).parent_path().string());
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  return files;
}

OnnxOutcome run_onnx_case(const OnnxCase& test, const api::CompileOptions& options,
                          double max_work) {
  OnnxOutcome outcome{"pass", "", "graph", "", false};
  const auto unreadable = [&](const Error& error) {
    outcome.outcome = "unreadable";
    outcome.reason = first_line(error.message);
    return outcome;
  };
  const Result<OnnxSignature> signature = import::read_onnx_signature(test.model);
  if (!signature) return unreadable(signature.error());
  if (signature->operators.size() == 1) outcome.op = signature->operators[0];
  const size_t dot = outcome.op.rfind('.');
  const std::string domain = dot == std::string::npos ? "ai.onnx" : outcome.op.substr(0, dot);
  for (const auto& [name, version] : signature->opsets) {
    if (name != domain && signature->opsets.size() > 1) continue;
    outcome.opset =
        name == "ai.onnx" ? std::to_string(version) : fmt::format("{} {}", name, version);
  }
  for (const std::string& folder : test.data_sets) {
    const Result<DataSet> set = read_data_set(folder, *signature);
    if (!set) return unreadable(set.error());
    if (!run_data_set(test, *set, options, max_work, outcome)) return outcome;
  }
  if (!test.light.empty()) {
    const Result<DataSet> set = light_data_set(test, *signature);
    if (!set) return unreadable(set.error());
    run_data_set(test, *set, options, max_work, outcome);
  }
  return outcome;
}

}  // namespace heddle::tools
